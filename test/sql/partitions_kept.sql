-- Partitions that are due and stay: detached, or moved to an archive.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SET ttl_index.count_dropped_documents = on;
CREATE SCHEMA kept;
CREATE SCHEMA cold;
SET search_path = kept;
CREATE VIEW marks AS SELECT indexrelid, drop_expired_partitions AS drops, detach_expired_partitions AS detaches, archive_to, state, reason
	FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";
CREATE VIEW counts AS SELECT relname, deleted_documents AS documents, deleted_buckets AS buckets,
	archived_documents AS archived, archived_buckets, errors, last_error
	FROM ttl_index.index_stats WHERE schemaname IN ('kept', 'cold') ORDER BY relname COLLATE "C", deleted_documents;
CREATE VIEW tables AS SELECT relnamespace::regnamespace AS schema, relname, relispartition AS part
	FROM pg_class WHERE relnamespace IN ('kept'::regnamespace, 'cold'::regnamespace) AND relkind IN ('r', 'p')
	ORDER BY relnamespace::regnamespace::text COLLATE "C", relname COLLATE "C";

-- the option is true whatever its arguments are, so the planner never sees it
SELECT bool_and(ttl_index.detach_expired_partitions(a, b)) FROM (VALUES (true), (false), (NULL)) AS x (a),
	(VALUES (false), (NULL)) AS y (b);

-- a partition that is due stays as a table of its own, with all that it has but the TTL;
-- nothing is deleted, not even from the DEFAULT partition
CREATE ROLE ttl_kept_reader;
CREATE TABLE sensor (id int PRIMARY KEY);
INSERT INTO sensor VALUES (1), (2), (3), (4);
CREATE TABLE m (id int REFERENCES sensor, ts timestamptz NOT NULL, kind text CHECK (kind <> 'z'), PRIMARY KEY (id, ts))
	PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 (id int, ts timestamptz NOT NULL, kind text) PARTITION BY LIST (kind);
CREATE TABLE m_2001_a PARTITION OF m_2001 FOR VALUES IN ('a');
CREATE TABLE m_now PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2999-01-01');
CREATE TABLE m_rest PARTITION OF m DEFAULT;
CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this'; END $$;
CREATE TRIGGER never BEFORE DELETE ON m FOR EACH ROW EXECUTE FUNCTION never();
ALTER TABLE m_2000 ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON m_2000 TO ttl_kept_reader;
CREATE VIEW reads AS SELECT id FROM m_2000;
CREATE INDEX m_2000_own ON m_2000 (kind);
INSERT INTO m VALUES (1, '2000-06-01', 'a'), (2, '2002-06-01', 'a'), (3, '1990-01-01', 'a');
SET client_min_messages = notice;
SELECT ttl_index.create_index('m', 'ts', 300, detach_expired_partitions => true, name => 'm_ttl');
SET client_min_messages = warning;
\d m
SELECT * FROM marks;
SELECT ttl_index.due_count('m_ttl'), ttl_index.oldest_due('m_ttl');
SELECT ttl_index.stats_reset();
SET client_min_messages = notice;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT tableoid::regclass, id FROM m ORDER BY id;
SELECT * FROM m_2000;
\d m_2000
SELECT relacl::text ~ 'ttl_kept_reader=r' AS granted FROM pg_class WHERE oid = 'm_2000'::regclass;
SELECT * FROM counts;
SELECT indexrelid FROM marks;
-- it is nobody's any more
CALL ttl_index.run_pass();
SELECT id FROM m_2000;
SELECT buckets, archived_buckets FROM counts;
-- so does one that somebody detaches by hand, also one that had a TTL of its own, and a copy
CREATE TABLE hand (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE hand_2000 PARTITION OF hand FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE hand_rest PARTITION OF hand DEFAULT;
CREATE TABLE hand_own (ts timestamptz);
CREATE INDEX hand_own_ttl ON hand_own (ts) WHERE ttl_index.expire_after_seconds(10);
CREATE INDEX hand_ttl ON hand (ts) WHERE ttl_index.expire_after_seconds(300) AND ttl_index.detach_expired_partitions();
SET client_min_messages = notice;
ALTER TABLE hand ATTACH PARTITION hand_own FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO hand VALUES ('1990-01-01'), ('2000-06-01'), ('2001-06-01');
ALTER TABLE hand DETACH PARTITION hand_2000;
ALTER TABLE hand DETACH PARTITION hand_rest;
ALTER TABLE hand DETACH PARTITION hand_own;
CREATE TABLE hand_copy (LIKE hand INCLUDING INDEXES);
SET client_min_messages = warning;
INSERT INTO hand_copy VALUES ('2000-06-01');
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM hand_2000) AS hand_2000, (SELECT count(*) FROM hand_rest) AS hand_rest,
	(SELECT count(*) FROM hand_own) AS hand_own, (SELECT count(*) FROM hand_copy) AS hand_copy;
