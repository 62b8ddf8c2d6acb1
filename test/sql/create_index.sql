-- create_index, create_index_command and drop_index: rules 13 to 16.
\set SHOW_CONTEXT never
CREATE SCHEMA ci;
SET search_path = ci;
CALL ttl_index.run_pass();
CREATE TABLE eventlog (_id int PRIMARY KEY, last_modified timestamptz, created date, at timestamp,
	dates timestamptz[], kind text, doc json, deadline timestamptz UNIQUE);
INSERT INTO eventlog (_id, last_modified)
	SELECT g, CASE WHEN g <= 900 THEN '2001-01-01'::timestamptz ELSE '2999-01-01' END FROM generate_series(1, 1000) AS g;

-- rule 16: how many rows are due at once
SELECT ttl_index.create_index('eventlog', 'last_modified', 3600);
SELECT indexrelid, relid, key, expire_after_seconds, time_zone, partial_filter_expression, state FROM ttl_index.indexes;
-- rule 15: the same again is a no-op, other options are an error that names coll_mod
SELECT ttl_index.create_index('eventlog', 'last_modified', 3600);
SELECT ttl_index.create_index('eventlog', 'last_modified', 60);
-- a key with a filter is another key
SELECT ttl_index.create_index('eventlog', 'last_modified', 60, 'kind = ''debug''');
SELECT ttl_index.create_index('eventlog', 'last_modified', 60, partial_filter_expression => 'kind=''debug''::text -- the same');
SELECT ttl_index.create_index('eventlog', 'last_modified', 61, 'kind = ''debug''');
SELECT ttl_index.create_index('eventlog', 'last_modified', 60, 'kind = ''trace''', name => 'My "trace" index');
\d eventlog
SELECT ttl_index.drop_index('eventlog', 'last_modified');
DROP INDEX "My ""trace"" index", eventlog_last_modified_ttl1;
SELECT ttl_index.drop_index('eventlog', 'last_modified');
SELECT ttl_index.drop_index('eventlog', 'last_modified');

-- a plain index on the key: coll_mod
CREATE INDEX plain ON eventlog (last_modified);
SELECT ttl_index.create_index('eventlog', 'last_modified', 3600);
SELECT ttl_index.drop_index('eventlog', 'last_modified');
DROP INDEX plain;
-- a compound one is another key, a unique one cannot have the option
CREATE INDEX compound ON eventlog (last_modified, kind);
CREATE UNIQUE INDEX uniq ON eventlog (created, _id);
SELECT ttl_index.create_index('eventlog', 'last_modified', 2147483647);
SELECT ttl_index.drop_index('eventlog', 'last_modified');

-- an index of its own on the key of a constraint is fine, in all ways
SELECT ttl_index.create_index('eventlog', 'deadline', 10);
SELECT ttl_index.create_index('eventlog', 'deadline', 10);
CREATE TABLE pk (ts timestamptz PRIMARY KEY);
SELECT ttl_index.coll_mod('pk', 'ts', 10);
SELECT ttl_index.coll_mod_index('pk_pkey', 10);
CREATE INDEX pk_plain ON pk (ts);
SELECT ttl_index.create_index('pk', 'ts', 10);
SELECT ttl_index.coll_mod('pk', 'ts', 10);
SELECT ttl_index.drop_index('pk', 'ts');
CREATE INDEX pk_ttl ON pk (ts) WHERE ttl_index.expire_after_seconds(10);
SELECT ttl_index.coll_mod('pk', 'ts', 20);
SELECT ttl_index.create_index('pk', 'ts', 20);

