-- The time of the last change: rule 31.
\set SHOW_CONTEXT never
SET client_min_messages = notice;
SET TimeZone = 'UTC';
CREATE SCHEMA modified;
SET search_path = modified;

-- Is the date in a row the time of the last statement?
CREATE TABLE clock (at timestamptz);
INSERT INTO clock VALUES (clock_timestamp());
CREATE FUNCTION is_new(ts timestamptz) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT ts BETWEEN at AND clock_timestamp() FROM modified.clock';
CREATE PROCEDURE tick() LANGUAGE sql AS 'UPDATE modified.clock SET at = clock_timestamp()';

-- adds the column where it is missing; the rows that are there get the time of that
CREATE TABLE coll (id int PRIMARY KEY, v text);
INSERT INTO coll VALUES (1, 'old');
CALL tick();
SELECT ttl_index.track_last_modified('coll');
SELECT attname, atttypid::regtype, attnotnull, atthasmissing FROM pg_attribute WHERE attrelid = 'coll'::regclass AND attname = '_ts';
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'coll'::regclass;
SELECT count(*) AS rows, count(_ts) AS dates FROM coll;
-- ... again: nothing
SELECT ttl_index.track_last_modified('coll', '_ts');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'coll'::regclass;

-- set on every insert and update, whatever the client wrote
CALL tick();
INSERT INTO coll (id, v) VALUES (2, 'insert');
INSERT INTO coll VALUES (3, 'forged', '2999-01-01'), (4, 'forged', '-infinity'), (5, 'forged', NULL), (6, 'default', DEFAULT);
SELECT id, is_new(_ts) FROM coll WHERE id > 1 ORDER BY id;
CALL tick();
UPDATE coll SET v = 'update' WHERE id = 1;
UPDATE coll SET _ts = '2999-01-01' WHERE id = 2;
UPDATE coll SET _ts = NULL WHERE id = 3;
UPDATE coll SET v = v WHERE id = 4;
INSERT INTO coll VALUES (5, 'conflict', '2999-01-01') ON CONFLICT (id) DO UPDATE SET v = excluded.v, _ts = excluded._ts;
MERGE INTO coll USING (VALUES (6), (7)) AS s (id) ON coll.id = s.id
	WHEN MATCHED THEN UPDATE SET _ts = '2999-01-01' WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'merge', '2999-01-01');
COPY coll (id, v, _ts) FROM stdin;
8	copy	2999-01-01
\.
SELECT id, v, is_new(_ts) FROM coll ORDER BY id;
CALL tick();
INSERT INTO coll VALUES (9, 'returning', '2999-01-01') RETURNING id, is_new(_ts);
-- a row that is not changed keeps its time
CALL tick();
UPDATE coll SET v = 'x' WHERE id = 1;
SELECT id, is_new(_ts) FROM coll WHERE id IN (1, 2) ORDER BY id;
-- the time of the write, not of the transaction
BEGIN;
UPDATE coll SET v = 'late' WHERE id = 1;
SELECT _ts > now() AS later_than_begin FROM coll WHERE id = 1;
COMMIT;
-- a view, and a trigger of the user's, earlier by name, change nothing
CREATE VIEW coll_view AS SELECT * FROM coll;
CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW._ts := '2999-01-01'; RETURN NEW; END $$;
CREATE TRIGGER zzz BEFORE INSERT OR UPDATE ON coll FOR EACH ROW EXECUTE FUNCTION forge();
CALL tick();
UPDATE coll_view SET _ts = '2999-01-01' WHERE id = 1;
SELECT id, is_new(_ts) FROM coll WHERE id = 1;
DROP TRIGGER zzz ON coll;
-- neither the role of the client nor its settings
CREATE ROLE regress_modified;
GRANT USAGE ON SCHEMA modified TO regress_modified;
GRANT ALL ON coll, clock TO regress_modified;
SET ROLE regress_modified;
SET TimeZone = 'Asia/Kathmandu';
SET search_path = pg_temp, modified;
CALL tick();
INSERT INTO coll VALUES (10, 'client', '2999-01-01');
SELECT id, is_new(_ts) FROM coll WHERE id = 10;
SET session_replication_role = replica;
ALTER TABLE coll DISABLE TRIGGER ALL;
RESET ROLE;
SET TimeZone = 'UTC';
SET search_path = modified;

-- works with a TTL index: not modified for n seconds
CREATE TABLE cache (name text, v int);
SELECT ttl_index.track_last_modified('cache');
ALTER TABLE cache DISABLE TRIGGER "~ttl_index__ts";
INSERT INTO cache VALUES ('goes', 1, clock_timestamp() - interval '11 s'), ('stays: modified', 1, clock_timestamp() - interval '11 s');
-- tracking again enables the trigger
SELECT ttl_index.track_last_modified('cache');
SET client_min_messages = warning;
SELECT ttl_index.create_index('cache', '_ts', 10);
SET client_min_messages = notice;
INSERT INTO cache VALUES ('stays: new', 1, '2001-01-01');
UPDATE cache SET v = v + 1 WHERE name = 'stays: modified';
CALL ttl_index.run_pass();
SELECT name FROM cache ORDER BY name;

