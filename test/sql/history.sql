-- What was deleted in each hour.  Nothing here depends on the hour: what is to be of an
-- earlier one is made so, five hours at a time.
CREATE SCHEMA hist;
SET search_path = hist;
SELECT ttl_index.stats_reset();
DELETE FROM ttl_index.past_hours;
CREATE TABLE a (id int, at timestamptz);
CREATE INDEX a_ttl ON a (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE b (id int, at timestamptz);
CREATE INDEX b_ttl ON b (at) WHERE ttl_index.expire_after_seconds(0);
SET client_min_messages = warning;

-- what is told here: how many hours ago, and what was done
CREATE VIEW told AS
SELECT hour > now() - interval '2 hours' AS recent, schemaname, relname, indexrelname,
	sum(deleted_documents) AS deleted, sum(errors) AS errors, sum(skipped_failed) AS failed,
	bool_and(batches > 0 AND delete_time >= 0 AND extract(epoch FROM hour) % 3600 = 0) AS fits
FROM ttl_index.history GROUP BY 1, 2, 3, 4;
-- the hours add up to the sums
CREATE VIEW adds_up AS
SELECT sum(h.deleted_documents) = s.deleted_documents AS deleted, sum(h.errors) = s.errors AS errors,
	sum(h.skipped_failed) = s.skipped_failed AS failed, sum(h.skipped_locked) = s.skipped_locked AS locked
FROM ttl_index.history AS h, ttl_index.stats AS s
GROUP BY s.deleted_documents, s.errors, s.skipped_failed, s.skipped_locked;
-- five hours go by
CREATE PROCEDURE five_hours_later() LANGUAGE sql AS $$
UPDATE ttl_index.counters SET hour = hour - interval '5 hours';
UPDATE ttl_index.past_hours SET hour = hour - interval '5 hours';
$$;

TABLE told;
INSERT INTO a SELECT i, '2001-01-01' FROM generate_series(1, 5) AS i;
INSERT INTO b SELECT i, '2001-01-01' FROM generate_series(1, 7) AS i;
CALL ttl_index.run_pass();
TABLE told ORDER BY 1, 2, 3, 4;
TABLE adds_up;

-- the hour is over: it is shown whether a pass has moved it or not
CALL five_hours_later();
TABLE told ORDER BY 1, 2, 3, 4;
INSERT INTO a SELECT i, '2001-01-01' FROM generate_series(1, 2) AS i;
CALL ttl_index.run_pass();
TABLE told ORDER BY 1, 2, 3, 4;
TABLE adds_up;
-- a pass ends with the move: the counters have nothing of earlier hours
SELECT count(*) FROM ttl_index.counters WHERE hour < now() - interval '2 hours';
SELECT count(*) FROM ttl_index.past_hours WHERE hour < now() - interval '2 hours';
-- one row for each sum
SELECT indexrelname, deleted_documents FROM ttl_index.index_stats WHERE schemaname = 'hist' ORDER BY 1;

-- many batches in an hour are one row
INSERT INTO a SELECT i, '2001-01-01' FROM generate_series(1, 300) AS i;
SET ttl_index.batch_target_docs = 1;
CALL ttl_index.run_pass();
RESET ttl_index.batch_target_docs;
SELECT count(*) <= 100 AS folded FROM ttl_index.counters;
TABLE told ORDER BY 1, 2, 3, 4;
TABLE adds_up;

-- errors, and rows that cannot be deleted
CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
CREATE TRIGGER no BEFORE DELETE ON b FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION no();
INSERT INTO b SELECT i, '2001-01-01' FROM generate_series(1, 3) AS i;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
TABLE told ORDER BY 1, 2, 3, 4;
TABLE adds_up;
DROP TRIGGER no ON b;
DELETE FROM b;

-- a new index of the same name goes on, as after REINDEX CONCURRENTLY
REINDEX INDEX CONCURRENTLY b_ttl;
INSERT INTO b VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
TABLE told ORDER BY 1, 2, 3, 4;
SELECT count(*) = 1 AS one FROM ttl_index.history WHERE relname = 'b' AND hour < now() - interval '2 hours';

-- an index that is there has the names that it has now, one that is gone those that it had
ALTER TABLE a RENAME TO renamed;
ALTER INDEX a_ttl RENAME TO renamed_ttl;
DROP INDEX b_ttl;
TABLE told ORDER BY 1, 2, 3, 4;
DROP TABLE renamed, b;
CALL five_hours_later();
CREATE TABLE c (id int, at timestamptz);
CREATE INDEX c_ttl ON c (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO c VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
TABLE told ORDER BY 1, 2, 3, 4;
TABLE adds_up;

-- kept for so long, and no longer; the sums stay
SHOW ttl_index.history_retention;
SET ttl_index.history_retention = '7h';
-- also where a publication has all tables, and this one has no replica identity
SET client_min_messages = error;
CREATE PUBLICATION regress_ttl_all FOR ALL TABLES;
SET client_min_messages = warning;
CALL ttl_index.run_pass();
DROP PUBLICATION regress_ttl_all;
TABLE told ORDER BY 1, 2, 3, 4;
SELECT deleted_documents FROM ttl_index.stats;
-- also what no pass has moved meanwhile
CALL five_hours_later();
CALL five_hours_later();
CALL ttl_index.run_pass();
TABLE told ORDER BY 1, 2, 3, 4;
SELECT deleted_documents FROM ttl_index.stats;
-- the range in the message has units since 17
\set VERBOSITY sqlstate
SET ttl_index.history_retention = -1;
\set VERBOSITY default
SET ttl_index.history_retention = '1 week';
SET ttl_index.history_retention = '30d';

-- setting the sums to zero leaves the hours as they are
INSERT INTO c VALUES (1, '2001-01-01'), (2, '2001-01-01');
CALL ttl_index.run_pass();
SELECT ttl_index.stats_reset();
SELECT deleted_documents FROM ttl_index.stats;
TABLE told ORDER BY 1, 2, 3, 4;
INSERT INTO c VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
SELECT deleted_documents FROM ttl_index.stats;
TABLE told ORDER BY 1, 2, 3, 4;

-- what a subscription to FOR ALL TABLES brings are counters of another server
SET session_replication_role = replica;
INSERT INTO ttl_index.counters TABLE ttl_index.counters;
INSERT INTO ttl_index.past_hours TABLE ttl_index.past_hours;
UPDATE ttl_index.counters SET deleted_documents = 100;
UPDATE ttl_index.past_hours SET deleted_documents = 100;
DELETE FROM ttl_index.counters;
DELETE FROM ttl_index.past_hours;
TABLE told ORDER BY 1, 2, 3, 4;
SELECT deleted_documents FROM ttl_index.stats;
-- own ones are counted in any session
INSERT INTO c VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
RESET session_replication_role;
SELECT deleted_documents FROM ttl_index.stats;

-- a session writes nothing again of what is in order: anybody may call run_pass()
SELECT ttl_index.stats_reset();
BEGIN;
INSERT INTO ttl_index.counters (indexrelid, relid, visits, batches, deleted_documents, deleted_buckets,
	estimated_documents, archived_documents, archived_buckets, skipped_locked, skipped_failed, skipped_kept, errors, delete_time, passes, sub_passes, lag_pauses, last_error_role)
SELECT indexrelid, indrelid, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM pg_index WHERE indexrelid < 16384 LIMIT 120;
SELECT pg_current_xact_id()::xid AS inserted \gset
COMMIT;
CALL ttl_index.run_pass();
SELECT count(*) FROM ttl_index.counters WHERE xmin = :'inserted';
DELETE FROM ttl_index.counters WHERE indexrelid < 16384 AND visits = 1;

-- the sums of indexes that are gone become one, and their past hours keep the names
SELECT ttl_index.stats_reset();
DELETE FROM ttl_index.past_hours;
INSERT INTO ttl_index.counters (indexrelid, relid, hour, schemaname, relname, indexrelname, visits, batches, deleted_documents, deleted_buckets,
	estimated_documents, archived_documents, archived_buckets, skipped_locked, skipped_failed, skipped_kept, errors, delete_time, passes, sub_passes, lag_pauses, last_error_role)
SELECT g, g, date_trunc('hour', now()) - hours * interval '5 hours', 'gone', 'gone', 'gone_' || g, 1, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0
FROM generate_series(4000000001, 4000000100) AS g, generate_series(1, 3) AS hours;
CALL ttl_index.run_pass();
SELECT count(*) AS rows FROM ttl_index.counters WHERE hour IS NOT NULL OR indexrelid <> 0;
SELECT count(*) AS rows, sum(deleted_documents) AS deleted, count(relname) AS named FROM ttl_index.history;
SELECT deleted_documents FROM ttl_index.stats;

-- one query sets all of them to zero, one after another
CREATE TABLE x (at timestamptz);
CREATE INDEX x_ttl ON x (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE y (at timestamptz);
CREATE INDEX y_ttl ON y (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO x VALUES ('2001-01-01');
INSERT INTO y VALUES ('2001-01-01'), ('2001-01-01');
CALL ttl_index.run_pass();
SELECT ttl_index.stats_reset(indexrelid) FROM ttl_index.index_stats WHERE relid IN ('x'::regclass, 'y'::regclass);
SELECT indexrelname, deleted_documents, stats_reset IS NOT NULL AS reset
FROM ttl_index.index_stats WHERE relid IN ('x'::regclass, 'y'::regclass) ORDER BY 1;
SELECT deleted_documents >= 3 AS kept FROM ttl_index.stats;
SELECT ttl_index.stats_reset() FROM generate_series(1, 2);
SELECT deleted_documents FROM ttl_index.stats;

DROP SCHEMA hist CASCADE;
