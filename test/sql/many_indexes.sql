-- What it costs to describe many TTL indexes: so much for each, however many there are.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA many;
SET search_path = many;

-- Documents with a TTL of their own, each index with another field.  The event trigger is not what is tested.
CREATE TABLE items (_ts timestamptz, doc jsonb);
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
DO $$
BEGIN
	FOR i IN 1 .. 250 LOOP
		EXECUTE format('CREATE INDEX ON many.items (_ts)
			WHERE ttl_index.document_ttl(doc, %1$L) IS NULL AND ttl_index.expire_after_seconds(%2$s)', 'ttl' || i, i);
		EXECUTE format('CREATE INDEX ON many.items (ttl_index.expire_at(_ts, ttl_index.document_ttl(doc, %1$L)))
			WHERE ttl_index.document_ttl(doc, %1$L) IS NOT NULL AND ttl_index.expire_after_seconds(0)', 'ttl' || i);
	END LOOP;
END $$;
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;

-- Each of these takes a fraction of a second; where each index makes all others
-- be read for it, half a minute and gigabytes.
SET statement_timeout = '10s';
SELECT count(*), count(DISTINCT document_ttl), min(state), max(state) FROM ttl_index.indexes WHERE relid = 'items'::regclass;
SET statement_timeout = '60s';
SET client_min_messages = error;
CREATE TABLE copy (LIKE items INCLUDING INDEXES);
SET client_min_messages = warning;
SET statement_timeout = '10s';
SELECT count(*), min(state), max(state) FROM ttl_index.indexes WHERE relid = 'copy'::regclass;
DROP TABLE copy;
CREATE INDEX plain ON items (_ts);
INSERT INTO items VALUES ('2000-01-01 00:00+00', '{}'), ('2000-01-01 00:00+00', '{"ttl7": -1}'), ('2100-01-01', '{}');
CALL ttl_index.run_pass();
SELECT doc FROM items;

RESET statement_timeout;

-- Where rows are moved to is read once for each table, also where many lead on to the same one.
CREATE TABLE further (id int, ts timestamptz);
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('CREATE TABLE many.archive_%s (LIKE many.further)', i);
		EXECUTE format('CREATE TABLE many.source_%s (LIKE many.further)', i);
		EXECUTE format('CREATE INDEX ON many.archive_%s (ts) WHERE ttl_index.expire_after_seconds(2) AND ttl_index.archive_to(''many.further'')', i);
		EXECUTE format('CREATE INDEX ON many.source_%1$s (ts) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.archive_to(''many.archive_%1$s'')', i);
	END LOOP;
END $$;
-- what is counted is that of this transaction and of all others within a second
BEGIN;
SELECT pg_stat_get_xact_numscans('pg_index_indrelid_index'::regclass) AS before \gset
SELECT state, count(*) FROM ttl_index.indexes WHERE relid::text ~ '^(source|archive)_' GROUP BY 1;
-- the indexes of a table are looked up for each of the 200, and for each that is an archive once more
SELECT pg_stat_get_xact_numscans('pg_index_indrelid_index'::regclass) - :before < 350 AS few_scans;
COMMIT;
-- and again when something has changed there
ALTER EVENT TRIGGER ttl_index_ddl DISABLE;
CREATE INDEX further_i ON further (ts) WHERE ttl_index.expire_after_seconds(3) AND ttl_index.archive_to('many.source_1');
ALTER EVENT TRIGGER ttl_index_ddl ENABLE;
SELECT relid, reason FROM ttl_index.indexes WHERE state <> 'active' AND relid::text IN ('source_1', 'further') ORDER BY 1;
DROP INDEX further_i;
SELECT relid, reason FROM ttl_index.indexes WHERE state <> 'active' AND relid::text IN ('source_1', 'further') ORDER BY 1;

-- One REVOKE from all partitions of a table and of its archive looks at each of them once.
CREATE TABLE hot (LIKE further) PARTITION BY RANGE (ts);
CREATE TABLE cold (LIKE further) PARTITION BY RANGE (ts);
DO $$
BEGIN
	FOR i IN 1 .. 60 LOOP
		EXECUTE format('CREATE TABLE many.hot_%1$s PARTITION OF many.hot FOR VALUES FROM (%2$L) TO (%3$L);
			CREATE TABLE many.cold_%1$s PARTITION OF many.cold FOR VALUES FROM (%2$L) TO (%3$L)',
			i, '2100-01-01'::date + i, '2100-01-01'::date + i + 1);
	END LOOP;
END $$;
SELECT ttl_index.create_index('hot', 'ts', 1, archive_to => 'cold');
CREATE ROLE ttl_many_reader;
SET client_min_messages = notice;
BEGIN;
SELECT pg_stat_get_xact_numscans('pg_inherits_relid_seqno_index'::regclass) AS before \gset
REVOKE ALL ON ALL TABLES IN SCHEMA many FROM ttl_many_reader;
SELECT pg_stat_get_xact_numscans('pg_inherits_relid_seqno_index'::regclass) - :before < 4000 AS few_scans;
COMMIT;
DROP ROLE ttl_many_reader;
SET client_min_messages = error;
DROP SCHEMA many CASCADE;
