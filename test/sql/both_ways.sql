-- The two ways to delete give the same results and the same counts: direct where
-- nothing is attached to DELETE, by SQL where anything is.  Every case here is
-- made twice, "<name>_direct" and "<name>_sql" with a trigger of no effect, and
-- both are compared with a model: the rows that the rules say must stay.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA ways;
SET search_path = ways;
CREATE FUNCTION no_effect() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TABLE model (name text, way text, stays text, PRIMARY KEY (name, way));

-- make(name, script, due): %1$I is the table in the script; due is the model
CREATE PROCEDURE make(name text, script text, due text) LANGUAGE plpgsql AS $$
DECLARE
	way text;
	stays text;
BEGIN
	FOREACH way IN ARRAY ARRAY['direct', 'sql'] LOOP
		EXECUTE format(script, name || '_' || way);
		IF way = 'sql' THEN
			EXECUTE format('CREATE TRIGGER no_effect BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION no_effect()', name || '_' || way);
		END IF;
		EXECUTE format('SELECT md5(string_agg(r::text, %L ORDER BY r::text)) FROM %I AS r WHERE (%s) IS NOT TRUE', ',', name || '_' || way, due) INTO stays;
		INSERT INTO model VALUES (name, way, stays);
	END LOOP;
END $$;
CREATE FUNCTION is_as_modeled(m model) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE stays text;
BEGIN
	EXECUTE format('SELECT md5(string_agg(r::text, %L ORDER BY r::text)) FROM %I AS r', ',', m.name || '_' || m.way) INTO stays;
	RETURN stays IS NOT DISTINCT FROM m.stays;
END $$;

-- NULL and infinite keys, old, equal and future ones, in all four orders
CREATE TABLE keys (id serial, ts timestamptz);
INSERT INTO keys (ts) SELECT v::timestamptz FROM generate_series(1, 500),
	unnest('{NULL,-infinity,infinity,0001-01-01 BC,1960-02-29,2001-01-01,2001-01-01,2001-01-02,2999-01-01}'::text[]) AS v;
SELECT format($f$CALL make('keys_%s_%s', 'CREATE TABLE %%1$I AS TABLE keys; CREATE INDEX ON %%1$I (ts %1$s NULLS %2$s) WHERE ttl_index.expire_after_seconds(60)', 'ts < ''2020-01-01''')$f$, o, n)
FROM unnest('{asc,desc}'::text[]) AS o, unnest('{first,last}'::text[]) AS n \gexec

-- TOASTed rows, HOT chains, versions that an update has left, many indexes
CALL make('toasted', $$
CREATE TABLE %1$I (id int, ts timestamptz, body text);
ALTER TABLE %1$I ALTER body SET STORAGE EXTERNAL;
INSERT INTO %1$I SELECT g, timestamptz '2999-01-01' - (g %% 2) * interval '999 years', repeat('x', 10000) FROM generate_series(1, 20) AS g;
CREATE INDEX ON %1$I (ts) WHERE ttl_index.expire_after_seconds(60)$$, $$ts < '2020-01-01'$$);
CALL make('hot', $$
CREATE TABLE %1$I (id int, ts timestamptz, n int DEFAULT 0) WITH (fillfactor = 20);
CREATE INDEX ON %1$I (ts) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT g, timestamptz '2001-01-01' + g * interval '1 day' FROM generate_series(1, 200) AS g;
UPDATE %1$I SET n = 1;
UPDATE %1$I SET n = 2 WHERE id %% 2 = 0;
UPDATE %1$I SET ts = '2999-01-01' WHERE id %% 3 = 0;
UPDATE %1$I SET n = 3 WHERE id %% 3 = 0;
UPDATE %1$I SET ts = '2001-01-01' WHERE id %% 9 = 0$$, $$ts < '2020-01-01'$$);
CALL make('indexed', $$
CREATE TABLE %1$I (id int PRIMARY KEY, a int, b text, ts timestamptz);
CREATE INDEX ON %1$I (a); CREATE INDEX ON %1$I (b); CREATE INDEX ON %1$I USING hash (a); CREATE INDEX ON %1$I (ts, a);
CREATE INDEX ON %1$I (ts) INCLUDE (a, b) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT g, g, g, timestamptz '2999-01-01' - (g %% 2) * interval '999 years' FROM generate_series(1, 300) AS g$$, $$ts < '2020-01-01'$$);