-- removable: the column stays, and is the client's again
SELECT ttl_index.untrack_last_modified('cache');
INSERT INTO cache VALUES ('forged', 1, '2999-01-01');
SELECT name FROM cache WHERE _ts = '2999-01-01';
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'cache'::regclass;
SELECT ttl_index.untrack_last_modified('cache');
SELECT ttl_index.untrack_last_modified('cache', 'nothing');

-- a column that is there, with a name that needs quoting, and a precision
CREATE TABLE "Odd ""table'" (id int, "last ""change'" timestamptz(0), other timestamptz);
INSERT INTO "Odd ""table'" VALUES (1, '2001-01-01', '2001-01-01');
SELECT ttl_index.track_last_modified('"Odd ""table''"', 'last "change''');
SELECT ttl_index.track_last_modified('"Odd ""table''"', 'other');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = '"Odd ""table''"'::regclass ORDER BY tgname;
-- ... its dates are kept until a row is changed
SELECT "last ""change'", other FROM "Odd ""table'";
UPDATE "Odd ""table'" SET id = 2;
SELECT "last ""change'" = date_trunc('second', "last ""change'") AS whole_second, "last ""change'" > '2024-01-01' AS set, other > '2024-01-01' AS other_set
FROM "Odd ""table'";
SELECT ttl_index.untrack_last_modified('"Odd ""table''"', 'last "change''');
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = '"Odd ""table''"'::regclass;
-- the longest name there can be
CREATE TABLE long_name (id int);
SELECT ttl_index.track_last_modified('long_name', repeat('x', 63)::name);
INSERT INTO long_name VALUES (1);
-- ... and another one that begins like it
SELECT ttl_index.track_last_modified('long_name', repeat('x', 62)::name);
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'long_name'::regclass ORDER BY tgname;
SELECT ttl_index.untrack_last_modified('long_name', repeat('x', 63)::name);