-- rule 13
SELECT ttl_index.create_index('eventlog', 'last_modified', -1);
SELECT ttl_index.create_index('eventlog', 'last_modified', NULL);
SELECT ttl_index.create_index('eventlog', NULL, 1);
SELECT ttl_index.create_index(NULL, 'last_modified', 1);
SELECT ttl_index.create_index('eventlog', 'nothing', 1);
SELECT ttl_index.create_index('eventlog', 'ctid', 1);
SELECT ttl_index.create_index('eventlog', 'kind', 1);
SELECT ttl_index.create_index('eventlog', 'doc', 1);
SELECT ttl_index.create_index('eventlog', 'created', 1);
SELECT ttl_index.create_index('eventlog', 'at', 1, time_zone => 'Berlin+3');
SELECT ttl_index.create_index('eventlog', 'at', 1, time_zone => '');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, time_zone => 'Europe/Berlin');
SELECT ttl_index.create_index('compound', 'last_modified', 1);
CREATE VIEW v AS SELECT * FROM eventlog;
SELECT ttl_index.create_index('v', 'last_modified', 1);
SELECT ttl_index.create_index(0, 'last_modified', 1);
CREATE TEMP TABLE temporary (ts timestamptz);
SELECT ttl_index.create_index('temporary', 'ts', 1);
SELECT ttl_index.create_index('pg_catalog.pg_class', 'relname', 1);

-- a filter is one expression, nothing else
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'true) ; DROP TABLE eventlog; --');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'true; DROP TABLE eventlog');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'kind FROM eventlog');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'kind');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'kind = ''x'', true');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'last_modified < now()');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, 'nothing = 1');
SELECT ttl_index.create_index('eventlog', 'last_modified', 1, '(SELECT true)');

-- the types of keys (rule 8)
SELECT ttl_index.create_index('eventlog', 'created', 1, time_zone => 'Europe/Berlin');
SELECT ttl_index.create_index('eventlog', 'at', 1, time_zone => 'America/New_York');
SELECT ttl_index.create_index('eventlog', 'dates', 1);
SELECT ttl_index.create_index('eventlog', 'dates', 1);
SELECT ttl_index.create_index('eventlog', 'dates', 2);
SELECT indexrelid, key, expire_after_seconds, time_zone FROM ttl_index.indexes ORDER BY 1;
CREATE DOMAIN stamp AS timestamptz;
CREATE TABLE with_domain (ts stamp);
SELECT ttl_index.create_index('with_domain', 'ts', 1);

-- names that need quotes
CREATE SCHEMA "Sch ""x""";
CREATE TABLE "Sch ""x"""."select Table" ("From" timestamptz, "a""b c" timestamptz, "user" timestamptz[], k int);
SELECT ttl_index.create_index('"Sch ""x"""."select Table"', 'From', 1);
SELECT ttl_index.create_index('"Sch ""x"""."select Table"', 'a"b c', 1, '"From" IS NOT NULL');
SELECT ttl_index.create_index('"Sch ""x"""."select Table"', 'user', 1, name => 'Table');
\d "Sch ""x"""."select Table"
SELECT ttl_index.create_index_command('"Sch ""x"""."select Table"', 'a"b c', 3600, 'k > 1', concurrently => true);
SELECT ttl_index.create_index_command('eventlog', 'dates', 1);
SELECT ttl_index.create_index_command('eventlog', 'last_modified', 3600, concurrently => true) \gexec
SELECT indexrelid, key, state FROM ttl_index.indexes WHERE relid = 'eventlog'::regclass ORDER BY 1;

-- rule 16: no date at all is worth a warning; the numbers come from a sample
CREATE TABLE empty_key (ts timestamptz, n int);
INSERT INTO empty_key (n) SELECT generate_series(1, 100);
SELECT ttl_index.create_index('empty_key', 'ts', 1);
CREATE TABLE nothing (ts timestamptz);
SELECT ttl_index.create_index('nothing', 'ts', 1);

-- a name that is taken is CREATE INDEX's own error
SELECT ttl_index.create_index('nothing', 'ts', 1, 'ts > ''2001-01-01''', name => 'plain_name');
SELECT ttl_index.create_index('nothing', 'ts', 1, 'ts > ''2002-01-01''', name => 'plain_name');

SET client_min_messages = error;
DROP SCHEMA ci, "Sch ""x""" CASCADE;
