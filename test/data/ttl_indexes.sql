-- TTL indexes of every kind, for the tests that carry them somewhere else, with
-- five rows that are due and twelve that are not.
CREATE EXTENSION ttl_index;
CREATE SCHEMA "Odd";

CREATE TABLE events (at timestamptz, sensor text);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX events_short ON events (at DESC)
	WHERE sensor = 'MDB''s' AND ttl_index.expire_after_seconds(60 * 10);
INSERT INTO events VALUES ('2000-01-01', NULL), ('2100-01-01', NULL), ('2100-01-01', 'MDB''s');

CREATE TABLE "Odd"."Local times" ("At" timestamp, day date);
CREATE INDEX "At ttl" ON "Odd"."Local times" ("At")
	WHERE ttl_index.time_zone('Europe/Berlin') AND ttl_index.expire_after_seconds(0);
CREATE INDEX day_ttl ON "Odd"."Local times" (day)
	WHERE ttl_index.time_zone('America/New_York') AND ttl_index.expire_after_seconds(2147483647);
INSERT INTO "Odd"."Local times" VALUES ('2100-01-01', '2020-01-01'), (NULL, '2100-01-01');

CREATE TABLE dates (dates timestamptz[]);
CREATE INDEX dates_ttl ON dates (ttl_index.earliest(dates)) WHERE ttl_index.expire_after_seconds(ttl_index.seconds('5 seconds'));
INSERT INTO dates VALUES ('{2100-01-01,2000-01-01}'), ('{2100-01-01,NULL}'), ('{}');

CREATE TABLE parts (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2050-01-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2050-01-01') TO (MAXVALUE);
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(7200);
CREATE INDEX parts_1_n ON parts_1 (at) INCLUDE (n) WHERE n > 5 AND ttl_index.expire_after_seconds(30);
INSERT INTO parts VALUES ('2000-01-01', 1), ('2100-01-01', 9);

CREATE TABLE changed (at timestamptz, local timestamp);
CREATE INDEX changed_ttl ON changed (at);
SELECT ttl_index.coll_mod('changed', 'at', 77);
CREATE INDEX changed_zone ON changed (local)
	WHERE ttl_index.expire_after_seconds(1) AND ttl_index.time_zone('UTC');
SELECT ttl_index.coll_mod_index('changed_zone', 88, 'Asia/Tokyo');
INSERT INTO changed VALUES ('2100-01-01', '2100-01-01');

CREATE TABLE plain (at timestamptz);
CREATE INDEX plain_at ON plain (at) WHERE ttl_index.expire_after_seconds(1);
SELECT ttl_index.remove_ttl('plain_at');
INSERT INTO plain VALUES ('2000-01-01');

CREATE TABLE documents (doc jsonb);
SELECT ttl_index.create_index('documents', 'doc.meta.created.at', 86400);
INSERT INTO documents VALUES ('{"meta": {"created.at": "2000-01-01T00:00:00Z", "created": {"at": "2000-01-01T00:00:00Z"}}}'),
	('{"meta": {"created": {"at": "2100-01-01T00:00:00Z"}}}');

-- a pair: documents with a TTL of their own
CREATE TABLE coll (doc jsonb);
SELECT ttl_index.track_last_modified('coll');
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
SET session_replication_role = replica;  -- keeps the times that are written here
INSERT INTO coll VALUES ('{}', '2000-01-01'), ('{"ttl": -1}', '2000-01-01'), ('{"ttl": 2147483647}', '2020-01-01');
RESET session_replication_role;

-- pairs with coercions around their columns, which a dump writes out
CREATE DOMAIN moment AS timestamptz;
CREATE DOMAIN document AS jsonb;
CREATE TABLE coerced (at moment, ttl int, doc document);
SELECT ttl_index.create_index('coerced', 'at', 1000, document_ttl_field => 'ttl');
SELECT ttl_index.create_index('coerced', 'doc.at', 1000, document_ttl_field => 'doc.ttl');
