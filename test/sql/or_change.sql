-- create_index(..., or_change => true): a migration that can be run again and again.
\set SHOW_CONTEXT never
CREATE SCHEMA oc;
SET search_path = oc;
CALL ttl_index.run_pass();
CREATE TABLE t (id int, ts timestamptz, local timestamp, kind text, doc jsonb, keep int, keep2 int);
CREATE FUNCTION oids() RETURNS TABLE (name text, kept boolean) LANGUAGE sql AS
	$$ SELECT indexrelid::regclass::text, pg_relation_filenode(indexrelid) = indexrelid::oid FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1 $$;

-- creates, changes without a rebuild, or does nothing, and says which
SELECT ttl_index.create_index('t', 'ts', 60, or_change => true);
SELECT ttl_index.create_index('t', 'ts', 60, or_change => true);
SELECT ttl_index.create_index('t', 'ts', 30, or_change => true);
SELECT ttl_index.create_index('t', 'ts', 90, or_change => true);
SELECT ttl_index.create_index('t', 'local', 60, time_zone => 'UTC', or_change => true);
SELECT ttl_index.create_index('t', 'local', 70, time_zone => 'Europe/Berlin', or_change => true);
SELECT ttl_index.create_index('t', 'local', 70, time_zone => 'europe/berlin', or_change => true);
SELECT indexrelid, expire_after_seconds, time_zone, state FROM ttl_index.indexes ORDER BY indexrelid::text;
SELECT * FROM oids();
-- a plain index gets the TTL that was asked for, also one whose TTL was removed
SELECT ttl_index.remove_ttl('t_ts_ttl');
SELECT ttl_index.create_index('t', 'ts', 60, or_change => true);
-- the same filter is not the same text; another one is another index
SELECT ttl_index.create_index('t', 'ts', 60, 'kind=''x''', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 50, '(kind) = ''x''::text -- the same', or_change => true);
SELECT ttl_index.create_index('t', 'doc.at', 50, or_change => true);
SELECT ttl_index.create_index('t', 'doc.at', 40, or_change => true);
SELECT * FROM oids();

-- names: the index keeps its own, so another one is an error; one that is taken is said
SELECT ttl_index.create_index('t', 'ts', 61, name => 'other', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 61, name => 't_ts_ttl', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 60, 'id > 5', name => 't_ts_ttl', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 60, 'id > 5', name => 'oids', or_change => true);
CREATE TABLE taken ();
SELECT ttl_index.create_index('t', 'ts', 60, 'id > 6', name => 'taken', or_change => true);
SELECT ttl_index.drop_index('t', 'doc.at');
DROP INDEX t_ts_ttl, t_ts_ttl1, oids, t_local_ttl;

-- a pair: its seconds change, what documents say does not
SELECT ttl_index.create_index('t', 'ts', 60, document_ttl_field => 'keep', or_change => true);
SELECT ttl_index.create_index('t', 'ts', -1, document_ttl_field => 'keep', or_change => true);
SELECT ttl_index.create_index('t', 'ts', -1, document_ttl_field => 'keep', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 60, document_ttl_field => 'keep2', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 60, document_ttl_field => 'doc.ttl', or_change => true);
SELECT ttl_index.create_index('t', 'ts', 60, or_change => true);
DROP INDEX t_ts_own_ttl;
SELECT ttl_index.create_index('t', 'ts', 20, document_ttl_field => 'keep', or_change => true);
SELECT indexrelid, expire_after_seconds, document_ttl FROM ttl_index.indexes ORDER BY indexrelid::text;
SELECT ttl_index.drop_index('t', 'ts');
SELECT ttl_index.create_index('t', 'ts', 60);
SELECT ttl_index.create_index('t', 'ts', 60, document_ttl_field => 'keep', or_change => true);

-- what differs is said, without or_change too
SELECT ttl_index.create_index('t', 'ts', 61);
CREATE TABLE parted (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_index('parted', 'ts', 60, drop_expired_partitions => true, or_change => true);
SELECT ttl_index.create_index('parted', 'ts', 61, drop_expired_partitions => true, or_change => true);
SELECT ttl_index.create_index('parted', 'ts', 60, or_change => true);
SELECT ttl_index.create_index('parted', 'ts', 61, drop_expired_partitions => true, delete_boundary_rows => true, or_change => true);
CREATE TABLE series (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('series', 'ts', expire_after_seconds => 3600);
SELECT ttl_index.create_index('series', 'ts', 60, drop_expired_partitions => true, or_change => true);
-- a part is changed with the whole
CREATE TABLE p PARTITION OF parted FOR VALUES FROM ('2999-01-01') TO ('2999-02-01');
SELECT ttl_index.create_index('p', 'ts', 70, or_change => true);
-- what was lost by REINDEX CONCURRENTLY, or is not valid
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_ts_ttl'::regclass;
SELECT ttl_index.create_index('t', 'ts', 61, or_change => true);
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 't_ts_ttl'::regclass;
SELECT ttl_index.create_index('t', 'ts', NULL, or_change => true);
SELECT ttl_index.create_index('t', 'ts', -1, or_change => true);
-- dropped by its own filter, while what is due is looked at: that is taken back
CREATE TABLE gone (id int, ts timestamptz);
INSERT INTO gone VALUES (1, '2001-01-01');
CREATE FUNCTION drops() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
	IF current_setting('oc.drops', true) = 'on' THEN
		PERFORM set_config('oc.drops', 'off', false);
		DROP INDEX oc.gone_ts_ttl;
	END IF;
END $$;
CREATE FUNCTION dropping(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM oc.drops(); RETURN true; END';
SELECT ttl_index.create_index('gone', 'ts', 2000000000, 'oc.dropping(id)');
SET oc.drops = 'on';
SELECT ttl_index.create_index('gone', 'ts', 60, 'oc.dropping(id)', or_change => true) > 0 AS changed;
SELECT to_regclass('gone_ts_ttl');
SET client_min_messages = error;
DROP SCHEMA oc CASCADE;
