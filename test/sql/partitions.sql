-- Partitioned tables: option rule 6, and rule 34 without the option of
-- dropping; a partitioned index is visited as one index.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA parts;
SET search_path = parts;
CREATE VIEW marks AS SELECT indexrelid, parent_indexrelid AS parent, expire_after_seconds AS n, state
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";

CREATE TABLE m (id int, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2000_a PARTITION OF m_2000 FOR VALUES IN ('a');
CREATE TABLE m_2000_b PARTITION OF m_2000 FOR VALUES IN ('b');
CREATE TABLE m_rest PARTITION OF m DEFAULT;
SELECT ttl_index.create_index('m', 'ts', 3600);
SELECT * FROM marks;
INSERT INTO m SELECT g, '2000-06-01', CASE WHEN g % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 10) AS g;
INSERT INTO m SELECT g, '2001-06-01', 'c' FROM generate_series(1, 5) AS g;
INSERT INTO m VALUES (1, '1999-01-01', 'd'), (2, '2999-01-01', 'stays'), (3, NULL, 'stays');
SELECT ttl_index.due_count('m_ts_ttl'), ttl_index.oldest_due('m_ts_ttl') = '1999-01-01' AS oldest;

-- one visit, one row of statistics; leaves in the order of their bounds, with one budget
SET ttl_index.index_delete_target_docs = 7;
SET ttl_index.index_delete_target_time = 0;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id FROM m ORDER BY id;
SELECT sub_passes, deleted_documents FROM ttl_index.stats;
SELECT indexrelname, visits, deleted_documents FROM ttl_index.index_stats;
RESET ttl_index.index_delete_target_docs;
RESET ttl_index.index_delete_target_time;

-- a partition that comes later has the option, by PARTITION OF and by ATTACH
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
CREATE TABLE m_2003 (kind text, id int, ts timestamptz);
CREATE INDEX plain ON m_2003 (ts);
CREATE TABLE m_2004 (id int, ts timestamptz, kind text);
CREATE INDEX other_n ON m_2004 (ts) WHERE ttl_index.expire_after_seconds(5);
ALTER TABLE m ATTACH PARTITION m_2003 FOR VALUES FROM ('2003-01-01') TO ('2004-01-01');
ALTER TABLE m ATTACH PARTITION m_2004 FOR VALUES FROM ('2004-01-01') TO ('2005-01-01');
SELECT * FROM marks WHERE indexrelid::text ~ '^(m_2002|plain|other_n)';
\d plain
\d other_n
-- so DETACH neither silences nor revives one, and says so
SET client_min_messages = notice;
ALTER TABLE m DETACH PARTITION m_2004;
ALTER TABLE m DETACH PARTITION m_2003 CONCURRENTLY;
SET client_min_messages = warning;
ALTER TABLE m DETACH PARTITION m_rest;
ALTER TABLE m DETACH PARTITION m_2003 CONCURRENTLY;
SELECT * FROM marks WHERE indexrelid::text ~ '^(plain|other_n)';