-- partitioned tables: the partitions that are there, and those that come
CREATE TABLE parent (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE child1 PARTITION OF parent FOR VALUES FROM (0) TO (10);
CREATE TABLE child2 (v text, gone int, id int);
ALTER TABLE child2 DROP COLUMN gone;
ALTER TABLE parent ATTACH PARTITION child2 FOR VALUES FROM (10) TO (20);
SELECT ttl_index.track_last_modified('parent');
CREATE TABLE child3 PARTITION OF parent FOR VALUES FROM (20) TO (30) PARTITION BY RANGE (id);
CREATE TABLE child3a PARTITION OF child3 FOR VALUES FROM (20) TO (30);
CREATE TABLE child4 (_ts timestamptz, id int, v text);
ALTER TABLE parent ATTACH PARTITION child4 FOR VALUES FROM (30) TO (40);
CALL tick();
INSERT INTO parent (id, v, _ts) SELECT g, 'new', '2999-01-01' FROM unnest('{1, 11, 21, 31}'::int[]) AS g;
INSERT INTO child4 (id, v, _ts) VALUES (32, 'direct', '2999-01-01');
SELECT tableoid::regclass, id, is_new(_ts) FROM parent ORDER BY id;
CALL tick();
UPDATE parent SET v = 'update', _ts = '2999-01-01';
-- ... also for a row that moves
UPDATE parent SET id = 12, _ts = '2999-01-01' WHERE id = 1;
SELECT tableoid::regclass, id, v, is_new(_ts) FROM parent ORDER BY id;
SELECT ttl_index.track_last_modified('parent'), ttl_index.track_last_modified('child1');
SELECT ttl_index.untrack_last_modified('child1');
SELECT ttl_index.untrack_last_modified('parent');
SELECT count(*) FROM pg_trigger WHERE tgrelid IN (SELECT relid FROM pg_partition_tree('parent'));
-- a single partition
SELECT ttl_index.track_last_modified('child1');
SELECT ttl_index.untrack_last_modified('child1');

-- what happens to the column afterwards
CREATE TABLE renamed (id int);
SELECT ttl_index.track_last_modified('renamed', 'a');
ALTER TABLE renamed RENAME a TO b;
INSERT INTO renamed VALUES (1);
SELECT ttl_index.untrack_last_modified('renamed', 'a');
SELECT ttl_index.track_last_modified('renamed', 'b');
INSERT INTO renamed VALUES (1);
ALTER TABLE renamed ALTER b DROP DEFAULT, ALTER b TYPE text;
INSERT INTO renamed VALUES (2);
SELECT ttl_index.track_last_modified('renamed', 'b');
ALTER TABLE renamed DROP b;
INSERT INTO renamed VALUES (2);
-- ... a column that was dropped is added again
SELECT ttl_index.track_last_modified('renamed', 'b');
INSERT INTO renamed VALUES (2);
SELECT id, b > '2024-01-01' AS set FROM renamed;
-- the table's name and schema do not matter
ALTER TABLE renamed RENAME TO renamed2;
CREATE SCHEMA modified2;
ALTER TABLE renamed2 SET SCHEMA modified2;
UPDATE modified2.renamed2 SET b = NULL;
SELECT count(b) FROM modified2.renamed2;
SELECT ttl_index.untrack_last_modified('modified2.renamed2', 'b');

-- refused
CREATE TABLE refused (id int, t text, ts timestamp, d date, g timestamptz GENERATED ALWAYS AS ('2001-01-01 00:00:00+00'::timestamptz) STORED);
SELECT ttl_index.track_last_modified('refused', 't');
SELECT ttl_index.track_last_modified('refused', 'ts');
SELECT ttl_index.track_last_modified('refused', 'd');
SELECT ttl_index.track_last_modified('refused', 'g');
SELECT ttl_index.track_last_modified('refused', 'xmin');
SELECT ttl_index.track_last_modified('refused', 'ctid');
SELECT ttl_index.track_last_modified('refused', '');
SELECT ttl_index.track_last_modified('coll_view');
SELECT ttl_index.track_last_modified('coll_pkey');
SELECT ttl_index.track_last_modified('pg_class');
SELECT ttl_index.track_last_modified('no_such_table');
SELECT ttl_index.track_last_modified('child1', 'new_column');
-- ... while it is being detached, it is a part of nothing, and takes no column yet
UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'child1'::regclass;
SELECT ttl_index.track_last_modified('child1', 'new_column');
UPDATE pg_inherits SET inhdetachpending = false WHERE inhrelid = 'child1'::regclass;
SELECT ttl_index.untrack_last_modified('coll_view');
CREATE MATERIALIZED VIEW matview AS SELECT now() AS _ts;
SELECT ttl_index.track_last_modified('matview');
-- ... a key of partitions, on any level
CREATE TABLE by_time (id int, _ts timestamptz) PARTITION BY RANGE (_ts);
CREATE TABLE by_time_1 PARTITION OF by_time DEFAULT;
CREATE TABLE by_id (_ts timestamptz, id int) PARTITION BY RANGE (id);
CREATE TABLE by_id_1 (id int, _ts timestamptz) PARTITION BY RANGE (_ts);
ALTER TABLE by_id ATTACH PARTITION by_id_1 DEFAULT;
SELECT ttl_index.track_last_modified('by_time');
SELECT ttl_index.track_last_modified('by_time_1');
SELECT ttl_index.track_last_modified('by_id');
-- ... another's table
SET ROLE regress_modified;
SELECT ttl_index.track_last_modified('coll');
SELECT ttl_index.track_last_modified('refused');
SELECT ttl_index.untrack_last_modified('coll');
RESET ROLE;
-- but one's own
GRANT CREATE ON SCHEMA modified TO regress_modified;
SET ROLE regress_modified;
CREATE TABLE mine (id int);
SELECT ttl_index.track_last_modified('mine');
INSERT INTO mine VALUES (1, '2999-01-01');
SELECT _ts < '2999-01-01' AS set FROM mine;
SELECT ttl_index.untrack_last_modified('mine');
RESET ROLE;
SELECT ttl_index.track_last_modified(NULL) IS NULL AS nothing, ttl_index.track_last_modified('refused', NULL) IS NULL AS nothing;

-- the trigger function by itself
SELECT ttl_index.set_last_modified();
CREATE TABLE by_hand (id int, ts timestamptz);
CREATE TRIGGER t AFTER INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION ttl_index.set_last_modified('ts');
INSERT INTO by_hand VALUES (1);
DROP TRIGGER t ON by_hand;
CREATE TRIGGER t BEFORE INSERT ON by_hand FOR EACH STATEMENT EXECUTE FUNCTION ttl_index.set_last_modified('ts');
INSERT INTO by_hand VALUES (1);
DROP TRIGGER t ON by_hand;
CREATE TRIGGER t BEFORE INSERT OR DELETE ON by_hand FOR EACH ROW EXECUTE FUNCTION ttl_index.set_last_modified();
INSERT INTO by_hand VALUES (1);
DROP TRIGGER t ON by_hand;
CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON by_hand FOR EACH ROW EXECUTE FUNCTION ttl_index.set_last_modified('ts');
INSERT INTO by_hand VALUES (1);
DELETE FROM by_hand;
-- ... made by hand for less than all, it does not count
SELECT ttl_index.untrack_last_modified('by_hand', 'ts');
SELECT ttl_index.track_last_modified('by_hand', 'ts');
SELECT tgname FROM pg_trigger WHERE tgrelid = 'by_hand'::regclass ORDER BY tgname;
DROP TRIGGER t ON by_hand;
SELECT ttl_index.untrack_last_modified('by_hand', 'ts');

SET client_min_messages = error;
DROP SCHEMA modified, modified2 CASCADE;
DROP ROLE regress_modified;
