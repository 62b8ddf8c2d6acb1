-- Tables of Citus: what a table is to it stands in its catalogs.  The stand-in of
-- test/data/citus.sql has them; test/citus has the tests of the real one.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set stand_in :abs_srcdir '/data/citus.sql'
\set stand_in_gone :abs_srcdir '/data/citus_gone.sql'
\i :stand_in
CREATE SCHEMA citus_a;
CREATE SCHEMA citus_b;
SET search_path = citus_a;
SELECT ttl_index.stats_reset();

-- A table with one due row, and a TTL index as on a shell or shard: n is the number behind both names.
CREATE FUNCTION make(relation text, n text DEFAULT '', seconds int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %s%s (id int, ts timestamptz)', relation, n);
	EXECUTE format('INSERT INTO %s%s VALUES (1, ''2001-01-01'')', relation, n);
	EXECUTE format('CREATE INDEX %s%s ON %s%s (ts) WHERE ttl_index.expire_after_seconds(%s)',
		replace(regexp_replace(relation, '.*\.', ''), 'of_a_table', 'ttl'), '_ttl' || n, relation, n, seconds);
END $$;
CREATE VIEW marks AS SELECT relid, state FROM ttl_index.indexes ORDER BY relid::text COLLATE "C";
-- how many rows each table has: this node's look at them all
CREATE FUNCTION rows() RETURNS TABLE (relid regclass, rows bigint) LANGUAGE plpgsql AS $$
DECLARE t regclass;
BEGIN
	FOR t IN SELECT m.relid FROM marks AS m LOOP
		RETURN QUERY EXECUTE format('SELECT %L::regclass, count(*) FROM %s', t, t);
	END LOOP;
END $$;

-- Citus makes shards before they stand in its catalogs
SET session_replication_role = replica;
SELECT make('dist'), make('dist', '_102008'), make('dist', '_102009'), make('dist', '_102010'), make('dist', '_102011', 2), make('dist', '_102099');
SELECT make('twice'), make('twice', '_102014');
SELECT make('ref'), make('ref', '_102012');
-- these have names like shards, and are none
SELECT make('other', '_102008'), make('citus_b.dist', '_102008'), make('dist', '_2024'), make('plain', '_102030'), make('plain');
-- the name of this shard is cut, with a hash of it before the number
SELECT make('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_');
SELECT shard_name('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 102013, false) AS cut \gset
SELECT make(:'cut');
SELECT shard_name('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 102098, false) AS unknown \gset
SELECT make(:'unknown');
-- so are those of their indexes
SELECT format('ALTER INDEX %s RENAME TO %I', indexrelid::regclass,
	(parse_ident(shard_name('long_name_ttl_that_leaves_no_room_for_the_number_of_a__ttl', right(indrelid::regclass::text, 6)::bigint, false)))[2])
	FROM pg_index WHERE indrelid IN (:'cut'::regclass, :'unknown'::regclass) \gexec
RESET session_replication_role;
INSERT INTO pg_dist_local_group VALUES (1);
INSERT INTO pg_dist_node (groupid) VALUES (0), (1), (2);
INSERT INTO pg_dist_partition VALUES ('dist', 'h', 's'), ('twice', 'h', 'c'), ('ref', 'n', 't'),
	('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 'h', 'c');
INSERT INTO pg_dist_shard VALUES ('dist', 102008), ('dist', 102009), ('dist', 102010), ('dist', 102011), ('twice', 102014), ('ref', 102012),
	('long_name_of_a_table_that_leaves_no_room_for_the_number_of_a_', 102013);
INSERT INTO pg_dist_placement (shardid, groupid) VALUES (102008, 1), (102009, 2), (102010, 1), (102011, 1), (102014, 1), (102014, 2), (102012, 1), (102013, 1);
-- a placement that is about to go
INSERT INTO pg_dist_placement (shardid, groupid, shardstate) VALUES (102010, 2, 4);
SELECT * FROM marks;
-- nothing of it is found by the search_path
SET search_path = pg_catalog;
SELECT relid, state FROM citus_a.marks WHERE relid::text ~ '\mdist' ORDER BY 1;
SET search_path = citus_a;
-- nor does a parallel query differ
CREATE TABLE many AS SELECT g AS n FROM generate_series(1, 1000) AS g;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT state, count(*) FROM marks JOIN many ON n = 1 WHERE relid = 'dist_102008'::regclass GROUP BY state;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP TABLE many;
-- who may not look into the schema sees the same
CREATE ROLE regress_ttl_looker;
GRANT USAGE ON SCHEMA citus_a TO regress_ttl_looker;
GRANT SELECT ON marks TO regress_ttl_looker;
SET ROLE regress_ttl_looker;
SELECT state, count(*) FROM marks GROUP BY state ORDER BY state;
RESET ROLE;
CALL ttl_index.run_pass();
SELECT * FROM rows() WHERE rows = 0;
SELECT errors FROM ttl_index.stats;
-- the shard that had another option than its table
SELECT reason FROM ttl_index.indexes WHERE state = 'option_differs';
DROP INDEX dist_ttl_102011;
CREATE INDEX dist_ttl_102011 ON dist_102011 (ts) WHERE ttl_index.expire_after_seconds(1);
CALL ttl_index.run_pass();
SELECT rows FROM rows() WHERE relid = 'dist_102011'::regclass;

-- what Citus changes holds at the next look
BEGIN;
UPDATE pg_dist_placement SET groupid = 1 WHERE shardid = 102009;
UPDATE pg_dist_placement SET groupid = 2 WHERE shardid = 102008;
SELECT * FROM marks WHERE relid::text IN ('dist_102008', 'dist_102009');
ROLLBACK;
BEGIN;
DELETE FROM pg_dist_placement WHERE shardid = 102008;
SELECT * FROM marks WHERE relid::text = 'dist_102008';
ROLLBACK;
BEGIN;
DELETE FROM pg_dist_local_group;
SELECT * FROM marks WHERE relid::text = 'dist_102008';
ROLLBACK;
-- a node that is told nothing of its cluster has shards alone
BEGIN;
DELETE FROM pg_dist_partition;
DELETE FROM pg_dist_shard;
DELETE FROM pg_dist_placement;
DELETE FROM pg_dist_node;
SELECT * FROM marks;
ROLLBACK;
-- the catalogs count, whoever owns them
BEGIN;
SET LOCAL allow_system_table_mods = on;
ALTER TABLE pg_dist_partition OWNER TO regress_ttl_looker;
ALTER TABLE pg_dist_shard OWNER TO regress_ttl_looker;
SELECT * FROM marks WHERE relid::text IN ('dist_102008', 'dist_102009');
ROLLBACK;

-- a table that has copies is declared like others, and so is what Citus makes of it
CREATE INDEX ref_again ON ref (ts) WHERE ttl_index.expire_after_seconds(100);
CREATE INDEX twice_again ON twice (ts) WHERE ttl_index.expire_after_seconds(100);
CREATE INDEX ON ref_102012 (ts) WHERE ttl_index.expire_after_seconds(1);
DROP INDEX ref_102012_ts_idx, ref_again, twice_again;

-- its rows are deleted by the coordinator, from the table: Citus does so in all copies
SELECT count(*) FROM rows() WHERE relid IN ('ref'::regclass, 'twice'::regclass, 'ref_102012'::regclass, 'twice_102014'::regclass) AND rows = 1;
UPDATE pg_dist_local_group SET groupid = 0;
SELECT ttl_index.lag('ref_ttl') IS NULL AS unknown;
SELECT ttl_index.oldest_due('ref_ttl');
SELECT ttl_index.due_count('ref_ttl');
SELECT count(*) FROM ttl_index.preview('ref_ttl', 2147483647);
CALL ttl_index.run_pass();
SELECT * FROM rows() WHERE relid IN ('ref'::regclass, 'twice'::regclass, 'ref_102012'::regclass, 'twice_102014'::regclass) ORDER BY 1;
-- rows with the same key are deleted together, or skipped if one of them fails
CREATE TABLE keyed (a int, b text COLLATE "C", ts timestamptz, kept boolean, PRIMARY KEY (a, b));
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.kept THEN RAISE 'it is kept'; END IF; RETURN OLD; END $$;
CREATE TRIGGER keep BEFORE DELETE ON keyed FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO pg_dist_partition VALUES ('keyed', 'n', 't');
INSERT INTO keyed SELECT g, 'it''s ' || g % 3, timestamptz '2001-01-01' + g % 100 * interval '1 minute', g IN (1, 7, 300) FROM generate_series(1, 300) AS g;
INSERT INTO keyed VALUES (301, '', '2001-01-02', true), (302, '', '2001-01-02', false), (303, '', '2100-01-01', false), (304, '', NULL, false), (305, '', '-infinity', false);
SELECT ttl_index.stats_reset();
CREATE INDEX keyed_ttl ON keyed (ts DESC) WHERE ttl_index.expire_after_seconds(1);
-- they are shown as whoever looks likes
ALTER TABLE keyed ADD gone int, ADD span interval DEFAULT '1 day 2 hours';
ALTER TABLE keyed DROP gone;
SET intervalstyle = iso_8601;
SELECT ttl_index.preview('keyed_ttl', 1);
RESET intervalstyle;
SELECT count(*) FROM ttl_index.preview('keyed_ttl', 500);
SELECT ttl_index.preview('keyed_ttl', 0);
CALL ttl_index.run_pass();
SELECT string_agg(a::text, ' ' ORDER BY a) FROM keyed;
SELECT deleted_documents, skipped_failed, last_error FROM ttl_index.index_stats WHERE relname = 'keyed';
UPDATE keyed SET kept = false WHERE a < 300;
CALL ttl_index.run_pass();
SELECT string_agg(a::text, ' ' ORDER BY a) FROM keyed;
DROP TABLE keyed;
-- all kinds of keys: a document with a TTL of its own, a filter, a clock
CREATE TABLE document (_id int PRIMARY KEY, doc jsonb);
CREATE TABLE local (d date, n int);
CREATE TABLE stamp (u uuid PRIMARY KEY, ts timestamp);
INSERT INTO pg_dist_partition VALUES ('document', 'n', 't'), ('local', 'n', 't'), ('stamp', 'n', 't');
INSERT INTO document VALUES (1, '{"at": "2001-01-01T00:00:00Z", "ttl": 60}'), (2, '{"at": "2001-01-01T00:00:00Z"}'),
	(3, '{"at": "2001-01-01T00:00:00Z", "ttl": 2000000000}'), (4, '{"at": "2001-01-01T00:00:00Z", "ttl": -1}');
INSERT INTO local VALUES ('2001-01-01', 1), ('2001-01-01', 2), ('-infinity', 2), ('infinity', 2), ('2100-01-01', 2);
INSERT INTO stamp SELECT gen_random_uuid(), ts FROM unnest('{2001-01-01, 2001-01-02, 2100-01-01}'::timestamp[]) AS ts;
SELECT ttl_index.create_index('document', 'doc.at', 3600, document_ttl_field => 'doc.ttl');
CREATE INDEX local_ttl ON local (d) WHERE n > 1 AND ttl_index.expire_after_seconds(0) AND ttl_index.time_zone('Europe/Berlin');
SELECT ttl_index.create_index('stamp', 'ts', 1, time_zone => 'Asia/Tokyo');
CALL ttl_index.run_pass();
SELECT (SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM document) AS document,
	(SELECT string_agg(d::text || ' ' || n, ', ' ORDER BY d, n) FROM local) AS local, (SELECT string_agg(ts::text, ', ') FROM stamp) AS stamp;
-- and numbers, of which some become the same integer, and UUIDs
CREATE TABLE of_bigint (i int PRIMARY KEY, n bigint);
CREATE TABLE of_double (i int PRIMARY KEY, n double precision);
CREATE TABLE of_numeric (i int PRIMARY KEY, n numeric);
CREATE TABLE of_uuid (i int PRIMARY KEY, n uuid);
INSERT INTO pg_dist_partition VALUES ('of_bigint', 'n', 't'), ('of_double', 'n', 't'), ('of_numeric', 'n', 't'), ('of_uuid', 'n', 't');
INSERT INTO of_bigint SELECT i, 1000000000 + i % 2 FROM generate_series(1, 500) AS i;
INSERT INTO of_double SELECT i, 1000000000 + i / 512.0 FROM generate_series(1, 500) AS i;
INSERT INTO of_numeric SELECT i, 1000000000 + i / 501.0 FROM generate_series(1, 500) AS i;
INSERT INTO of_uuid SELECT i, ('018df0a1-7b80-7000-8000-' || lpad(i::text, 12, '0'))::uuid FROM generate_series(1, 500) AS i;
INSERT INTO of_bigint VALUES (501, 0), (502, -1), (503, 9223372036854775807), (504, 32503680000), (505, NULL);
INSERT INTO of_double VALUES (501, 0), (502, -1), (503, 'NaN'), (504, 32503680000), (505, NULL);
INSERT INTO of_numeric VALUES (501, 0), (502, -1), (503, 'NaN'), (504, 32503680000), (505, NULL);
INSERT INTO of_uuid VALUES (501, '018df0a1-7b80-4000-8000-000000000001'), (502, '018df0a1-7b80-7000-c000-000000000001'), (505, NULL);
SELECT ttl_index.create_index('of_bigint', 'n', 0, unit => 'seconds'), ttl_index.create_index('of_double', 'n', 0, unit => 'seconds'),
	ttl_index.create_index('of_numeric', 'n', 0, unit => 'seconds'), ttl_index.create_index('of_uuid', 'n', 0, unit => 'uuidv7');
CALL ttl_index.run_pass();
SELECT (SELECT string_agg(i::text, ' ' ORDER BY i) FROM of_bigint) AS of_bigint, (SELECT string_agg(i::text, ' ' ORDER BY i) FROM of_double) AS of_double,
	(SELECT string_agg(i::text, ' ' ORDER BY i) FROM of_numeric) AS of_numeric, (SELECT string_agg(i::text, ' ' ORDER BY i) FROM of_uuid) AS of_uuid;
DROP TABLE of_bigint, of_double, of_numeric, of_uuid;
-- a batch takes all rows with one key, however many
INSERT INTO stamp SELECT gen_random_uuid(), '2001-01-01' FROM generate_series(1, 5000);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM stamp), deleted_documents FROM ttl_index.index_stats WHERE relname = 'stamp';
-- a query of the copies would run code of the owner: the lag is not known
CREATE TABLE guarded (ts timestamptz);
CREATE FUNCTION guard(timestamptz) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('my.guard', true) = 'on' THEN
		RAISE query_canceled USING MESSAGE = 'the owner stops all';
	END IF;
	RETURN true;
END $$;
CREATE INDEX guarded_ttl ON guarded (ts) WHERE guard(ts) AND ttl_index.expire_after_seconds(1);
INSERT INTO pg_dist_partition VALUES ('guarded', 'n', 't');
INSERT INTO guarded VALUES ('2001-01-01');
GRANT pg_monitor TO regress_ttl_looker;
SET my.guard = 'on';
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET ROLE regress_ttl_looker;
SELECT relname, ttl_index.lag(indexrelid) FROM ttl_index.index_stats WHERE relname = 'guarded';
RESET ROLE;
SELECT ttl_index.lag('guarded_ttl');
RESET my.guard;
DROP TABLE guarded;
RESET enable_indexscan;
RESET enable_bitmapscan;
UPDATE pg_dist_local_group SET groupid = 1;
DROP TABLE document, local, stamp;
DELETE FROM pg_dist_partition AS p WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.logicalrelid);

-- what is written to a table of Citus itself, and not by Citus, is lost
CREATE TABLE archive (id int, ts timestamptz);
CREATE INDEX dist_archived ON dist (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.archive_to('archive');
CREATE INDEX plain_archived ON plain (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.archive_to('dist');

-- the partitions of a table of Citus are dropped and made at the coordinator, those of shards nowhere else
SELECT ttl_index.stats_reset();
CREATE TABLE series (at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE series_102040 (at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE INDEX series_ttl ON series (at) WHERE ttl_index.expire_after_seconds(1) AND
	ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(86400);
CREATE INDEX series_ttl_102040 ON series_102040 (at) WHERE ttl_index.expire_after_seconds(1) AND
	ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(86400);
CREATE TABLE series_old PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2001-01-02');
CREATE TABLE series_old_102041 PARTITION OF series_102040 FOR VALUES FROM ('2001-01-01') TO ('2001-01-02');
INSERT INTO pg_dist_partition VALUES ('series', 'h', 's'), ('series_old', 'h', 's');
INSERT INTO pg_dist_shard VALUES ('series', 102040), ('series_old', 102041);
INSERT INTO pg_dist_placement (shardid, groupid) VALUES (102040, 1), (102041, 1);
SELECT relid, state FROM marks WHERE relid::text ~ '^series';
CALL ttl_index.run_pass();
SELECT inhparent::regclass, count(*) FROM pg_inherits WHERE inhparent IN ('series'::regclass, 'series_102040'::regclass) GROUP BY inhparent ORDER BY inhparent::regclass::text;
SELECT errors, deleted_buckets FROM ttl_index.stats;
DROP TABLE series, series_102040;
\i :stand_in_gone
SELECT DISTINCT state FROM marks;
CALL ttl_index.run_pass();
SELECT sum(rows) FROM rows();
DROP SCHEMA citus_a, citus_b CASCADE;
DROP ROLE regress_ttl_looker;