DROP TABLE hand, hand_2000, hand_rest, hand_own, hand_copy;
-- and can be attached again, where it goes by the TTL again
DROP VIEW reads;
ALTER TABLE m ATTACH PARTITION m_2000 FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT indexrelid, detaches FROM marks WHERE indexrelid::text ~ 'm_2000';
CALL ttl_index.run_pass();
SELECT relname, part FROM tables WHERE relname = 'm_2000';
DROP TABLE m_2000, m_2001;
SELECT relname, part FROM tables;
DROP TABLE m, sensor;

-- who says one of the options ends the other, without a rebuild
CREATE TABLE m (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE archive (ts timestamptz);
SELECT ttl_index.create_index('m', 'ts', 2147483647, drop_expired_partitions => true, delete_boundary_rows => true);
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, detach_expired_partitions => true);
\d m
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, detach_expired_partitions => false);
\d m
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, detach_expired_partitions => true);
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, drop_expired_partitions => true);
\d m
REINDEX INDEX CONCURRENTLY m_ts_ttl;
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, drop_expired_partitions => true, detach_expired_partitions => true);
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, detach_expired_partitions => true, delete_boundary_rows => true);
SELECT ttl_index.coll_mod('m', 'ts', 2147483647, detach_expired_partitions => true, archive_to => 'archive');
SELECT ttl_index.create_index('m', 'ts', 2147483647, detach_expired_partitions => true);
SELECT ttl_index.create_index('m', 'ts', 2147483647, detach_expired_partitions => true, or_change => true);
DROP INDEX m_ts_ttl;
SELECT ttl_index.create_index('m', 'ts', 1, detach_expired_partitions => true, archive_to => 'archive');
SELECT ttl_index.create_index('m', 'ts', 1, detach_expired_partitions => true, drop_expired_partitions => true);
SELECT ttl_index.create_index('m', 'ts', 1, detach_expired_partitions => true, partial_filter_expression => 'ts IS NOT NULL');
SELECT ttl_index.create_index_command('m', 'ts', 1, detach_expired_partitions => true);
CREATE INDEX ON m (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.detach_expired_partitions() AND ttl_index.drop_expired_partitions();
CREATE INDEX ON m (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.detach_expired_partitions() AND ttl_index.detach_expired_partitions();
CREATE INDEX ON m (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.detach_expired_partitions(false);
CREATE INDEX ON m (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.detach_expired_partitions() AND ttl_index.archive_to('archive');
CREATE INDEX ON m (ts) WHERE ttl_index.detach_expired_partitions();
CREATE INDEX ON archive (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.detach_expired_partitions();
DROP TABLE m, archive;

-- what is below a partition goes along; nothing does where the tree has two owners
CREATE TABLE sensor (id int PRIMARY KEY, at timestamptz);
CREATE TABLE m (id int, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2000_a PARTITION OF m_2000 FOR VALUES IN ('a');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
CREATE TABLE m_2003 PARTITION OF m FOR VALUES FROM ('2003-01-01') TO ('2004-01-01');
INSERT INTO m VALUES (1, '2000-06-01', 'a'), (2, '2001-06-01', 'a'), (3, '2002-06-01', 'b');
-- a TTL index of the partition's own stays, as it is none of the whole
ALTER TABLE m ADD COLUMN seen timestamptz;
SELECT ttl_index.create_index('m_2003', 'seen', 2147483647, name => 'm_2003_own');
SELECT ttl_index.create_index('m', 'ts', 1, detach_expired_partitions => true, name => 'm_ttl'),
	ttl_index.create_index('m', 'ts', 2147483647, partial_filter_expression => 'kind = ''b''', name => 'm_some');
CREATE ROLE ttl_kept_owner;
GRANT USAGE ON SCHEMA kept TO ttl_kept_owner;
ALTER TABLE m_2002 OWNER TO ttl_kept_owner;
SELECT ttl_index.stats_reset();
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT count(*) FROM m;
SELECT indexrelid, state FROM marks WHERE state <> 'active';
ALTER TABLE m_2002 OWNER TO CURRENT_USER;
CALL ttl_index.run_pass();
SELECT count(*) FROM m;
SELECT relname, part FROM tables;
\d m_2000_a
\d m_2003
SELECT relname, buckets, archived_buckets, errors FROM counts WHERE buckets > 0;
DROP TABLE m, m_2000, m_2001, m_2002, m_2003;
-- a foreign key to the whole keeps a partition as long as rows of it are referenced
CREATE TABLE m (id int, ts timestamptz, PRIMARY KEY (id, ts)) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
INSERT INTO m VALUES (1, '2000-06-01'), (2, '2000-06-02');
CREATE TABLE referencing (id int, at timestamptz, FOREIGN KEY (id, at) REFERENCES m);
CREATE INDEX ON referencing (id, at);
INSERT INTO referencing TABLE m LIMIT 1;
-- its constraint on the partition has another name on another major
SELECT conname FROM pg_constraint WHERE conrelid = 'referencing'::regclass AND conparentid <> 0 \gset
ALTER TABLE referencing RENAME CONSTRAINT :conname TO to_m_2000;
SELECT ttl_index.create_index('m', 'ts', 1, detach_expired_partitions => true, name => 'm_ttl');
CALL ttl_index.run_pass();
SELECT relname, part FROM tables WHERE relname ~ '^m';
SELECT last_error FROM counts;
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
DELETE FROM referencing;
CALL ttl_index.run_pass();
SELECT relname, part FROM tables WHERE relname ~ '^m';
SELECT indexrelid, state, reason FROM marks WHERE state <> 'active';
SELECT conname, confrelid::regclass FROM pg_constraint WHERE conrelid = 'referencing'::regclass;
DROP TABLE referencing, m, m_2000, sensor;

-- with archive_to and drop_expired_partitions a partition moves, as it is, to an archive
-- that is partitioned by the same key; columns may be in another order
CREATE TABLE m (id int, ts timestamptz NOT NULL, kind text DEFAULT 'a') PARTITION BY RANGE (ts);
CREATE TABLE m_minimum PARTITION OF m FOR VALUES FROM (MINVALUE) TO ('2000-01-01');
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2001_a PARTITION OF m_2001 FOR VALUES IN ('a');
CREATE TABLE m_now PARTITION OF m FOR VALUES FROM ('2004-01-01') TO ('2999-01-01');
ALTER TABLE m_2000 ADD PRIMARY KEY (id, ts);
CREATE TABLE cold.m (kind text, ts timestamptz NOT NULL, id int) PARTITION BY RANGE (ts);
CREATE INDEX ON cold.m (ts);
CREATE TABLE cold.m_2002 PARTITION OF cold.m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
INSERT INTO m VALUES (0, '-infinity'), (1, '1999-06-01'), (2, '2000-01-01'), (3, '2000-12-31'), (4, '2001-06-01'), (5, '2004-01-01');
INSERT INTO cold.m VALUES ('a', '2002-06-01', 6);
SET client_min_messages = notice;
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.m', name => 'm_ttl');
SET client_min_messages = warning;
SELECT * FROM marks;
SELECT ttl_index.stats_reset();
SET client_min_messages = notice;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT tableoid::regclass, id, kind FROM m ORDER BY id;
SELECT tableoid::regclass, id, kind FROM cold.m ORDER BY id;
SELECT oid::regclass, pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'cold.m'::regclass)
	ORDER BY relname COLLATE "C";
\d m_2000
\d m_2001_a
SELECT * FROM counts;
SELECT indexrelid FROM marks;
SELECT sum(archived_documents) >= 5 AS documents, sum(archived_buckets) >= 3 AS buckets FROM ttl_index.history WHERE schemaname = 'kept';
SELECT archived_documents, archived_buckets FROM ttl_index.stats;
CALL ttl_index.run_pass();
SELECT count(*) FROM cold.m;
DROP TABLE m, cold.m;

-- a partition whose columns differ is not attached
CREATE TABLE m (id int, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE cold.m (id int NOT NULL, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.m', name => 'm_ttl');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
-- 17 names the table
SELECT replace(last_error, ' "m_2000"', '') AS last_error FROM ttl_index.index_stats WHERE indexrelname = 'm_ttl';
DROP TABLE m, cold.m;

-- types and collations of all kinds, below the partition as well; the defaults are copied
CREATE SCHEMA "Odd types";
CREATE TYPE "Odd types"."Mood" AS ENUM ('sad', 'it''s ok');
CREATE TYPE "Odd types".pair AS (a int, "B b" text);
CREATE COLLATION "Odd types"."My C" (provider = libc, locale = 'C');
CREATE TABLE k (id int, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
CREATE TABLE k_2000 PARTITION OF k FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') PARTITION BY LIST (id);
CREATE TABLE k_2000_1 PARTITION OF k_2000 FOR VALUES IN (1);
INSERT INTO k VALUES (1, '2000-06-01');
CREATE TABLE cold.k (LIKE k, mood "Odd types"."Mood" DEFAULT 'it''s ok', moods "Odd types"."Mood"[] DEFAULT '{sad}' NOT NULL,
	pair "Odd types".pair DEFAULT row(1, 'x'), name varchar(7) COLLATE "Odd types"."My C" DEFAULT lower('ABC') NOT NULL,
	amounts numeric(8,2)[] DEFAULT '{1.5}', at timestamp(3) DEFAULT localtimestamp, took interval day to second(2) DEFAULT '-1 day 1.25',
	bits bit(3) DEFAULT '101', "char" "char" DEFAULT 'x', "select" char(4) DEFAULT 'a', ratio float8 DEFAULT 1 / 3.0::float8, void text DEFAULT NULL,
	holes int[] DEFAULT '{1,NULL}', words text[] DEFAULT '{"NULL",NULL}') PARTITION BY RANGE (ts);
SELECT ttl_index.create_index('k', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.k', name => 'k_ttl');
SET intervalstyle = sql_standard;
SET extra_float_digits = -10;
CALL ttl_index.run_pass();
RESET intervalstyle;
RESET extra_float_digits;
SELECT tableoid::regclass, id, mood, moods, pair, name, amounts, at > '2020-01-01' AS at, took, bits, "char", "select", ratio = 1 / 3.0::float8 AS ratio, void, holes, words FROM cold.k;
SELECT attname, pg_get_expr(d.adbin, d.adrelid) = pg_get_expr(w.adbin, w.adrelid) AS same, attnotnull
	FROM pg_attribute AS a JOIN pg_attrdef AS d ON adrelid = attrelid AND adnum = attnum
	JOIN pg_attrdef AS w ON w.adrelid = 'cold.k'::regclass AND w.adnum = attnum WHERE attrelid = 'k_2000_1'::regclass ORDER BY attnum;
DROP TABLE k, cold.k;
DROP SCHEMA "Odd types" CASCADE;

-- columns that the archive alone has take their defaults, without a rewrite
CREATE FUNCTION file(regclass) RETURNS text LANGUAGE sql STABLE AS 'SELECT pg_relation_filepath($1)';
CREATE TABLE m (id int, ts timestamptz NOT NULL, kind text DEFAULT 'a') PARTITION BY RANGE (ts);
CREATE TABLE m_2000 PARTITION OF m FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
INSERT INTO m VALUES (1, '2000-06-01');
CREATE TABLE cold.m (LIKE m, archived_at timestamptz NOT NULL DEFAULT now(), "the Note" varchar(20) COLLATE "C" DEFAULT 'it''s', nothing int)
	PARTITION BY RANGE (ts);
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.m', name => 'm_ttl');
SELECT file('m_2000') AS before \gset
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id, archived_at BETWEEN now() - interval '1 hour' AND now() AS now, "the Note", nothing FROM cold.m;
SELECT file('m_2000') = :'before' AS same;
-- not so where each row would have its own
ALTER TABLE cold.m ADD COLUMN ticket uuid DEFAULT gen_random_uuid();
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CALL ttl_index.run_pass();
SELECT relname, part FROM tables WHERE relname = 'm_2001';
ALTER TABLE cold.m DROP COLUMN ticket;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
ALTER TABLE cold.m ADD COLUMN ticket positive DEFAULT 1;
CALL ttl_index.run_pass();
ALTER TABLE cold.m DROP COLUMN ticket;
ALTER TABLE cold.m ADD COLUMN ticket int GENERATED ALWAYS AS (id + 1) STORED;
CALL ttl_index.run_pass();
ALTER TABLE cold.m DROP COLUMN ticket;

-- what would take long while others wait keeps a partition, and so does what is there
CREATE INDEX cold_kind ON cold.m (kind);
CALL ttl_index.run_pass();
DROP INDEX cold.cold_kind;
-- also one of columns that the archive alone has, beside one that is alike
CREATE INDEX m_lower ON m (lower(kind) COLLATE "C");
CREATE INDEX cold_note ON cold.m (lower("the Note"));
CALL ttl_index.run_pass();
DROP INDEX cold.cold_note;
CREATE INDEX cold_note ON cold.m (kind) WHERE "the Note" IS NOT NULL;
DROP INDEX m_lower;
CREATE INDEX m_kind ON m (kind) WHERE kind IS NOT NULL;
CALL ttl_index.run_pass();
DROP INDEX cold.cold_note, m_kind;
CREATE TABLE kinds (kind text PRIMARY KEY);
INSERT INTO kinds VALUES ('a');
ALTER TABLE cold.m ADD FOREIGN KEY (kind) REFERENCES kinds;
CALL ttl_index.run_pass();
ALTER TABLE cold.m DROP CONSTRAINT m_kind_fkey;
CREATE TABLE cold.m_2001_06 PARTITION OF cold.m FOR VALUES FROM ('2001-06-01') TO ('2001-07-01');
CALL ttl_index.run_pass();
DROP TABLE cold.m_2001_06;
CREATE TABLE cold.m_rest PARTITION OF cold.m DEFAULT;
INSERT INTO cold.m VALUES (9, '2001-03-01');
CALL ttl_index.run_pass();
SELECT relname, part FROM tables WHERE relname = 'm_2001';
SELECT indexrelid, state FROM marks WHERE state <> 'active';
UPDATE cold.m SET ts = '2101-03-01' WHERE id = 9;
CALL ttl_index.run_pass();
SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = 'm_2001'::regclass;
SELECT indexrelid, state FROM marks WHERE state <> 'active';
SELECT conname FROM pg_constraint WHERE conrelid IN ('m_2000'::regclass, 'm_2001'::regclass) AND contype = 'c';
-- a constraint of the archive that the partition lacks is an error of ATTACH
ALTER TABLE cold.m ADD CONSTRAINT known CHECK (id > 0);
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
INSERT INTO m VALUES (2, '2002-06-01');
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id FROM m;
-- the owner must own both, as ATTACH demands
CREATE TABLE of_another (LIKE m) PARTITION BY RANGE (ts);
ALTER TABLE m OWNER TO ttl_kept_owner;
ALTER TABLE m_2002 OWNER TO ttl_kept_owner;
GRANT INSERT ON of_another TO ttl_kept_owner;
SELECT ttl_index.coll_mod_index('m_ttl', 1, archive_to => 'of_another');
CALL ttl_index.run_pass();
SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = 'm_2002'::regclass;
ALTER TABLE of_another OWNER TO ttl_kept_owner;
CALL ttl_index.run_pass();
SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = 'm_2002'::regclass;
DROP TABLE m, cold.m, of_another;
-- what the HINT says of a foreign key of the archive, and of a partition there, keeps both
CREATE TABLE m (ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE cold.m (ts timestamptz, kind text REFERENCES kinds) PARTITION BY RANGE (ts);
CREATE TABLE cold.m_half PARTITION OF cold.m FOR VALUES FROM ('2001-01-01') TO ('2001-07-01');
INSERT INTO m VALUES ('2001-06-01', 'a');
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.m', delete_boundary_rows => true);
SET client_min_messages = error;
CALL ttl_index.run_pass();
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT to_regclass('m_2001'), (SELECT count(*) FROM cold.m_half) AS half,
	(SELECT count(*) FROM pg_constraint WHERE conrelid = 'cold.m'::regclass AND contype = 'f') AS foreign_keys;
DROP TABLE m, cold.m, kinds;

-- two stages: what has come to the archive goes by its own TTL, and by no other
CREATE TABLE m (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE m_1900 PARTITION OF m FOR VALUES FROM ('1900-01-01') TO ('1901-01-01');
CREATE TABLE m_2001 PARTITION OF m FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO m VALUES (1, '1900-06-01'), (2, '2001-06-01');
CREATE TABLE cold.m (LIKE m) PARTITION BY RANGE (ts);
SELECT ttl_index.create_index('cold.m', 'ts', 2147483647, drop_expired_partitions => true, name => 'cold_ttl'),
	ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.m', name => 'm_ttl');
SET client_min_messages = notice;
CALL ttl_index.run_pass();
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT tableoid::regclass, id FROM m UNION ALL SELECT tableoid::regclass, id FROM cold.m;
SELECT to_regclass('m_1900') AS too_old;
SELECT indexrelid, archive_to FROM marks WHERE indexrelid::text ~ 'm_2001';
SELECT relname, documents, buckets, archived, archived_buckets, errors FROM counts;
DROP TABLE m, cold.m;

-- an archive that is not partitioned so: the partition becomes a table of its own beside it
CREATE TABLE m (id int NOT NULL, ts timestamptz, kind text) PARTITION BY RANGE (ts);
CREATE TABLE cold.archive (LIKE m);
CREATE TABLE m_2001 (id serial, ts timestamptz, kind text UNIQUE);
ALTER TABLE m ATTACH PARTITION m_2001 FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE m_2002 PARTITION OF m FOR VALUES FROM ('2002-01-01') TO ('2003-01-01') PARTITION BY LIST (kind);
CREATE TABLE m_2002_a PARTITION OF m_2002 FOR VALUES IN ('a');
INSERT INTO m VALUES (2, '2001-06-01', 'a'), (3, '2002-06-01', 'a');
CREATE TABLE cold.m_2001 (ts timestamptz);
SELECT ttl_index.create_index('m', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.archive', name => 'm_ttl');
CALL ttl_index.run_pass();
SELECT schema, relname, part FROM tables WHERE relname ~ '^m_200';
-- the name was taken
DROP TABLE cold.m_2001;
CALL ttl_index.run_pass();
\d cold.m_2001
SELECT id FROM cold.m_2001 UNION ALL SELECT id FROM cold.m_2002;
-- without the right to create tables there, it stays
CREATE TABLE m_2003 PARTITION OF m FOR VALUES FROM ('2003-01-01') TO ('2004-01-01');
ALTER TABLE m OWNER TO ttl_kept_owner;
ALTER TABLE m_2003 OWNER TO ttl_kept_owner;
GRANT USAGE ON SCHEMA cold TO ttl_kept_owner;
GRANT INSERT ON cold.archive TO ttl_kept_owner;
CALL ttl_index.run_pass();
SELECT schema, part FROM tables WHERE relname = 'm_2003';
-- beside the archive in the same schema it keeps its name
GRANT CREATE ON SCHEMA kept TO ttl_kept_owner;
CREATE TABLE archive (LIKE m);
GRANT INSERT ON archive TO ttl_kept_owner;
SELECT ttl_index.coll_mod_index('m_ttl', 1, archive_to => 'archive');
CALL ttl_index.run_pass();
SELECT schema, part FROM tables WHERE relname = 'm_2003';

-- where rows move one by one before, what is empty then has nothing to move
CREATE TABLE n (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE n_2000 PARTITION OF n FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE n_2001 PARTITION OF n FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO n VALUES (1, '2001-06-01');
CREATE TABLE cold.n (LIKE n) PARTITION BY RANGE (ts);
SELECT ttl_index.create_index('n', 'ts', 1, drop_expired_partitions => true, delete_boundary_rows => true, archive_to => 'cold.n');
CALL ttl_index.run_pass();
SELECT relname, inhparent::regclass FROM tables LEFT JOIN pg_inherits ON inhrelid = to_regclass(schema || '.' || relname) WHERE relname ~ '^n_';
SELECT buckets, archived_buckets FROM counts WHERE relname = 'n';

-- a partition is attached only where one role owns the archive, what is below it, and what the table is a part of
CREATE TABLE whole (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE TABLE o PARTITION OF whole FOR VALUES IN (1) PARTITION BY RANGE (ts);
CREATE TABLE o_2001 PARTITION OF o FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE cold.o (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE cold.o_rest PARTITION OF cold.o DEFAULT;
GRANT INSERT ON cold.o TO ttl_kept_owner;
ALTER TABLE o OWNER TO ttl_kept_owner;
ALTER TABLE o_2001 OWNER TO ttl_kept_owner;
SET client_min_messages = error;
SELECT ttl_index.create_index('o', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.o');
CALL ttl_index.run_pass();
SELECT last_error FROM counts WHERE relname = 'o';
ALTER TABLE whole OWNER TO ttl_kept_owner;
CALL ttl_index.run_pass();
SELECT last_error FROM counts WHERE relname = 'o';
ALTER TABLE cold.o OWNER TO ttl_kept_owner;
CALL ttl_index.run_pass();
SELECT last_error FROM counts WHERE relname = 'o';
ALTER TABLE cold.o_rest OWNER TO ttl_kept_owner;
CALL ttl_index.run_pass();
SELECT archived_buckets FROM counts WHERE relname = 'o';
SET client_min_messages = warning;

-- a subscription finds a partition by its schema and name, and would stop where it has moved to another one
CREATE TABLE fed (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE fed_2001 PARTITION OF fed FOR VALUES FROM ('2001-01-01') TO ('2002-01-01') PARTITION BY LIST (ts);
CREATE TABLE fed_2001_rest PARTITION OF fed_2001 DEFAULT;
CREATE TABLE cold.fed (ts timestamptz);
SET client_min_messages = error;
CREATE SUBSCRIPTION ttl_fed CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false, slot_name = NONE);
INSERT INTO pg_subscription_rel SELECT oid, 'fed_2001_rest'::regclass, 'r', '0/0' FROM pg_subscription WHERE subname = 'ttl_fed';
SELECT ttl_index.create_index('fed', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.fed');
SET client_min_messages = warning;
CALL ttl_index.run_pass();
SELECT relname, inhparent::regclass FROM tables LEFT JOIN pg_inherits ON inhrelid = to_regclass(schema || '.' || relname) WHERE relname = 'fed_2001';
-- not so where it keeps both
SET client_min_messages = error;
SELECT expire_after_seconds_new FROM ttl_index.coll_mod('fed', 'ts', 1, drop_expired_partitions => false, archive_to => 0, detach_expired_partitions => true);
SET client_min_messages = warning;
CALL ttl_index.run_pass();
SELECT relname, inhparent::regclass FROM tables LEFT JOIN pg_inherits ON inhrelid = to_regclass(schema || '.' || relname) WHERE relname = 'fed_2001';
DROP SUBSCRIPTION ttl_fed;

-- a bucket whose rows have gone one by one is empty, and counts as none
CREATE TABLE emptied (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE emptied_2001 PARTITION OF emptied FOR VALUES FROM ('2001-01-01') TO ('2001-01-02');
CREATE TABLE cold.emptied (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE cold.emptied_rest PARTITION OF cold.emptied DEFAULT;
INSERT INTO cold.emptied VALUES (0, '2001-01-01');
INSERT INTO emptied SELECT g, '2001-01-01 12:00' FROM generate_series(1, 100) AS g;
ANALYZE emptied;
SELECT ttl_index.create_index('emptied', 'ts', 1, drop_expired_partitions => true, delete_boundary_rows => true, archive_to => 'cold.emptied');
SET client_min_messages = error;
CALL ttl_index.run_pass();
CALL ttl_index.run_pass();
SET client_min_messages = warning;
SELECT to_regclass('emptied_2001'), deleted_documents, archived_documents, deleted_buckets FROM ttl_index.index_stats
	WHERE indexrelid = 'emptied_ts_ttl'::regclass;
DROP TABLE emptied;

-- a partition key above can be of whole rows, which the partition and the archive lay out otherwise
CREATE TABLE above (id int, ts timestamptz) PARTITION BY LIST ((above IS NOT NULL));
CREATE TABLE w PARTITION OF above FOR VALUES IN (true) PARTITION BY RANGE (ts);
CREATE TABLE w_2001 (gone int, ts timestamptz, id int);
ALTER TABLE w_2001 DROP COLUMN gone;
ALTER TABLE w ATTACH PARTITION w_2001 FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO w VALUES (1, '2001-06-01');
CREATE TABLE cold.w (id int, more text, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE cold.w_rest PARTITION OF cold.w DEFAULT;
INSERT INTO cold.w VALUES (2, NULL, '2001-06-02');
SELECT ttl_index.create_index('w', 'ts', 1, drop_expired_partitions => true, archive_to => 'cold.w');
CALL ttl_index.run_pass();
DELETE FROM cold.w WHERE id = 2;
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id, more FROM cold.w;

-- an event trigger can drop the archive, its schema with it, while a partition moves there
CREATE SCHEMA passing;
CREATE TABLE u (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE u_2001 PARTITION OF u FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO u VALUES ('2001-06-01');
CREATE TABLE passing.u (ts timestamptz);
SELECT ttl_index.create_index('u', 'ts', 1, drop_expired_partitions => true, archive_to => 'passing.u');
CREATE FUNCTION goes() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
	IF to_regclass('passing.u') IS NOT NULL AND to_regclass(current_setting('kept.once')) IS NOT NULL THEN
		EXECUTE current_setting('kept.goes');
	END IF;
END $$;
CREATE EVENT TRIGGER regress_ttl_goes ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION goes();
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET kept.once = %L', current_database(), 'kept.u_2001'); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET kept.goes = %L', current_database(), 'DROP TABLE passing.u CASCADE'); END $$;
CALL ttl_index.run_pass();
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET kept.goes = %L', current_database(), 'DROP SCHEMA passing CASCADE'); END $$;
CALL ttl_index.run_pass();
DROP EVENT TRIGGER regress_ttl_goes;
SELECT tableoid::regclass FROM u;
DROP TABLE u;

DROP SCHEMA kept, cold, passing CASCADE;
DROP ROLE ttl_kept_owner, ttl_kept_reader;
