-- A limit of the rate, and pauses while replication is behind.  Both wait between
-- two batches, outside of a transaction.
\set SHOW_CONTEXT never
CREATE SCHEMA thr;
SET search_path = thr;
SELECT name, setting, unit, context, min_val FROM pg_settings
WHERE name ~ '^ttl_index\.(delete_rate|max_replication_lag|max_retained_wal|max_lag_pause)' ORDER BY 1;

-- No more than a tenth of a second's rows a transaction, and no sooner than the
-- rate allows: 45 rows in batches of 10 at 100 a second take at least 0.3 s.
CREATE TABLE t (ts timestamptz);
CREATE TABLE gone (xid xid8, rows bigint, at timestamptz);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO thr.gone SELECT pg_current_xact_id(), count(*), clock_timestamp() FROM old;
	RETURN NULL;
END $$;
CREATE TRIGGER note AFTER DELETE ON t REFERENCING OLD TABLE AS old EXECUTE FUNCTION note();
SELECT ttl_index.create_index('t', 'ts', 0);
INSERT INTO t SELECT '2001-01-01' FROM generate_series(1, 45);
SET ttl_index.delete_rate_limit = 100;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT rows, count(*) FROM gone GROUP BY 1 ORDER BY 1;
SELECT max(at) - min(at) >= interval '300 ms' AS as_slow_as_that FROM gone;
SELECT passes, deleted_documents, lag_pauses FROM ttl_index.stats;
RESET ttl_index.delete_rate_limit;

-- A slot that nobody reads retains WAL: a pause, but not for ever.  The WARNING
-- comes once, and deletion goes on without waiting again.
SELECT count(*) FROM pg_create_physical_replication_slot('ttl_abandoned', true);
SELECT count(pg_logical_emit_message(false, 'ttl', repeat('x', 1000000))) FROM generate_series(1, 3);
SET ttl_index.max_retained_wal = '1MB';
SET ttl_index.max_lag_pause = '1s';
SET ttl_index.batch_target_docs = 5;
TRUNCATE gone;
INSERT INTO t SELECT '2001-01-01' FROM generate_series(1, 20);
SELECT ttl_index.stats_reset();
SELECT clock_timestamp() AS begun \gset
CALL ttl_index.run_pass();
SELECT count(*) AS batches, min(at) - :'begun'::timestamptz >= interval '1 s' AS paused FROM gone;
SELECT passes, deleted_documents, lag_pauses FROM ttl_index.stats;
-- within the limit there is no pause
SET ttl_index.max_retained_wal = '1GB';
INSERT INTO t VALUES ('2001-01-01');
CALL ttl_index.run_pass();
SELECT passes, deleted_documents, lag_pauses FROM ttl_index.stats;
SELECT pg_drop_replication_slot('ttl_abandoned');
RESET ttl_index.max_retained_wal;
RESET ttl_index.max_lag_pause;
RESET ttl_index.batch_target_docs;

SET client_min_messages = warning;
DROP SCHEMA thr CASCADE;
