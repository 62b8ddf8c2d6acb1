-- What will fall due, and what would go first.
SET client_min_messages = warning;
CREATE SCHEMA forecast;
SET search_path = forecast;
CREATE TABLE t (id int, ts timestamptz, pad text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, now() - interval '10 hours' + g * interval '1 minute', repeat('x', 100) FROM generate_series(1, 1200) AS g;
CREATE INDEX t_i ON t (ts) WHERE id > 0 AND ttl_index.expire_after_seconds(3600);
-- nothing is known before ANALYZE
SELECT count(*), count(documents), count(bytes) FROM ttl_index.forecast('t_i');
ANALYZE t;
-- 540 rows are due, and 60 more with each hour until the eleventh
SELECT f.n, due_from = '-infinity' AS first, due_until - lag(due_until) OVER (ORDER BY n) AS step,
	documents BETWEEN expected - 15 AND expected + 15 AS about, bytes BETWEEN 100 * documents AND 400 * documents AS space
FROM ttl_index.forecast('t_i', '3 hours', 5) WITH ORDINALITY AS f (due_from, due_until, documents, bytes, n)
JOIN (VALUES (1, 540), (2, 180), (3, 180), (4, 180), (5, 120), (6, 0)) AS e (n, expected) USING (n);
SELECT count(*), sum(documents) BETWEEN 1190 AND 1210 AS all_rows FROM ttl_index.forecast('t_i', '1 day', 1);
-- right after a pass, before the next ANALYZE, the rows that it has deleted are not due
BEGIN;
DELETE FROM t WHERE ts <= now() - interval '59 minutes';
SELECT documents BETWEEN 0 AND 5 AS none, due_from = '-infinity' AS first FROM ttl_index.forecast('t_i', '1 hour', 0);
SELECT documents BETWEEN 45 AND 75 AS about FROM ttl_index.forecast('t_i', '1 hour', 1) OFFSET 1;
ROLLBACK;
SELECT count(*), max(due_until) - min(due_until) AS span FROM ttl_index.forecast('t_i');
-- a later TTL
SELECT count(*) FROM ttl_index.coll_mod_index('t_i', 86400);
SELECT sum(documents) FROM ttl_index.forecast('t_i', '1 hour', 3);
SELECT * FROM ttl_index.forecast('t_i', '0', 3);
SELECT * FROM ttl_index.forecast('t_i', '-1 day', 1);
SELECT * FROM ttl_index.forecast('t_i', '1 day', -1);
SELECT * FROM ttl_index.forecast('t_i', '1 day', 100001);
DROP TABLE t;

-- expressions, documents with a TTL of their own, and dates in a zone
CREATE TABLE x (d date, ts timestamptz, doc jsonb);
INSERT INTO x SELECT '2001-01-01', now() - interval '100 s', CASE WHEN g > 40 THEN '{"ttl": 7200}' ELSE '{}' END::jsonb FROM generate_series(1, 100) AS g;
CREATE INDEX x_d ON x (d) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.time_zone('UTC');
SELECT ttl_index.create_index('x', 'ts', 60, document_ttl_field => 'doc.ttl');
ANALYZE x;
SELECT documents > 50 FROM ttl_index.forecast('x_d', '1 hour', 0);
SELECT n, documents FROM ttl_index.forecast('x_ts_ttl', '4 hours', 1) WITH ORDINALITY AS f (a, b, documents, c, n);
SELECT n, documents FROM ttl_index.forecast('x_ts_own_ttl', '4 hours', 1) WITH ORDINALITY AS f (a, b, documents, c, n);
DROP TABLE x;

-- partitions that go as a whole do so at their upper bound
CREATE TABLE p (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p_old PARTITION OF p FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE p_new PARTITION OF p FOR VALUES FROM ('2002-01-01') TO ('2999-01-01');
CREATE INDEX p_i ON p (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions();
INSERT INTO p SELECT '2001-02-03' FROM generate_series(1, 10);
INSERT INTO p SELECT '2002-02-03' FROM generate_series(1, 20);
VACUUM ANALYZE p;
SELECT documents FROM ttl_index.forecast('p_i', '1 day', 2);
SELECT count(*), count(DISTINCT r) FROM ttl_index.preview('p_i', 100) AS r;
DROP TABLE p;

-- statistics that make no sense, as owners can write them from 18 on, have no strange results
CREATE TABLE nonsense (ts timestamptz);
INSERT INTO nonsense SELECT ts FROM unnest('{2001-01-01, 2999-01-01}'::timestamptz[]) AS ts, generate_series(1, 50);
CREATE INDEX nonsense_i ON nonsense (ts) WHERE ttl_index.expire_after_seconds(60);
ANALYZE nonsense;
UPDATE pg_statistic SET stanumbers1 = '{NaN, 0.5}' WHERE starelid = 'nonsense'::regclass;
SELECT documents FROM ttl_index.forecast('nonsense_i', '1000 years', 1);
UPDATE pg_statistic SET stanumbers1 = '{7, -7}' WHERE starelid = 'nonsense'::regclass;
SELECT documents FROM ttl_index.forecast('nonsense_i', '1000 years', 1);
UPDATE pg_statistic SET stanumbers1 = '{0.5}' WHERE starelid = 'nonsense'::regclass;
SELECT documents FROM ttl_index.forecast('nonsense_i', '1000 years', 1);
UPDATE pg_class SET reltuples = '3e38' WHERE oid = 'nonsense_i'::regclass;
SELECT documents FROM ttl_index.forecast('nonsense_i', '1000 years', 1);
UPDATE pg_class SET reltuples = 'NaN' WHERE oid = 'nonsense_i'::regclass;
SELECT documents FROM ttl_index.forecast('nonsense_i', '1000 years', 1);
DROP TABLE nonsense;

-- the rows that would go, as the pass decides, the oldest first
CREATE TABLE r (id int, ts timestamptz, "a name" text DEFAULT 'x');
CREATE INDEX r_i ON r (ts) WHERE id <> 3 AND ttl_index.expire_after_seconds(60);
INSERT INTO r VALUES (1, '2001-01-03 00:00+00'), (2, '2001-01-01 00:00+00'), (3, '2001-01-01'), (4, '2999-01-01'), (5, NULL), (6, '2001-01-02 00:00+00');
SET timezone = 'UTC';
SELECT * FROM ttl_index.preview('r_i');
SELECT r ->> 'id' AS id FROM ttl_index.preview('r_i', 2) AS r;
SELECT ttl_index.preview('r_i', 0);
SELECT ttl_index.preview('r_i', -1);
-- many rows take no more memory than few: a cast that preview() calls for each of them says how much that is
CREATE TYPE gauge AS ENUM ('full');
CREATE FUNCTION read_gauge(gauge) RETURNS json LANGUAGE sql AS
	$$SELECT to_json(sum(total_bytes)) FROM pg_catalog.pg_backend_memory_contexts$$;
CREATE CAST (gauge AS json) WITH FUNCTION read_gauge(gauge);
CREATE TABLE wide (ts timestamptz, gauge gauge, payload text);
ALTER TABLE wide ALTER payload SET STORAGE EXTERNAL;
CREATE INDEX wide_i ON wide (ts) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO wide SELECT '2001-01-01', CASE WHEN g % 100 = 0 THEN gauge 'full' END, repeat('x', 10000) FROM generate_series(1, 2000) AS g;
SELECT count(*), max((r ->> 'gauge')::bigint) - min((r ->> 'gauge')::bigint) < 20 * 1000 * 1000 AS lean
	FROM ttl_index.preview('wide_i', 2000) AS r;
DROP TABLE wide;
-- those who watch see how many, the owner sees what
CREATE ROLE regress_ttl_seer IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA forecast TO regress_ttl_seer;
SET ROLE regress_ttl_seer;
SELECT ttl_index.due_count('forecast.r_i');
SELECT count(*) FROM ttl_index.forecast('forecast.r_i', '1 hour', 1);
SELECT ttl_index.preview('forecast.r_i');
RESET ROLE;
DROP SCHEMA forecast CASCADE;
DROP ROLE regress_ttl_seer;
