-- An argument that was given holds afterwards, or the call is an error; one that was not given
-- changes nothing that is there: rule 42.
\set SHOW_CONTEXT never
CREATE SCHEMA ah;
SET search_path = ah;
CALL ttl_index.run_pass();
CREATE TABLE t (at timestamptz, local timestamp, kind text, keep int, other int);
CREATE TABLE cold (LIKE t);
CREATE TABLE m (at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE cold_m (LIKE m);

-- nothing is deleted where paused was given, whatever index was there before
INSERT INTO t SELECT '2001-01-01' FROM generate_series(1, 100);
CREATE INDEX app ON t (at);
SELECT ttl_index.create_index('t', 'at', 30 * 86400, paused => true);
SELECT ttl_index.create_index('t', 'at', 30 * 86400, paused => true, or_change => true);
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT ttl_index.create_index('t', 'at', 60, or_change => true);
\d t
SELECT ttl_index.create_index('t', 'at', 60, paused => false);
SELECT ttl_index.create_index('t', 'at', 60, paused => false, or_change => true);
SELECT ttl_index.create_index('t', 'at', 60, paused => true);
SELECT * FROM ttl_index.coll_mod('t', 'at', 60, paused => true);
SELECT * FROM ttl_index.coll_mod_index('app', 60, paused => true);
CALL ttl_index.run_pass();
SELECT count(*) FROM t;
SELECT * FROM ttl_index.coll_mod_index('app', 60, paused => false);
SELECT ttl_index.remove_ttl('app');

-- the TTL index is meant, not the plain one beside it, which may be older; with a name, the
-- one of that name; the statement of the hint makes the second one
SELECT ttl_index.create_index('t', 'at', 2000000000, name => 't_ttl');
CREATE INDEX t_ttl ON ah.t (at) WHERE ttl_index.expire_after_seconds(2000000000);
SELECT ttl_index.create_index('t', 'at', 2000000000);
REINDEX INDEX CONCURRENTLY t_ttl;
SELECT ttl_index.create_index('t', 'at', 2000000001, or_change => true);
SELECT ttl_index.create_index('t', 'at', 2000000002, name => 't_ttl', or_change => true);
SELECT * FROM ttl_index.coll_mod('t', 'at', 2000000003);
SELECT ttl_index.create_index('t', 'at', 2000000003, name => 'renamed', or_change => true);
SELECT ttl_index.create_index('t', 'at', 2000000004, name => 'app', or_change => true);
SELECT ttl_index.create_index('t', 'at', 2000000005, or_change => true);
SELECT ttl_index.create_index('t', 'at', 2000000005);
\d t
DROP INDEX app, t_ttl;
TRUNCATE t;

--
-- The matrix: each argument of each function in each state.  Whether it held is computed; each
-- call is rolled back.
--

-- what an index says
CREATE FUNCTION options(index oid) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN
	RETURN jsonb_build_object('name', index::regclass::text,
		'expire_after_seconds', substring(d, 'expire_after_seconds\(''?(-?\d+)'),
		'time_zone', substring(d, 'time_zone\(''([^'']*)'''),
		'paused', d LIKE '%paused()%',
		'archive_to', coalesce(substring(d, 'archive_to\(''([^'']*)'''), '-'),
		'drop_expired_partitions', d LIKE '%drop\_expired\_partitions(%',
		'delete_boundary_rows', d LIKE '%drop\_expired\_partitions(true)%',
		'detach_expired_partitions', d LIKE '%detach\_expired\_partitions()%',
		'bucket_max_span_seconds', substring(d, 'bucket_max_span_seconds\((\d+)'))
	FROM pg_get_indexdef(index) AS d;
END $$;

-- what all indexes of the two tables say, by their OIDs; not those of partitions
CREATE FUNCTION all_options() RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN
	RETURN coalesce(jsonb_object_agg(indexrelid, options(indexrelid)), '{}') FROM pg_index
	WHERE indrelid IN ('t'::regclass, 'm'::regclass);
END $$;

CREATE TABLE results (part text, state text, setup text, function text, arguments jsonb, call text, result text, error text, hint text, number serial);

-- the arguments that an index does not say differently
CREATE FUNCTION differing(said jsonb, given jsonb) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
	RETURN string_agg(format('%s is %s instead of %s', key, said ->> key, value), ', ')
	FROM jsonb_each_text(given) WHERE said ? key AND said ->> key IS DISTINCT FROM value;
END $$;

-- what a call has done, by what the indexes said before it
CREATE FUNCTION judge(before jsonb, made oid, given jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	after jsonb := all_options();
	changed jsonb;
	index text := made;
	-- what goes with an option that was given: of these three one is true at most
	exclusive text[] := CASE WHEN given ?| '{drop_expired_partitions,detach_expired_partitions}'
		THEN '{drop_expired_partitions,detach_expired_partitions,delete_boundary_rows}' ELSE '{}' END;
BEGIN
	SELECT jsonb_object_agg(key, value) INTO changed FROM jsonb_each(after) WHERE value IS DISTINCT FROM before -> key;
	IF index IS NULL THEN
		SELECT key INTO index FROM jsonb_each(changed) WHERE value ->> 'name' NOT LIKE '%own%' ORDER BY differing(value, given) IS NOT NULL, key LIMIT 1;
		-- nothing has changed: then it was so
		IF index IS NULL THEN
			SELECT min(key) INTO index FROM jsonb_each(after)
			WHERE value ->> 'expire_after_seconds' IS NOT NULL AND differing(value, given) IS NULL;
		END IF;
	END IF;
	RETURN coalesce(after -> index ->> 'name', 'none') || CASE
		WHEN index IS NULL OR differing(after -> index, given) IS NOT NULL
			THEN ': NOT HELD: ' || coalesce(differing(after -> index, given), '')
		WHEN before -> index IS NULL THEN ' created'
		WHEN differing(after -> index, (before -> index) - ARRAY(SELECT jsonb_object_keys(given)) - exclusive) IS NOT NULL
			AND before -> index ->> 'expire_after_seconds' IS NOT NULL
			THEN ': CHANGED: ' || differing(after -> index, (before -> index) - ARRAY(SELECT jsonb_object_keys(given)) - exclusive)
		WHEN before -> index ->> 'expire_after_seconds' IS NULL THEN ' made one'
		WHEN changed -> index IS NULL THEN ' kept'
		ELSE ' changed' END
		-- other indexes, but for that of a pair, which has to say the same
		|| coalesce((SELECT string_agg(format('; %s %s', value ->> 'name',
			CASE WHEN before ? key THEN 'too' ELSE 'created, too' END), '' ORDER BY value ->> 'name')
			FROM jsonb_each(changed) WHERE key <> index), '')
		|| coalesce((SELECT string_agg('; PAIR DIFFERS: ' || differing(value,
				(after -> index) - '{name,expire_after_seconds}'::text[]), '')
			FROM jsonb_each(after) WHERE key <> index AND value ->> 'name' = 't_at_own_ttl' AND NOT after::text LIKE '%own_ttl1%'), '');
END $$;

CREATE FUNCTION try(part text, state text, setup text, function text, arguments jsonb, label text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	list text;
	before jsonb;
	made oid;
	command text;
	result text;
	message text;
	hint text;
BEGIN
	BEGIN
		EXECUTE setup;
		IF function = 'coll_mod_index' THEN
			arguments := arguments - '{relation,key}'::text[] || jsonb_build_object('index',
				coalesce(to_regclass('ttl'), to_regclass('t_at_ttl'), to_regclass('m_at_ttl'), to_regclass('app')));
		END IF;
		SELECT string_agg(format('%I => %L', key, value), ', ') INTO list FROM jsonb_each_text(arguments);
		before := all_options();
		IF function = 'create_index_command' THEN
			FOR command IN EXECUTE format('SELECT ttl_index.create_index_command(%s)', list) LOOP
				EXECUTE command;
			END LOOP;
		ELSIF function LIKE 'create%' THEN
			EXECUTE format('SELECT ttl_index.%I(%s)', function, list) INTO made;
		ELSE
			EXECUTE format('SELECT ttl_index.%I(%s)', function, list);
		END IF;
		RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE =
			judge(before, made, arguments - '{relation,key,time_field,index,or_change,granularity,partial_filter_expression,document_ttl_field}'::text[]);
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
		IF SQLSTATE = 'ZZ000' THEN
			result := message;
			message := NULL;
		ELSE
			result := 'error';
		END IF;
	END;
	INSERT INTO results VALUES (part, state, setup, function, arguments, label, result, message, hint);
END $$;

CREATE TABLE states (part text, state text, setup text, number serial);
INSERT INTO states VALUES
	('t', 'none', ''),
	('t', 'plain', 'CREATE INDEX app ON t (at)'),
	('t', 'TTL', 'CREATE INDEX ttl ON t (at) WHERE ttl_index.expire_after_seconds(60)'),
	('t', 'plain, TTL', 'CREATE INDEX app ON t (at); CREATE INDEX ttl ON t (at) WHERE ttl_index.expire_after_seconds(60)'),
	('t', 'paused', 'CREATE INDEX ttl ON t (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.paused()'),
	('t', 'archive', 'CREATE INDEX ttl ON t (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to(''cold'')'),
	('t', 'filter', 'CREATE INDEX part ON t (at) WHERE kind = ''x'' AND ttl_index.expire_after_seconds(60)'),
	('t', 'two TTL', 'CREATE INDEX ttl ON t (at) WHERE ttl_index.expire_after_seconds(60); CREATE INDEX ttl2 ON t (at) WHERE ttl_index.expire_after_seconds(3600)'),
	('t', 'two plain', 'CREATE INDEX app ON t (at); CREATE INDEX app2 ON t (at)'),
	('pair', 'pair', 'SELECT ttl_index.create_index(''t'', ''at'', 60, document_ttl_field => ''keep'')'),
	('pair', 'paused', 'SELECT ttl_index.create_index(''t'', ''at'', 60, document_ttl_field => ''keep'', paused => true, archive_to => ''cold'')'),
	('pair', 'removed', 'SELECT ttl_index.create_index(''t'', ''at'', 60, document_ttl_field => ''keep''); SELECT ttl_index.remove_ttl(''t_at_ttl'')'),
	('pair', 'main', 'SELECT ttl_index.create_index(''t'', ''at'', 60, document_ttl_field => ''keep'', paused => true, archive_to => ''cold''); DROP INDEX t_at_own_ttl'),
	('pair', 'own', 'SELECT ttl_index.create_index(''t'', ''at'', 60, document_ttl_field => ''keep'', paused => true, archive_to => ''cold''); DROP INDEX t_at_ttl'),
	('pair', 'own, plain', 'SELECT ttl_index.create_index(''t'', ''at'', 60, document_ttl_field => ''keep'', paused => true, archive_to => ''cold''); DROP INDEX t_at_ttl; CREATE INDEX app ON t (at) WHERE ttl_index.column_ttl(keep) IS NULL'),
	('zone', 'none', ''),
	('zone', 'plain', 'CREATE INDEX app ON t (local)'),
	('zone', 'UTC', 'CREATE INDEX ttl ON t (local) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.time_zone(''UTC'')'),
	('parts', 'none', ''),
	('parts', 'plain', 'CREATE INDEX app ON m (at)'),
	('parts', 'rows', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60)'),
	('parts', 'drop', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions()'),
	('parts', 'boundary', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions(true)'),
	('parts', 'detach', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.detach_expired_partitions()'),
	('parts', 'archive', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions() AND ttl_index.archive_to(''cold_m'')'),
	('parts', 'series', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(3600)'),
	('series', 'none', ''),
	('series', 'plain', 'CREATE INDEX app ON m (at)'),
	('series', 'TTL', 'CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60)'),
	('series', 'plain, series', 'CREATE INDEX app ON m (at); CREATE INDEX ttl ON m (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(86400)'),
	('series', 'series', 'SELECT ttl_index.create_time_series(''m'', ''at'', granularity => ''minutes'', expire_after_seconds => 60, delete_boundary_rows => true)'),
	('series', 'paused', 'SELECT ttl_index.create_time_series(''m'', ''at'', expire_after_seconds => 60); SELECT ttl_index.pause_index(''m_at_ttl'')'),
	('series', 'detach', 'SELECT ttl_index.create_time_series(''m'', ''at'', expire_after_seconds => 60); SELECT ttl_index.coll_mod(''m'', ''at'', 60, detach_expired_partitions => true)'),
	('series', 'archive', 'SELECT ttl_index.create_time_series(''m'', ''at'', expire_after_seconds => 60); SELECT ttl_index.coll_mod(''m'', ''at'', 60, archive_to => ''cold_m'')');

-- the arguments beside relation, key and seconds
CREATE TABLE calls (part text, arguments jsonb, number serial);
INSERT INTO calls VALUES
	('t', '{"expire_after_seconds": 60}'),
	('t', '{"expire_after_seconds": 3600}'),
	('t', '{"expire_after_seconds": 60, "paused": true}'),
	('t', '{"expire_after_seconds": 3600, "paused": true}'),
	('t', '{"expire_after_seconds": 60, "paused": false}'),
	('t', '{"expire_after_seconds": 60, "archive_to": "cold"}'),
	('t', '{"expire_after_seconds": 60, "archive_to": "-"}'),
	('t', '{"expire_after_seconds": 3600, "name": "ttl"}'),
	('t', '{"expire_after_seconds": 3600, "name": "app"}'),
	('t', '{"expire_after_seconds": 60, "partial_filter_expression": "kind = ''x''"}'),
	('t', '{"expire_after_seconds": 60, "drop_expired_partitions": true}'),
	('pair', '{"expire_after_seconds": 60, "document_ttl_field": "keep"}'),
	('pair', '{"expire_after_seconds": 3600, "document_ttl_field": "keep"}'),
	('pair', '{"expire_after_seconds": 60, "document_ttl_field": "keep", "paused": true}'),
	('pair', '{"expire_after_seconds": 60, "document_ttl_field": "keep", "paused": false}'),
	('pair', '{"expire_after_seconds": 60, "document_ttl_field": "keep", "archive_to": "cold"}'),
	('pair', '{"expire_after_seconds": 60, "document_ttl_field": "keep", "archive_to": "-"}'),
	('pair', '{"expire_after_seconds": 60, "document_ttl_field": "other"}'),
	('pair', '{"expire_after_seconds": 60}'),
	('zone', '{"expire_after_seconds": 60}'),
	('zone', '{"expire_after_seconds": 3600}'),
	('zone', '{"expire_after_seconds": 60, "time_zone": "UTC"}'),
	('zone', '{"expire_after_seconds": 60, "time_zone": "Europe/Berlin"}'),
	('parts', '{"expire_after_seconds": 60}'),
	('parts', '{"expire_after_seconds": 3600}'),
	('parts', '{"expire_after_seconds": 60, "paused": true}'),
	('parts', '{"expire_after_seconds": 60, "drop_expired_partitions": true}'),
	('parts', '{"expire_after_seconds": 60, "drop_expired_partitions": false}'),
	('parts', '{"expire_after_seconds": 60, "delete_boundary_rows": true}'),
	('parts', '{"expire_after_seconds": 60, "delete_boundary_rows": false}'),
	('parts', '{"expire_after_seconds": 60, "drop_expired_partitions": true, "delete_boundary_rows": true}'),
	('parts', '{"expire_after_seconds": 60, "detach_expired_partitions": true}'),
	('parts', '{"expire_after_seconds": 60, "detach_expired_partitions": false}'),
	('parts', '{"expire_after_seconds": 60, "detach_expired_partitions": true, "drop_expired_partitions": true}'),
	('parts', '{"expire_after_seconds": 60, "archive_to": "cold_m"}'),
	('parts', '{"expire_after_seconds": 60, "archive_to": "-"}'),
	('series', '{}'),
	('series', '{"expire_after_seconds": 60}'),
	('series', '{"expire_after_seconds": -1}'),
	('series', '{"granularity": "seconds"}'),
	('series', '{"granularity": "minutes"}'),
	('series', '{"bucket_max_span_seconds": 86400}'),
	('series', '{"delete_boundary_rows": true}'),
	('series', '{"delete_boundary_rows": false}'),
	('series', '{"time_zone": "UTC"}');

-- the functions, with what says which index is meant
CREATE TABLE functions (parts text, function text, label text, arguments jsonb, number serial);
INSERT INTO functions VALUES
	('t pair zone parts', 'create_index', 'create_index', '{}'),
	('t pair zone parts', 'create_index', 'or_change', '{"or_change": true}'),
	('t pair zone', 'create_index_command', 'command', '{}'),
	('t pair zone', 'coll_mod', 'coll_mod', '{}'),
	('t zone parts', 'coll_mod_index', 'coll_mod_index', '{}'),
	('series', 'create_time_series', 'create_time_series', '{}');

SET client_min_messages = error;
SELECT count(try(part, state, setup, function, arguments, label)) FROM (
	SELECT s.part, s.state, s.setup, f.function, f.label || ' ' || (SELECT coalesce(string_agg(concat_ws(' ', CASE key
			WHEN 'expire_after_seconds' THEN NULL WHEN 'partial_filter_expression' THEN 'filter' WHEN 'document_ttl_field' THEN 'field'
			ELSE split_part(replace(key, 'delete_', ''), '_', 1) END, value), ', '), '')
		FROM jsonb_each_text(c.arguments)) AS label,
		jsonb_build_object('relation', CASE WHEN s.part IN ('parts', 'series') THEN 'm' ELSE 't' END,
			CASE s.part WHEN 'series' THEN 'time_field' ELSE 'key' END, CASE s.part WHEN 'zone' THEN 'local' ELSE 'at' END)
			|| f.arguments
			-- these are not among the arguments of coll_mod
			|| (c.arguments - CASE WHEN f.function LIKE 'coll%' THEN ARRAY['document_ttl_field'] ELSE '{}' END) AS arguments
	FROM states AS s JOIN calls AS c USING (part) JOIN functions AS f ON s.part = ANY (string_to_array(f.parts, ' '))
	WHERE f.function NOT LIKE 'coll%' OR NOT c.arguments ?| '{name,partial_filter_expression}' AND c.arguments ->> 'document_ttl_field' IS DISTINCT FROM 'other'
	ORDER BY f.number, c.number, s.number) AS try;

-- none: that is the rule
SELECT state, call, result FROM results WHERE result ~ '[A-Z][A-Z]+:' ORDER BY number;

SELECT call, state, result FROM results WHERE part = 't' ORDER BY number \crosstabview call state result
SELECT call, state, result FROM results WHERE part = 'pair' ORDER BY number \crosstabview call state result
SELECT call, state, result FROM results WHERE part = 'zone' ORDER BY number \crosstabview call state result
SELECT call, state, result FROM results WHERE part = 'parts' ORDER BY number \crosstabview call state result
SELECT call, state, result FROM results WHERE part = 'series' ORDER BY number \crosstabview call state result

-- what the errors say; a statement at the end of a hint can be pasted, and then the call is fine
\pset format unaligned
\t on
SELECT concat_ws(E'\n  ', error, nullif(regexp_replace(hint, '( WHERE |coll_mod_index\().*;', '\1...;'), '')) AS error
FROM results WHERE error IS NOT NULL GROUP BY 1 ORDER BY min(number);
\t off
\pset format aligned
SELECT count(try(part, state, setup || '; ' || substring(hint, '(?:(?:CREATE|DROP) INDEX|SELECT \* FROM).*;'), function, arguments, 'again: ' || call)) > 0 AS tried
FROM (SELECT * FROM results WHERE function IN ('create_index', 'create_time_series') AND hint ~ '((CREATE|DROP) INDEX|SELECT \* FROM).*;$' ORDER BY number) AS hinted;
-- none is in vain
SELECT state, call, result, error FROM results WHERE call LIKE 'again:%' AND result !~ ' (kept|created)' ORDER BY number;

SET client_min_messages = error;
DROP SCHEMA ah CASCADE;