-- also at the last level, and where a transaction attaches and detaches
CREATE TABLE d (id int, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE d_mid PARTITION OF d DEFAULT PARTITION BY LIST (kind);
CREATE TABLE d_low PARTITION OF d_mid DEFAULT PARTITION BY RANGE (id);
CREATE TABLE d_leaf PARTITION OF d_low DEFAULT;
CREATE INDEX d_leaf_ts ON d_leaf (ts) WHERE ttl_index.expire_after_seconds(5);
CREATE INDEX d_leaf_id ON d_leaf (id, ts);
CREATE INDEX d_ts ON d (ts) WHERE ttl_index.expire_after_seconds(3600);
ALTER TABLE d_mid DETACH PARTITION d_low;
SELECT * FROM marks WHERE indexrelid::text ~ '^d_';
SELECT pg_get_expr(indpred, indrelid) AS d_leaf_ts FROM pg_index WHERE indexrelid = 'd_leaf_ts'::regclass;
BEGIN;
SELECT ttl_index.coll_mod_index('d_ts', 7200);
ALTER TABLE d_mid ATTACH PARTITION d_low DEFAULT;
ALTER TABLE d_mid DETACH PARTITION d_low;
SAVEPOINT s;
ALTER TABLE d DETACH PARTITION d_mid;
ROLLBACK TO s;
SELECT ttl_index.coll_mod_index('d_ts', 60);
ALTER TABLE d DETACH PARTITION d_mid;
COMMIT;
SELECT * FROM marks WHERE indexrelid::text ~ '^d_';
-- a TTL of a partition's own stays its own
CREATE INDEX d_mid_own ON d_mid (ts) WHERE kind = 'x' AND ttl_index.expire_after_seconds(77);
ALTER TABLE d ATTACH PARTITION d_mid DEFAULT;
ALTER TABLE d DETACH PARTITION d_mid;
SELECT * FROM marks WHERE indexrelid::text ~ '^d_mid';
DROP TABLE d, d_mid, d_low;

-- what event triggers missed is not written, but governs
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
ALTER TABLE m ATTACH PARTITION m_rest DEFAULT;
CREATE TABLE m_2005 (kind text, id int, ts timestamptz);
CREATE INDEX plain_2005 ON m_2005 (ts);
CREATE TABLE m_2006 (kind text, id int, ts timestamptz);
CREATE INDEX malformed ON m_2006 (ts) WHERE ttl_index.expire_after_seconds(5, 5);
ALTER TABLE m ATTACH PARTITION m_2005 FOR VALUES FROM ('2005-01-01') TO ('2006-01-01');
ALTER TABLE m ATTACH PARTITION m_2006 FOR VALUES FROM ('2006-01-01') TO ('2007-01-01');
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
INSERT INTO m VALUES (1, '2005-06-01', 'x'), (1, '2006-06-01', 'x');
CALL ttl_index.run_pass();
SELECT count(*) FROM m WHERE id = 1;
\d plain_2005
\d malformed

-- a filter, and columns that stand elsewhere in a partition
CREATE TABLE f (id int, dead text, ts timestamptz, kind text) PARTITION BY RANGE (ts);
ALTER TABLE f DROP dead;
CREATE TABLE f_old (kind text, junk int, ts timestamptz, id int);
ALTER TABLE f_old DROP junk;
ALTER TABLE f ATTACH PARTITION f_old FOR VALUES FROM (MINVALUE) TO ('2002-01-01');
SELECT ttl_index.create_index('f', 'ts', 0, 'kind = ''debug'' AND id > 5');
INSERT INTO f SELECT g, '2001-01-01', CASE WHEN g <= 8 THEN 'debug' ELSE 'error' END FROM generate_series(1, 10) AS g;
CALL ttl_index.run_pass();
SELECT id, kind FROM f ORDER BY id;
SELECT indexrelid, partial_filter_expression FROM ttl_index.indexes WHERE indexrelid::text LIKE 'f%' ORDER BY 1;

-- a TTL index of a leaf under a plain index of its parent governs itself
CREATE TABLE p (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p_old PARTITION OF p FOR VALUES FROM (MINVALUE) TO ('2002-01-01');
CREATE TABLE p_new PARTITION OF p FOR VALUES FROM ('2002-01-01') TO (MAXVALUE);
CREATE INDEX p_old_ts ON p_old (ts) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX p_ts ON p (ts);
INSERT INTO p VALUES ('2001-01-01'), ('2003-01-01');
CALL ttl_index.run_pass();
SELECT * FROM p;
SELECT * FROM marks WHERE indexrelid::text LIKE 'p\_%';
SELECT ttl_index.remove_ttl('p_old_ts');

-- a parent without all its children is not valid yet; CREATE INDEX ON ONLY and ATTACH
CREATE TABLE o (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE o_old PARTITION OF o FOR VALUES FROM (MINVALUE) TO ('2002-01-01');
INSERT INTO o VALUES ('2001-01-01');
CREATE INDEX o_ts ON ONLY o (ts) WHERE ttl_index.expire_after_seconds(0);
SELECT * FROM marks WHERE indexrelid::text LIKE 'o\_%';
CALL ttl_index.run_pass();
SELECT count(*) FROM o;
CREATE INDEX o_old_ts ON o_old (ts);
ALTER INDEX o_ts ATTACH PARTITION o_old_ts;
SELECT * FROM marks WHERE indexrelid::text LIKE 'o\_%';
CALL ttl_index.run_pass();
SELECT count(*) FROM o;

-- two indexes of the same table; time zones; dates as the partition key
CREATE TABLE z (d date) PARTITION BY RANGE (d);
CREATE TABLE z_old PARTITION OF z FOR VALUES FROM ('1950-01-01') TO ('2002-01-01');
SELECT ttl_index.create_index('z', 'd', 0, time_zone => 'Asia/Tokyo');
INSERT INTO z VALUES ('1960-01-01'), ('2001-12-31');
CALL ttl_index.run_pass();
SELECT count(*) FROM z;

-- a partition for which the visit had no time left belongs to the same pass
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.02); RETURN OLD; END $$;
CREATE TABLE v (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE TABLE v_1 PARTITION OF v FOR VALUES IN (1);
CREATE TABLE v_2 PARTITION OF v FOR VALUES IN (2);
CREATE TRIGGER slow BEFORE DELETE ON v_1 FOR EACH ROW EXECUTE FUNCTION slow();
CREATE INDEX ON v (ts) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO v VALUES (1, '2001-01-01'), (2, '2001-01-01');
SET ttl_index.index_delete_target_time = '10ms';
CALL ttl_index.run_pass();
RESET ttl_index.index_delete_target_time;
SELECT count(*) FROM v;

-- plain inheritance is no partitioning: an index is on its own table only
CREATE TABLE base (ts timestamptz);
CREATE TABLE derived () INHERITS (base);
SELECT ttl_index.create_index('base', 'ts', 0);
INSERT INTO base VALUES ('2001-01-01');
INSERT INTO derived VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT tableoid::regclass FROM base;
SET client_min_messages = error;
DROP SCHEMA parts CASCADE;
