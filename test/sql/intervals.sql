-- Times to live as intervals: ttl_index.seconds(), in functions and inside the option.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA iv;
SET search_path = iv;

SELECT ttl_index.seconds('30 days') AS days, ttl_index.seconds('2 weeks 1 hour') AS weeks,
	ttl_index.seconds(interval '90' minute) AS minutes, ttl_index.seconds('0') AS zero,
	ttl_index.seconds('1 day -1 second') AS mixed, ttl_index.seconds('1 year -12 months 5 s') AS no_month_left,
	ttl_index.seconds('24855 days 03:14:07') AS longest, ttl_index.seconds(NULL) AS "null";
-- what has no fixed length, no whole seconds, or no place in an integer
SELECT ttl_index.seconds('1 month');
SELECT ttl_index.seconds('2 years');
SELECT ttl_index.seconds('1 month -30 days');
SELECT ttl_index.seconds('1.5 seconds');
SELECT ttl_index.seconds('-1 day');
SELECT ttl_index.seconds('24855 days 03:14:08');
SELECT ttl_index.seconds('2147483647 days');
-- whatever stands in front of pg_catalog
CREATE FUNCTION trunc(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 666';
CREATE FUNCTION isfinite(interval) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false';
CREATE FUNCTION gt(numeric, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR <> (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = gt);
SET search_path = iv, pg_catalog;
SELECT ttl_index.seconds('1 day');
SET search_path = iv;
CALL ttl_index.run_pass();
DROP OPERATOR <> (numeric, integer);
DROP FUNCTION trunc(numeric), isfinite(interval), gt(numeric, integer);

-- in every function that takes seconds
CREATE TABLE t (id int, at timestamptz, other timestamptz, filtered timestamptz);
INSERT INTO t SELECT g, '2001-01-01', '2001-01-01' FROM generate_series(1, 10) AS g;
SELECT ttl_index.create_index('t', 'at', ttl_index.seconds('30 days'));
SELECT * FROM ttl_index.create_index_command('t', 'other', ttl_index.seconds('1 hour'));
SELECT * FROM ttl_index.coll_mod('t', 'at', ttl_index.seconds('60 days'));
SELECT * FROM ttl_index.coll_mod_index('t_at_ttl', ttl_index.seconds('90 days'));

-- inside the option, the index stores and shows what was written
CREATE INDEX t_other ON t (other) WHERE ttl_index.expire_after_seconds(ttl_index.seconds('30 days'));
CREATE INDEX t_filtered ON t (filtered) WHERE id > 5
	AND ttl_index.expire_after_seconds(seconds => ttl_index.seconds(span => '6 days 23:00'::interval) + 60);
SELECT pg_get_indexdef(i) FROM unnest('{t_other,t_filtered}'::regclass[]) AS i;
SELECT indexrelid, key, expire_after_seconds, partial_filter_expression, state FROM ttl_index.indexes ORDER BY indexrelid::text;
-- the number is what SQL has for it
SELECT bool_and(expire_after_seconds = CASE indexrelid::text WHEN 't_other' THEN ttl_index.seconds('30 days')
	WHEN 't_filtered' THEN ttl_index.seconds('6 days 23:01') ELSE ttl_index.seconds('90 days') END) AS same FROM ttl_index.indexes;
CREATE INDEX bad ON t (at) WHERE ttl_index.expire_after_seconds(ttl_index.seconds('1 month'));
CREATE INDEX bad ON t (at) WHERE ttl_index.expire_after_seconds(ttl_index.seconds(NULL));
CREATE INDEX bad ON t (at) WHERE ttl_index.expire_after_seconds(ttl_index.seconds(id * interval '1 day'));
-- it is no option by itself
CREATE INDEX t_plain ON t (id) WHERE id < ttl_index.seconds('1 day');
SELECT count(*) FROM ttl_index.indexes;
DROP INDEX t_plain;

-- the planner sees none of it
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE other < '2001-01-02';
SELECT count(*) FROM t WHERE other < '2001-01-02';
RESET enable_seqscan;

-- a pass goes by it
UPDATE t SET other = now() - interval '719 hours' WHERE id <= 4;
SELECT ttl_index.due_count('t_other');
UPDATE t SET at = NULL;
CALL ttl_index.run_pass();
SELECT count(*) FROM t;

-- a copy has it as it was written; coll_mod and REINDEX CONCURRENTLY write the number
SET client_min_messages = error;
CREATE TABLE copy (LIKE t INCLUDING INDEXES);
SELECT pg_get_indexdef(indexrelid) FROM ttl_index.indexes WHERE relid = 'copy'::regclass AND key = 'other';
DROP TABLE copy;
SELECT * FROM ttl_index.coll_mod_index('t_filtered', ttl_index.seconds('3 days'));
REINDEX INDEX CONCURRENTLY t_other;
CALL ttl_index.run_pass();
SELECT pg_get_indexdef(i) FROM unnest('{t_other,t_filtered}'::regclass[]) AS i;
-- what is left does not depend on the function
SELECT indexrelid, pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_depend JOIN ttl_index.indexes
	ON classid = 'pg_class'::regclass AND objid = indexrelid AND refclassid = 'pg_proc'::regclass ORDER BY 1, 2;
CREATE INDEX t_id ON t (id) WHERE id < ttl_index.seconds('1 day');
SELECT ttl_index.remove_all_ttl();
SELECT objid::regclass FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND classid = 'pg_class'::regclass
	AND refobjid = 'ttl_index.seconds'::regproc ORDER BY 1;
DROP INDEX t_id;

-- partitions are told apart by the number, not by how it is written
CREATE TABLE p (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE INDEX p1_at ON p1 (at) WHERE ttl_index.expire_after_seconds(86400);
CREATE INDEX p_at ON p (at) WHERE ttl_index.expire_after_seconds(ttl_index.seconds('1 day'));
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
CREATE TABLE p3 (LIKE p);
CREATE INDEX p3_at ON p3 (at) WHERE ttl_index.expire_after_seconds(ttl_index.seconds('5 days'));
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM ('2003-01-01') TO ('2004-01-01');
SELECT indexrelid, parent_indexrelid, expire_after_seconds, state, substring(pg_get_indexdef(indexrelid), 'WHERE.*')
FROM ttl_index.indexes ORDER BY indexrelid::text;
ALTER TABLE p DETACH PARTITION p2;
SELECT indexrelid, parent_indexrelid, expire_after_seconds, state, substring(pg_get_indexdef(indexrelid), 'WHERE.*')
FROM ttl_index.indexes ORDER BY indexrelid::text;
DROP TABLE p, p2;

DROP SCHEMA iv CASCADE;