-- filters, expressions, documents, dates in a zone, partitions, unlogged tables
CALL make('filtered', $$
CREATE TABLE %1$I (id int, kind text, ts timestamptz);
CREATE INDEX ON %1$I (ts) WHERE kind = 'a' AND ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT g, chr(97 + g %% 2), '2001-01-01' FROM generate_series(1, 50) AS g;
UPDATE %1$I SET kind = 'b' WHERE id < 20$$, $$kind = 'a'$$);
CALL make('expression', $$
CREATE TABLE %1$I (id int, a timestamptz, b timestamptz);
CREATE INDEX ON %1$I ((GREATEST(a, b))) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT g, '2001-01-01', CASE g %% 3 WHEN 0 THEN timestamptz '2999-01-01' WHEN 1 THEN '2001-01-02' END FROM generate_series(1, 60) AS g$$,
	$$greatest(a, b) < '2020-01-01'$$);
CALL make('document', $$
CREATE TABLE %1$I (doc jsonb);
INSERT INTO %1$I SELECT jsonb_build_object('_id', g, 'at', CASE g %% 3 WHEN 0 THEN '2001-01-01T00:00:00Z' WHEN 1 THEN '2999-01-01T00:00:00Z' ELSE 'no date' END) FROM generate_series(1, 60) AS g;
CREATE INDEX ON %1$I (ttl_index.document_date(doc, 'at')) WHERE ttl_index.expire_after_seconds(60)$$, $$doc->>'at' LIKE '2001%'$$);
CALL make('dates', $$
CREATE TABLE %1$I (id int, d date);
CREATE INDEX ON %1$I (d DESC) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone('Europe/Berlin');
INSERT INTO %1$I SELECT g, date '2001-01-01' + g * 10000 FROM generate_series(-3, 60) AS g$$, $$d < '2020-01-01'$$);
CALL make('parts', $$
CREATE TABLE %1$I (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE TABLE %1$s_1 PARTITION OF %1$I FOR VALUES IN (1);
CREATE TABLE %1$s_2 (ts timestamptz, gone int, id int); ALTER TABLE %1$s_2 DROP gone;
ALTER TABLE %1$I ATTACH PARTITION %1$s_2 FOR VALUES IN (2);
CREATE INDEX ON %1$I (ts) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT 1 + g %% 2, timestamptz '2999-01-01' - (g %% 4) * interval '500 years' FROM generate_series(1, 40) AS g$$, $$ts < '2020-01-01'$$);
CALL make('unlogged', $$
CREATE UNLOGGED TABLE %1$I (id int, ts timestamptz);
CREATE INDEX ON %1$I (ts) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT g, timestamptz '2999-01-01' - (g %% 2) * interval '999 years' FROM generate_series(1, 30) AS g$$, $$ts < '2020-01-01'$$);
-- rows in no order, of which most are due: over the heap, block by block
CALL make('shuffled', $$
CREATE TABLE %1$I (id int, ts timestamptz, filler text);
INSERT INTO %1$I SELECT g, CASE WHEN g > 1000 THEN timestamptz '2001-01-01' + g * interval '1 s' ELSE '2999-01-01' END, repeat('x', 100)
FROM generate_series(1, 20000) AS g ORDER BY hashint4(g);
CREATE INDEX ON %1$I (ts) WHERE ttl_index.expire_after_seconds(60);
ANALYZE %1$I$$, $$ts < '2020-01-01'$$);

-- what the declarations have read does not count
SELECT pg_stat_force_next_flush();
SELECT count(pg_stat_reset_single_table_counters(indexrelid)) FROM pg_stat_user_indexes WHERE relname LIKE 'shuffled%';
SET ttl_index.batch_target_docs = 1000;
SET ttl_index.batch_target_time = '1h';
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
RESET ttl_index.batch_target_docs;
RESET ttl_index.batch_target_time;
SELECT name, way, is_as_modeled(m) AS as_modeled, s.deleted_documents, s.skipped_locked + s.skipped_failed + s.errors AS not_deleted
FROM model AS m JOIN ttl_index.index_stats AS s ON s.relname = m.name || '_' || m.way ORDER BY 1, 2;
-- the TOAST table is empty where the rows are gone
CREATE FUNCTION toasted(regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
	EXECUTE format('SELECT count(DISTINCT chunk_id) FROM %s', (SELECT reltoastrelid::regclass FROM pg_class WHERE oid = $1)) INTO n;
	RETURN n;
END $$;
SELECT toasted('toasted_direct') AS direct, toasted('toasted_sql') AS sql;
-- it was the heap that was read for most of the shuffled rows
SELECT pg_stat_force_next_flush();
SELECT relname, idx_tup_read < 10000 AS by_block FROM pg_stat_user_indexes WHERE relname LIKE 'shuffled%' ORDER BY 1;
-- and what is left can be found by all indexes
SELECT count(*) FROM indexed_direct WHERE a > 0;
SET enable_seqscan = off;
SELECT count(*) FROM indexed_direct WHERE a > 0;
SELECT count(*) FROM indexed_direct WHERE b > '';
RESET enable_seqscan;

-- Equal keys by the hundred thousand: the entries read grow with the rows, not
-- with their square, also where a visit takes many small batches.
SET ttl_index.index_delete_target_docs = 10000;
SET ttl_index.batch_target_docs = 1000;
SET ttl_index.batch_target_time = '1h';
SET ttl_index.index_delete_target_time = 0;
CALL make('equal', $$
CREATE TABLE %1$I (ts timestamptz);
CREATE INDEX ON %1$I (ts) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT '2001-01-01' FROM generate_series(1, 100000);
INSERT INTO %1$I SELECT '2999-01-01' FROM generate_series(1, 10)$$, $$ts < '2020-01-01'$$);
CALL make('equal_desc', $$
CREATE TABLE %1$I (ts timestamptz);
CREATE INDEX ON %1$I (ts DESC) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO %1$I SELECT '2001-01-01' FROM generate_series(1, 100000);
INSERT INTO %1$I SELECT '2999-01-01' FROM generate_series(1, 10)$$, $$ts < '2020-01-01'$$);
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT pg_stat_force_next_flush();
SELECT name, way, is_as_modeled(m) AS as_modeled, s.deleted_documents, s.visits, u.idx_tup_read < 400000 AS linear
FROM model AS m JOIN ttl_index.index_stats AS s ON s.relname = m.name || '_' || m.way
JOIN pg_stat_user_indexes AS u USING (indexrelid) WHERE name LIKE 'equal%' ORDER BY 1, 2;
RESET ttl_index.index_delete_target_docs;
RESET ttl_index.batch_target_docs;
RESET ttl_index.batch_target_time;
RESET ttl_index.index_delete_target_time;

-- An index that does not agree with its table deletes nothing, and says so: the
-- function is not as immutable as it says.
CREATE FUNCTION liar(timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1; END $$;
CREATE TABLE lied_direct (id int, ts timestamptz);
CREATE INDEX ON lied_direct (liar(ts)) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO lied_direct SELECT g, '2001-01-01' FROM generate_series(1, 3) AS g;
CREATE OR REPLACE FUNCTION liar(timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN '2999-01-01'; END $$;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT count(*) FROM lied_direct;
SELECT deleted_documents, errors, last_error, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'lied_direct';
DROP TABLE lied_direct;

-- Nor does one that is damaged: it missed an update, so that its entries of 2001
-- lead to rows of 2999.  The rows behind them go all the same.
CREATE TABLE damaged_direct (id int, ts timestamptz) WITH (fillfactor = 50);
CREATE TABLE damaged_sql (LIKE damaged_direct) WITH (fillfactor = 50);
CREATE TRIGGER no_effect BEFORE DELETE ON damaged_sql FOR EACH ROW EXECUTE FUNCTION no_effect();
CREATE INDEX damaged_direct_ttl ON damaged_direct (ts) WHERE ttl_index.expire_after_seconds(60);
CREATE INDEX damaged_sql_ttl ON damaged_sql (ts) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO damaged_direct SELECT g, timestamptz '2001-01-01' + g * interval '1 day' FROM generate_series(1, 50) AS g;
INSERT INTO damaged_sql TABLE damaged_direct;
UPDATE pg_index SET indislive = false WHERE indexrelid IN ('damaged_direct_ttl'::regclass, 'damaged_sql_ttl'::regclass);
ALTER TABLE damaged_direct SET (fillfactor = 50); ALTER TABLE damaged_sql SET (fillfactor = 50);	-- reads pg_index anew
UPDATE damaged_direct SET ts = '2999-01-01' WHERE id IN (10, 11);
UPDATE damaged_sql SET ts = '2999-01-01' WHERE id IN (10, 11);
UPDATE pg_index SET indislive = true WHERE indexrelid IN ('damaged_direct_ttl'::regclass, 'damaged_sql_ttl'::regclass);
ALTER TABLE damaged_direct RESET (fillfactor); ALTER TABLE damaged_sql RESET (fillfactor);
CALL ttl_index.run_pass();
SELECT 'direct' AS way, array_agg(id) FROM damaged_direct UNION ALL SELECT 'sql', array_agg(id) FROM damaged_sql ORDER BY 1;
SELECT relname, deleted_documents, skipped_failed, errors, last_error_sqlstate FROM ttl_index.index_stats WHERE relname LIKE 'damaged%' ORDER BY 1;
DROP TABLE damaged_direct, damaged_sql;

-- All rows cannot be deleted: one report, an end, and nothing lost.
CREATE TABLE undeletable (id int PRIMARY KEY, ts timestamptz);
SELECT ttl_index.create_index('undeletable', 'ts', 0);
CREATE TABLE referencing (id int PRIMARY KEY REFERENCES undeletable);
INSERT INTO undeletable SELECT g, '2001-01-01' FROM generate_series(1, 100000) AS g;
INSERT INTO referencing SELECT id FROM undeletable;
SET ttl_index.batch_timeout = '1s';
\set VERBOSITY terse
CALL ttl_index.run_pass();
\set VERBOSITY default
RESET ttl_index.batch_timeout;
SELECT deleted_documents, skipped_failed > 0 AS skipped, errors > 0 AS failed, last_error_sqlstate FROM ttl_index.index_stats WHERE relname = 'undeletable';
SELECT count(*) FROM undeletable;
DROP TABLE undeletable, referencing;
-- In block order there are rows outside of the filter: their key is not computed,
-- as it is not when the index is built.
CREATE FUNCTION strict_date(text) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 || ' UTC'; END $$;
CREATE TABLE outside (kind text, at text);
INSERT INTO outside SELECT 'a', timestamp '2001-01-01' + g * interval '1 s' FROM generate_series(1, 10000) AS g ORDER BY hashint4(g);
INSERT INTO outside SELECT 'b', 'no date' FROM generate_series(1, 100);
CREATE INDEX ON outside (strict_date(at)) WHERE kind = 'a' AND ttl_index.expire_after_seconds(60);
ANALYZE outside;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset_single_table_counters(indexrelid) FROM pg_stat_user_indexes WHERE relname = 'outside';
SET ttl_index.batch_target_docs = 1000;
SET ttl_index.batch_target_time = '1h';
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
RESET ttl_index.batch_target_docs;
RESET ttl_index.batch_target_time;
SELECT kind, count(*) FROM outside GROUP BY 1;
SELECT deleted_documents, skipped_failed, errors FROM ttl_index.index_stats WHERE relname = 'outside';
SELECT pg_stat_force_next_flush();
SELECT idx_tup_read < 10000 AS by_block FROM pg_stat_user_indexes WHERE relname = 'outside';

-- a publication whose row filter a DELETE could not be told: as for any DELETE
CREATE TABLE published (id int PRIMARY KEY, kind int, ts timestamptz);
SELECT ttl_index.create_index('published', 'ts', 0);
INSERT INTO published VALUES (1, 1, '2001-01-01');
SET client_min_messages = error;
CREATE PUBLICATION filtered FOR TABLE published WHERE (kind > 0);
SET client_min_messages = warning;
DELETE FROM published;
CALL ttl_index.run_pass();
SELECT count(*) FROM published;
DROP PUBLICATION filtered;
CALL ttl_index.run_pass();
SELECT count(*) FROM published;

DROP SCHEMA ways CASCADE;
