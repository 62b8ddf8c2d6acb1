-- Rule 34: partitions that are due go as a whole.  The exact instants are in
-- test/t/040_time_series.pl, whose clock stands still.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA buckets;
SET search_path = buckets;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, drop_expired_partitions AS dropping, state, reason
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE VIEW counts AS SELECT relname, deleted_documents AS documents, deleted_buckets AS buckets, skipped_locked AS locked,
	errors, last_error FROM ttl_index.index_stats WHERE schemaname = 'buckets' ORDER BY relname COLLATE "C";

-- the option is true whatever its arguments are, so the planner never sees it
SELECT bool_and(ttl_index.drop_expired_partitions(a, b)) FROM (VALUES (true), (false), (NULL)) AS x (a),
	(VALUES (false), (NULL)) AS y (b);
SELECT bool_and(ttl_index.bucket_max_span_seconds(a)) FROM (VALUES (60), (-2147483648), (2147483647), (0), (NULL)) AS x (a);

-- what is wholly due goes; in the other partitions rows that are due stay, and
-- those of the DEFAULT partition go one by one
CREATE TABLE m (id int, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE m_minimum PARTITION OF m FOR VALUES FROM (MINVALUE) TO ('1960-01-01');
CREATE TABLE m_1960 PARTITION OF m FOR VALUES FROM ('1960-01-01') TO ('1969-12-31');
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2001_a PARTITION OF m_2001 FOR VALUES IN ('a');
CREATE TABLE m_2001_b PARTITION OF m_2001 FOR VALUES IN ('b');
CREATE TABLE m_now PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2999-01-01');
CREATE TABLE m_infinity PARTITION OF m FOR VALUES FROM ('2999-01-01') TO (MAXVALUE);
CREATE TABLE m_rest PARTITION OF m DEFAULT;
INSERT INTO m VALUES (1, '-infinity', 'a'), (2, '1959-12-31', 'a'), (3, '1960-01-01', 'a'), (4, '2000-01-01', 'a'),
	(5, '2001-01-01', 'a'), (6, '2001-01-01', 'b'), (7, '2002-01-01', 'a'), (8, '2998-01-01', 'a'), (9, '2999-01-01', 'a'),
	(10, 'infinity', 'a'), (11, '1980-01-01', 'a'), (12, NULL, 'a');
SELECT ttl_index.create_index('m', 'ts', 300, drop_expired_partitions => true);
\d m
-- the parts carry the TTL alone: an option about partitions is of no use to them
\d m_2001
\d m_now
SELECT indexrelid, n, dropping, state FROM marks;
SELECT ttl_index.due_count('m_ts_ttl'), ttl_index.oldest_due('m_ts_ttl'), ttl_index.due_count('m_now_ts_idx'),
	ttl_index.due_count('m_2000_ts_idx');
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id FROM m ORDER BY id;
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^m_' AND relkind IN ('r', 'p') ORDER BY 1;
SELECT passes, deleted_documents, deleted_buckets, errors FROM ttl_index.stats;
SELECT * FROM counts;
SELECT ttl_index.due_count('m_ts_ttl');

-- with delete_boundary_rows nothing that is due stays
SELECT * FROM ttl_index.coll_mod('m', 'ts', 300, delete_boundary_rows => true);
\d m
SELECT ttl_index.due_count('m_ts_ttl');
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id FROM m ORDER BY id;
-- the option can be taken back, and given, without a rebuild
SELECT * FROM ttl_index.coll_mod_index('m_ts_ttl', 300, drop_expired_partitions => false);
\d m
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
INSERT INTO m VALUES (20, '2000-06-01', 'a');
CALL ttl_index.run_pass();
SELECT count(*) FROM m_2000;
SELECT * FROM ttl_index.coll_mod('m', 'ts', 301, drop_expired_partitions => true);
SELECT * FROM ttl_index.coll_mod('m', 'ts', 302);
CALL ttl_index.run_pass();
SELECT to_regclass('m_2000');
-- a TTL longer than a partition is old
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT * FROM ttl_index.coll_mod('m', 'ts', 2147483647);
CALL ttl_index.run_pass();
SELECT to_regclass('m_2000');
-- without a TTL, and with one that is given anew without the option, partitions stay
SELECT ttl_index.remove_ttl('m_ts_ttl');
\d m
SELECT * FROM ttl_index.coll_mod('m', 'ts', 0);
CALL ttl_index.run_pass();
SELECT to_regclass('m_2000');
DROP TABLE m;

-- keys without an instant of their own; bounds far from 1970 to 2038
CREATE TABLE d (day date) PARTITION BY RANGE (day);
CREATE TABLE d_minimum PARTITION OF d FOR VALUES FROM ('-infinity') TO ('1900-01-01');
CREATE TABLE d_past PARTITION OF d FOR VALUES FROM ('1900-01-01') TO ('2000-01-01');
CREATE TABLE d_now PARTITION OF d FOR VALUES FROM ('2000-01-01') TO ('3000-01-01');
CREATE TABLE d_far PARTITION OF d FOR VALUES FROM ('3000-01-01') TO ('5874897-12-31');
CREATE TABLE d_infinity PARTITION OF d FOR VALUES FROM ('5874897-12-31') TO ('infinity');
SELECT ttl_index.create_index('d', 'day', 0, time_zone => 'Europe/Berlin', drop_expired_partitions => true);
CREATE TABLE t (ts timestamp) PARTITION BY RANGE (ts);
CREATE TABLE t_minimum PARTITION OF t FOR VALUES FROM ('4713-01-01 BC') TO ('1900-01-01');
CREATE TABLE t_past PARTITION OF t FOR VALUES FROM ('1900-01-01') TO ('2000-01-01');
CREATE TABLE t_now PARTITION OF t FOR VALUES FROM ('2000-01-01') TO ('2100-01-01');
CREATE TABLE t_far PARTITION OF t FOR VALUES FROM ('2100-01-01') TO ('294276-01-01');
CREATE TABLE t_infinity PARTITION OF t FOR VALUES FROM ('294276-01-01') TO ('infinity');
CREATE DOMAIN moment AS timestamptz;
CREATE TABLE o (ts moment) PARTITION BY RANGE (ts);
CREATE TABLE o_past PARTITION OF o FOR VALUES FROM ('1900-01-01') TO ('2000-01-01');
CREATE TABLE o_now PARTITION OF o FOR VALUES FROM ('2000-01-01') TO ('2100-01-01');
CREATE INDEX o_ttl ON o (ts DESC) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions(false);
CREATE INDEX t_ttl ON t (ts) WHERE ttl_index.drop_expired_partitions(true)
	AND ttl_index.time_zone('Asia/Tokyo') AND ttl_index.expire_after_seconds(60);
CALL ttl_index.run_pass();
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^[dto]_.*[^xl]$' AND relkind = 'r' ORDER BY 1;
DROP TABLE d, t, o;

-- the table must be partitioned by RANGE of the key alone
CREATE TABLE plain (ts timestamptz);
CREATE INDEX plain_ttl ON plain (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
SELECT ttl_index.create_index('plain', 'ts', 1, drop_expired_partitions => true);
SELECT ttl_index.create_index('plain', 'ts', 1, delete_boundary_rows => true);
SELECT ttl_index.create_index('plain', 'ts', 1);
SELECT ttl_index.coll_mod('plain', 'ts', 1, drop_expired_partitions => true);
SELECT ttl_index.coll_mod('plain', 'ts', 1, delete_boundary_rows => true);
CREATE TABLE two (a timestamptz, b timestamptz, kind text) PARTITION BY RANGE (a, b);
SELECT ttl_index.create_index_command('two', 'a', 1, drop_expired_partitions => true);
CREATE TABLE list (a timestamptz, kind text) PARTITION BY LIST (kind);
CREATE INDEX ON list (a) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
CREATE TABLE hash (a timestamptz) PARTITION BY HASH (a);
CREATE INDEX ON hash (a) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
CREATE TABLE expression (a timestamptz) PARTITION BY RANGE (timezone('UTC', a));
CREATE INDEX ON expression (a) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
CREATE TABLE other (a timestamptz, b timestamptz) PARTITION BY RANGE (b);
CREATE INDEX ON other (a) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
CREATE INDEX ON other ((greatest(b, b))) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
-- a partition holds rows that a filter leaves out
CREATE INDEX ON other (b) WHERE a IS NOT NULL AND ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
SELECT ttl_index.create_index('other', 'b', 1, partial_filter_expression => 'a IS NOT NULL', drop_expired_partitions => true);
CREATE INDEX other_some ON other (b) WHERE a IS NOT NULL AND ttl_index.expire_after_seconds(1);
SELECT ttl_index.coll_mod_index('other_some', 1, drop_expired_partitions => true);
-- the option is read like the others
CREATE INDEX ON other (b) WHERE ttl_index.drop_expired_partitions();
CREATE INDEX ON other (b) WHERE ttl_index.bucket_max_span_seconds(3600);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions() AND ttl_index.drop_expired_partitions(true);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions(NULL);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions(true, false);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND NOT ttl_index.drop_expired_partitions();
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions(a IS NULL);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.bucket_max_span_seconds(59);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.bucket_max_span_seconds(31536001);
CREATE INDEX ON other (b) WHERE ttl_index.expire_after_seconds(-1) AND ttl_index.drop_expired_partitions();
-- another order of the keys: the upper bound is the lowest key
CREATE FUNCTION reverse(timestamptz, timestamptz) RETURNS int LANGUAGE sql IMMUTABLE STRICT
	AS 'SELECT timestamptz_cmp($2, $1)';
CREATE OPERATOR CLASS reversed FOR TYPE timestamptz USING btree AS
	OPERATOR 1 > (timestamptz, timestamptz), OPERATOR 2 >= (timestamptz, timestamptz), OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 <= (timestamptz, timestamptz), OPERATOR 5 < (timestamptz, timestamptz),
	FUNCTION 1 reverse(timestamptz, timestamptz);
CREATE TABLE backward (a timestamptz) PARTITION BY RANGE (a reversed);
CREATE INDEX ON backward (a) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
-- RANGE below LIST: each of these tables has its own
CREATE TABLE list_a PARTITION OF list FOR VALUES IN ('a') PARTITION BY RANGE (a);
CREATE TABLE list_a_2000 PARTITION OF list_a FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE list_a_now PARTITION OF list_a FOR VALUES FROM ('2001-01-01') TO ('2999-01-01');
INSERT INTO list VALUES ('2000-06-01', 'a'), ('2001-06-01', 'a');
SELECT ttl_index.create_index('list_a', 'a', 1, drop_expired_partitions => true);
CALL ttl_index.run_pass();
SELECT tableoid::regclass FROM list;

-- what slipped through is skipped with a state, and its rows stay
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE TABLE slipped (ts timestamptz, a int);
CREATE INDEX slipped_ttl ON slipped (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
CREATE INDEX other_slipped ON other (b) WHERE a IS NULL AND ttl_index.expire_after_seconds(1) AND ttl_index.drop_expired_partitions();
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
INSERT INTO slipped VALUES ('2000-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM slipped;
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
-- coll_mod repairs it
SELECT ttl_index.coll_mod_index('slipped_ttl', 1);
SELECT ttl_index.coll_mod_index('slipped_ttl', 1, drop_expired_partitions => false);
\d slipped
DROP INDEX plain_ts_ttl;
DROP TABLE plain, two, list, hash, expression, other, backward, slipped;

-- REINDEX CONCURRENTLY, LIKE, DETACH and ATTACH
CREATE TABLE m (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
SELECT ttl_index.create_index('m', 'ts', 2147483647, drop_expired_partitions => true, delete_boundary_rows => true, name => 'm_ttl');
REINDEX INDEX CONCURRENTLY m_ttl;
CALL ttl_index.run_pass();
\d m
\d m_2000
SET client_min_messages = notice;
CREATE TABLE m_copy (LIKE m INCLUDING INDEXES);
\d m_copy
CREATE TABLE m_series (LIKE m INCLUDING INDEXES) PARTITION BY RANGE (ts);
ALTER TABLE m DETACH PARTITION m_2000;
SET client_min_messages = warning;
\d m_series
\d m_2000
ALTER TABLE m ATTACH PARTITION m_2000 FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT indexrelid, n, dropping, state FROM marks;
DROP TABLE m, m_copy, m_series;

-- what depends on a bucket keeps it, by a state and an error; the others go
CREATE TABLE sensor (id int PRIMARY KEY);
INSERT INTO sensor SELECT generate_series(2000, 2009);
CREATE TABLE s (id int REFERENCES sensor, ts timestamptz, note text, PRIMARY KEY (id, ts)) PARTITION BY RANGE (ts);
SELECT format('CREATE TABLE s_%1$s PARTITION OF s FOR VALUES FROM (''%1$s-01-01'') TO (''%2$s-01-01'')', y, y + 1)
	FROM generate_series(2000, 2008) AS y \gexec
CREATE TABLE s_rest PARTITION OF s DEFAULT;
INSERT INTO s SELECT y, make_timestamptz(y, 6, 1, 0, 0, 0) FROM generate_series(2000, 2008) AS y;
CREATE VIEW v AS SELECT id FROM s_2000;
CREATE TABLE referencing (id int, ts timestamptz, FOREIGN KEY (id, ts) REFERENCES s_2001);
CREATE TABLE typed (whole s_2003);
CREATE TABLE typed_array (wholes s_2008[]);
CREATE FUNCTION reads() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM s_2004; END;
-- what goes along does not count: constraints, rules, policies, indexes, statistics, sequences of its own
ALTER TABLE s_2005 ADD CHECK (s_2005 IS NOT NULL OR true), ADD CHECK (id > 0 AND ts IS NOT NULL);
CREATE RULE deleted AS ON DELETE TO s_2005 DO ALSO NOTIFY gone;
CREATE RULE updated AS ON UPDATE TO s_2005 DO ALSO DELETE FROM s_2005 WHERE s_2005.id = -new.id;
CREATE STATISTICS s_2005_stat ON id, note FROM s_2005;
ALTER TABLE s_2005 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON s_2005 USING (id IN (SELECT id FROM s_2005));
CREATE INDEX ON s_2005 (lower(note));
CREATE SEQUENCE q OWNED BY s_2005.id;
SELECT ttl_index.create_index('s', 'ts', 1, drop_expired_partitions => true);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^s_2...$' ORDER BY 1;
SELECT indexrelid, state, reason FROM marks WHERE indexrelid::text ~ '^s_';
SELECT * FROM counts WHERE relname = 's';
-- a row trigger fires for rows, not for a partition that is dropped
DROP VIEW v;
DROP FUNCTION reads;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this'; END $$;
CREATE TRIGGER fail BEFORE DELETE ON s FOR EACH ROW EXECUTE FUNCTION fail();
CALL ttl_index.run_pass();
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^s_2...$' ORDER BY 1;
DROP TRIGGER fail ON s;
-- where rows go one by one, they do so in a partition that is kept as well
SELECT ttl_index.coll_mod('s', 'ts', 1, delete_boundary_rows => true);
CALL ttl_index.run_pass();
SELECT count(*) FROM s;
DROP TABLE referencing, typed, typed_array;
CALL ttl_index.run_pass();
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^s_2...$' ORDER BY 1;
DROP TABLE s, sensor;

-- whoever does what the HINT says takes nothing from anybody: no view
CREATE TABLE w (id int, ts timestamptz, PRIMARY KEY (id, ts)) PARTITION BY RANGE (ts);
CREATE TABLE w_2000 PARTITION OF w FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
INSERT INTO w VALUES (1, '2000-06-01');
CREATE VIEW v AS SELECT id FROM w_2000;
SELECT ttl_index.create_index('w', 'ts', 1, drop_expired_partitions => true);
CALL ttl_index.run_pass();
ALTER TABLE buckets.w DETACH PARTITION buckets.w_2000;
TABLE v;
-- a foreign key to the whole table keeps a partition as long as rows of it are referenced, and
-- stays when the partition goes
CREATE TABLE w_2001 PARTITION OF w FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO w VALUES (2, '2001-06-01');
CREATE TABLE referencing (id int, ts timestamptz, FOREIGN KEY (id, ts) REFERENCES w ON DELETE CASCADE);
CREATE INDEX ON referencing (id, ts);
INSERT INTO referencing VALUES (2, '2001-06-01');
-- its constraints on the partitions have other names on another major
SELECT conname FROM pg_constraint WHERE conrelid = 'referencing'::regclass AND conparentid <> 0 \gset
ALTER TABLE referencing RENAME CONSTRAINT :conname TO to_w_2001;
CALL ttl_index.run_pass();
SELECT indexrelid, state FROM marks WHERE indexrelid::text ~ '^w_' AND state <> 'active';
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'w';
-- where rows go one by one, they take along what references them, and then the partition goes
SELECT ttl_index.stats_reset();
SELECT ttl_index.coll_mod('w', 'ts', 1, delete_boundary_rows => true);
CALL ttl_index.run_pass();
SELECT to_regclass('w_2001'), count(*) FROM referencing;
SELECT deleted_documents, deleted_buckets, errors FROM ttl_index.index_stats WHERE relname = 'w';
SELECT conname, confrelid::regclass FROM pg_constraint WHERE conrelid = 'referencing'::regclass;
-- also with all rows that nothing references
SELECT ttl_index.coll_mod('w', 'ts', 1, drop_expired_partitions => true, delete_boundary_rows => false);
CREATE TABLE w_2002 PARTITION OF w FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
INSERT INTO w SELECT g, '2002-06-01' FROM generate_series(1, 10) AS g;
CALL ttl_index.run_pass();
SELECT to_regclass('w_2002'), count(*) FROM w;
SELECT conname, confrelid::regclass FROM pg_constraint WHERE conrelid = 'referencing'::regclass;
DROP VIEW v;
DROP TABLE referencing, w, w_2000;

-- rows of dropped partitions are counted where they are few or that is asked for, else estimated
CREATE TABLE m (id int, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2000_a PARTITION OF m_2000 FOR VALUES IN ('a');
CREATE TABLE m_2000_b PARTITION OF m_2000 FOR VALUES IN ('b');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
INSERT INTO m SELECT g, '2000-06-01', CASE WHEN g % 3 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 30000) AS g;
-- what is not yet reported of the INSERT would be added to what ANALYZE reports
SELECT pg_stat_force_next_flush();
ANALYZE m;
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
SELECT ttl_index.stats_reset();
SET client_min_messages = notice;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT * FROM counts;
SELECT estimated_documents FROM ttl_index.stats;
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
ALTER TABLE m_2000 SET (autovacuum_enabled = off);
INSERT INTO m SELECT g, '2000-06-01' FROM generate_series(1, 3000) AS g;
DELETE FROM m WHERE id % 2 = 0;
SET ttl_index.count_dropped_documents = on;
CALL ttl_index.run_pass();
SELECT * FROM counts;
RESET ttl_index.count_dropped_documents;
-- an owner can set what is estimated, from PostgreSQL 18 on: no sum gets out of range by that
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
INSERT INTO m SELECT g, '2002-06-01' FROM generate_series(1, 20000) AS g;
UPDATE pg_class SET reltuples = CASE relname WHEN 'm_2002' THEN 'Infinity'::float4 ELSE 9e18 END
WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^m_200.$';
CALL ttl_index.run_pass();
SELECT * FROM counts;
SELECT estimated_documents BETWEEN 30000 + 20000 AND 30000 + 200 * 300 AS fits FROM ttl_index.index_stats WHERE relname = 'm';
DROP TABLE m;
-- rows that were deleted one by one do not count again with their partition
CREATE TABLE once (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE once_2001 PARTITION OF once FOR VALUES FROM ('2001-01-01') TO ('2010-01-01');
INSERT INTO once SELECT g, '2001-06-01' FROM generate_series(1, 1000) AS g;
SELECT ttl_index.create_index('once', 'ts', extract(epoch FROM now() - '2005-01-01')::bigint, drop_expired_partitions => true,
	delete_boundary_rows => true);
SET client_min_messages = notice;
CALL ttl_index.run_pass();
SELECT expire_after_seconds_new FROM ttl_index.coll_mod('once', 'ts', 1);
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT deleted_documents, deleted_buckets, estimated_documents FROM ttl_index.index_stats WHERE relname = 'once';
DROP TABLE once;


-- a foreign table goes neither by itself nor with what is above it: nobody has compared its rows with the bounds
CREATE FOREIGN DATA WRAPPER ttl_nowhere;
CREATE SERVER ttl_nowhere FOREIGN DATA WRAPPER ttl_nowhere;
CREATE TABLE m (id int, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE FOREIGN TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') SERVER ttl_nowhere;
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01') PARTITION BY LIST (kind);
CREATE FOREIGN TABLE m_2001_a PARTITION OF m_2001 FOR VALUES IN ('a') SERVER ttl_nowhere;
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
-- what was the whole table once has a sequence that the others use
CREATE TABLE m_2003 (id serial, ts timestamptz, kind text);
ALTER TABLE m ALTER id SET DEFAULT nextval('m_2003_id_seq');
ALTER TABLE m ATTACH PARTITION m_2003 FOR VALUES FROM ('2003-01-01') TO ('2004-01-01');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
CALL ttl_index.run_pass();
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^m_2...(_a)?$' ORDER BY 1;
SELECT indexrelid, state, reason FROM marks;
ALTER TABLE m ALTER id DROP DEFAULT;
CALL ttl_index.run_pass();
SELECT to_regclass('m_2003');
DROP TABLE m;
DROP SERVER ttl_nowhere;
DROP FOREIGN DATA WRAPPER ttl_nowhere;

-- what somebody has begun to detach, at any level, does not go
CREATE TABLE m (ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2000_a PARTITION OF m_2000 FOR VALUES IN ('a') PARTITION BY LIST (kind);
CREATE TABLE m_2000_a_a PARTITION OF m_2000_a FOR VALUES IN ('a');
CREATE TABLE m_2000_b PARTITION OF m_2000 FOR VALUES IN ('b');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO m VALUES ('2000-06-01', 'a'), ('2000-06-01', 'b'), ('2001-06-01', 'a');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid IN ('m_2000_a_a'::regclass, 'm_2001'::regclass);
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
CALL ttl_index.run_pass();
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^m_2...(_a|_b)*$' ORDER BY 1;
SELECT (SELECT count(*) FROM m_2000_a_a) AS below, (SELECT count(*) FROM m_2001) AS direct, (SELECT count(*) FROM m_2000_b) AS beside;
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
ALTER TABLE m_2000_a DETACH PARTITION m_2000_a_a FINALIZE;
ALTER TABLE m DETACH PARTITION m_2001 FINALIZE;
CALL ttl_index.run_pass();
SELECT to_regclass('m_2000') AS bucket, to_regclass('m_2000_a_a') AS below, to_regclass('m_2001') AS direct;
DROP TABLE m, m_2000_a_a, m_2001;

-- a subscription to the partition itself would stop at what the publisher sends for it
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SET client_min_messages = error;
CREATE SUBSCRIPTION ttl_subscribed CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false, slot_name = NONE);
INSERT INTO pg_subscription_rel SELECT oid, 'm_2000'::regclass, 'r', '0/0' FROM pg_subscription WHERE subname = 'ttl_subscribed';
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
DROP SUBSCRIPTION ttl_subscribed;
CALL ttl_index.run_pass();
SELECT to_regclass('m_2000');
DROP TABLE m;

-- the name can be another table's by the time of the DROP
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
CREATE SCHEMA buckets_new;
CREATE TABLE buckets_new.m_2000 (id int);
CREATE FUNCTION swap() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	ALTER SCHEMA buckets RENAME TO buckets_old;
	ALTER SCHEMA buckets_new RENAME TO buckets;
END $$;
CREATE EVENT TRIGGER swap ON ddl_command_start WHEN tag IN ('DROP TABLE') EXECUTE FUNCTION swap();
CALL ttl_index.run_pass();
DROP EVENT TRIGGER swap;
SELECT to_regclass('buckets.m_2000'), to_regclass('buckets_new.m_2000');
SELECT relname, buckets, last_error FROM counts;
DROP SCHEMA buckets_new CASCADE;
DROP TABLE m;

-- one that takes all the time of a visit to fail does not keep the others
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
SELECT format('CREATE TABLE m_%1$s PARTITION OF m FOR VALUES FROM (''%1$s-01-01'') TO (''%2$s-01-01'')', y, y + 1)
	FROM generate_series(2000, 2003) AS y \gexec
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_name IN ('m_2000', 'm_2001')) THEN
		PERFORM pg_sleep(0.01);
		RAISE EXCEPTION 'not this';
	END IF;
END $$;
CREATE EVENT TRIGGER slow ON sql_drop EXECUTE FUNCTION slow();
SET ttl_index.index_delete_target_time = 1;
CALL ttl_index.run_pass();
RESET ttl_index.index_delete_target_time;
DROP EVENT TRIGGER slow;
SELECT relname FROM pg_class WHERE relnamespace = 'buckets'::regnamespace AND relname ~ '^m_2...$' ORDER BY 1;
DROP TABLE m;

-- an event trigger that says by itself that a lock is not available has failed: nobody holds one
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	RAISE EXCEPTION 'no drops today' USING ERRCODE = 'lock_not_available';
END $$;
CREATE EVENT TRIGGER refuse ON sql_drop EXECUTE FUNCTION refuse();
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
DROP EVENT TRIGGER refuse;
SELECT s.last_error, s.skipped_locked, i.state FROM ttl_index.index_stats AS s JOIN ttl_index.indexes AS i USING (indexrelid)
	WHERE i.relid = 'm'::regclass;
SELECT state FROM ttl_index.indexes WHERE relid = 'm_2000'::regclass;
DROP TABLE m;

-- rows that a policy hides from their owner are counted, and are not lost with a partition that is kept
CREATE ROLE ttl_bucket_owner;
GRANT USAGE, CREATE ON SCHEMA buckets TO ttl_bucket_owner;
SET ROLE ttl_bucket_owner;
CREATE TABLE m (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO m SELECT g, '2000-06-01' FROM generate_series(1, 10) AS g;
ALTER TABLE m_2000 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT count(*) FROM m_2000;
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
RESET ROLE;
SELECT ttl_index.stats_reset();
SET ttl_index.count_dropped_documents = on;
CALL ttl_index.run_pass();
SELECT * FROM counts;
RESET ttl_index.count_dropped_documents;
SET ROLE ttl_bucket_owner;
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
INSERT INTO m SELECT g, '2000-06-01' FROM generate_series(1, 10) AS g;
ALTER TABLE m_2000 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER keep BEFORE DELETE ON m FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TABLE cold (id int, ts timestamptz);
SELECT ttl_index.coll_mod_index('m_ts_ttl', 1, delete_boundary_rows => true, archive_to => 'cold');
RESET ROLE;
CALL ttl_index.run_pass();
SELECT count(*) FROM m;
SELECT count(*) FROM m_2000;
DROP TABLE m, m_2000, cold;
DROP FUNCTION keep;
REVOKE CREATE ON SCHEMA buckets FROM ttl_bucket_owner;

-- as the owner of the partition, whose code runs with his rights
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true);
ALTER TABLE m OWNER TO ttl_bucket_owner;
ALTER TABLE m_2000 OWNER TO ttl_bucket_owner;
CREATE TABLE dropped (name text, who name);
GRANT INSERT ON dropped TO PUBLIC;
CREATE FUNCTION log_drop() RETURNS event_trigger LANGUAGE plpgsql SET search_path = buckets, pg_temp AS $$ BEGIN
	INSERT INTO dropped SELECT object_identity, current_user FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table';
END $$;
CREATE EVENT TRIGGER log_drop ON sql_drop EXECUTE FUNCTION log_drop();
CALL ttl_index.run_pass();
SELECT name, CASE who WHEN current_user THEN 'the superuser' ELSE who END AS who FROM dropped ORDER BY name;
-- one that fails keeps the partition, and is an error of the index
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
ALTER TABLE m_2002 OWNER TO ttl_bucket_owner;
REVOKE INSERT ON dropped FROM PUBLIC;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT * FROM counts;
SELECT to_regclass('m_2002');
-- ... with a state, until it goes or the error is no more
CREATE TABLE m_2100 PARTITION OF m FOR VALUES FROM ('2100-01-01') TO ('2101-01-01');
SELECT indexrelid, state, reason FROM marks;
SELECT ttl_index.stats_reset();
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
-- one that names its table without a schema finds none: the search_path is a safe one
ALTER FUNCTION log_drop() RESET search_path;
GRANT INSERT ON dropped TO PUBLIC;
CALL ttl_index.run_pass();
SELECT relname, errors, last_error FROM counts;
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
DROP EVENT TRIGGER log_drop;
-- an owner without rights on the schema
REVOKE USAGE ON SCHEMA buckets FROM ttl_bucket_owner;
CALL ttl_index.run_pass();
SELECT to_regclass('m_2002');
SELECT indexrelid, state, reason FROM marks;
-- a role that is not the owner drops nothing
GRANT USAGE ON SCHEMA buckets TO ttl_bucket_owner;
CREATE ROLE ttl_bucket_stranger;
SET ROLE ttl_bucket_stranger;
CALL ttl_index.run_pass();
SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'm_2002';
RESET ROLE;
-- the owner of the table does, but not partitions of others: their code, and that of event triggers, would run as the latter
CREATE TABLE m_2003 PARTITION OF m FOR VALUES FROM ('2003-01-01') TO ('2004-01-01');
SET ROLE ttl_bucket_owner;
DROP TABLE m_2003;
CALL ttl_index.run_pass();
SELECT to_regclass('m_2002'), to_regclass('m_2003');
RESET ROLE;
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';

-- an upper bound that never comes is none: the rows go one by one
CREATE TABLE e (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE e_all PARTITION OF e FOR VALUES FROM ('-infinity') TO ('infinity');
CREATE TABLE e_days (day date) PARTITION BY RANGE (day);
CREATE TABLE e_days_all PARTITION OF e_days FOR VALUES FROM ('-infinity') TO ('infinity');
SELECT ttl_index.create_index('e', 'ts', 300, drop_expired_partitions => true),
	ttl_index.create_index('e_days', 'day', 300, time_zone => 'UTC', drop_expired_partitions => true);
INSERT INTO e VALUES ('2000-01-01'), ('2998-01-01');
INSERT INTO e_days VALUES ('2000-01-01'), ('2998-01-01');
SELECT ttl_index.due_count('e_ts_ttl'), ttl_index.due_count('e_days_day_ttl');
CALL ttl_index.run_pass();
SELECT extract(year FROM ts) FROM e UNION ALL SELECT extract(year FROM day) FROM e_days;

DROP SCHEMA buckets CASCADE;
DROP ROLE ttl_bucket_owner, ttl_bucket_stranger;
