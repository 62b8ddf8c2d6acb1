-- The text of a filter: one expression, or an error; never more than the filter of
-- one index, and never the end of the server.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA filters;
SET search_path = filters;
CREATE TABLE t (at timestamptz, b boolean, n int, doc jsonb, "x""y" text);

-- What may stand in other places than a filter.
\set VERBOSITY terse
\set on 'SELECT * FROM ttl_index.create_index_command(''t'', ''at'', 60,'
:on '*');
:on 't.*');
:on '(t).*');
:on '(t.*)');
:on 'ROW(t.*)');
:on 'ROW(*)');
:on '(*)');
:on '* AS x');
:on '*, b');
:on 'b, *');
:on 'NOT *');
:on 't.* IS NULL');
:on 't.*.b');
:on 'doc.*');
:on '(doc).*');
:on 'b[*]');
:on 'count(*)');
:on 'count(*) OVER () > 1');
:on 'DEFAULT');
:on '(DEFAULT)');
:on 'b AS c');
:on 'b c');
:on 'b =>');
:on 'b => true');
:on 'f(b => true)');
:on 'VARIADIC b');
:on 'DISTINCT b');
:on 'ALL b');
:on 'b FROM t');
:on 'b INTO t');
:on 'b WHERE b');
:on 'b ORDER BY 1');
:on 'b LIMIT 1');
:on 'b FOR UPDATE');
:on 'b UNION SELECT true');
:on 'b;');
:on ';');
:on 'b; DROP TABLE t');
:on '; DROP TABLE t; SELECT true');
:on 'b) AND (b');
:on 'b)');
:on '(b');
:on 'b TABLESPACE pg_default');
:on 'b WITH (fillfactor = 50)');
:on 'CURRENT OF c');
:on '(SELECT true)');
:on 'EXISTS (SELECT)');
:on 'b IN (SELECT true)');
:on '$1');
:on '$1::boolean');
:on ':b');
:on 'b -- a comment');
:on '-- a comment');
:on 'b /* a comment');
:on 'b /* /* a comment */');
:on 'b /* a comment */');
:on 'n = ''1');
:on 'n = $$1');
:on 'b "');
:on '');
:on ' ');
:on 'NULL');
:on '()');
:on 'ROW()');
:on 'grouping(n) = 1');
:on 'generate_series(1, 2) > 0');
:on 'b = true collate "C"');
:on 'n::t%TYPE > 0');
:on 'xmin IS NOT NULL');
:on 'u.b');
:on 'filters.t.b');
:on 'current_database.filters.t.b');
:on 'a.b.c.d.e');
:on '"x""y" = ''it''''s; --''');
:on E'b\n-- a comment\n AND n > 0');
:on E'b AND n = ''\\''');
SELECT length(ttl_index.create_index_command('t', 'at', 60, repeat('(', 2000) || 'b' || repeat(')', 2000)));
:on repeat('NOT ', 2000) || '*');
\set VERBOSITY default
-- where the error is
\set SHOW_CONTEXT errors
:on 'n > 0 AND *');
:on 'n > 0 AND nothing');
\set SHOW_CONTEXT never

/*
 * Texts by chance, though the same in each run: from the shapes that expressions
 * have, with anything in the places of expressions.  Each is an error of the
 * grammar or of the analysis, or a filter with which CREATE INDEX makes one index.
 */
CREATE FUNCTION pick(choices text[], seed text) RETURNS text LANGUAGE sql
RETURN choices[1 + ((hashtext(seed)::bigint + 2147483648) % cardinality(choices))];
CREATE FUNCTION any_text(seed text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	shapes text[] := ARRAY['(%)', '% AND %', '% OR %', 'NOT %', '% IS NULL', '% = %', '% < %', '% IN (%, %)', '%.*', '(%).*', '(%).b', 'ROW(%, %)', 'ARRAY[%]', '(%)[%]', '(%)[%:%]',
		'CASE WHEN % THEN % ELSE % END', 'coalesce(%, %)', 'nullif(%, %)', '%::text', '%::int[]', 'CAST(% AS boolean)', '% COLLATE "C"', '% BETWEEN % AND %', 'EXISTS (SELECT %)',
		'ARRAY(SELECT %)', '% = ANY (%)', '% IS DISTINCT FROM %', '% LIKE %', '% AT TIME ZONE %', 'count(%)', 'sum(%) OVER ()', 'generate_series(%, %)', 'abs(VARIADIC %)',
		'abs(x => %)', 'abs(DISTINCT %)', 'grouping(%)', 'extract(% FROM %)', 'overlay(% PLACING % FROM %)', '% OPERATOR(pg_catalog.=) %', '% % %', '%, %', '% -- %', '% /* % */', '%; %',
		'% ORDER BY %', '% FROM %', '- %', '% ->> %', '% IS OF (%)', '(%, %) OVERLAPS (%, %)', 'COLLATION FOR (%)', 'xmlelement(NAME %)', 'greatest(%)', '% IS DOCUMENT', '%.%', '%(%)'];
	leaves text[] := ARRAY['*', 't', 'b', 'b', 'b', 'n', 'n', 'at', 'doc', 't.b', 't.*', 'true', 'NULL', '1', '''1''', '1e9', '-1', 'DEFAULT', '$1', '"x""y"', 'current_user', 'now()',
		'(', ')', '[', ']', ',', ';', '--', '/*', '*/', '''', '"', '$$', ':=', '=>', '::', '.', '..', 'SELECT 1', 'FROM', 'ROW', 'int', 'interval ''1 s''', 'ctid', 'count(*)', E'\n', E'\u00e9'];
	text text := '%';
BEGIN
	FOR i IN 1 .. 12 LOOP
		text := overlay(text PLACING pick(CASE WHEN i < 2 + hashtext(seed) & 3 THEN shapes ELSE leaves END, seed || ' ' || i) FROM position('%' IN text) FOR 1);
		EXIT WHEN position('%' IN text) = 0;
	END LOOP;
	RETURN replace(text, '%', 'b');
END $f$;
CREATE FUNCTION try(filter text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	command text;
	indexes int;
BEGIN
	BEGIN
		SELECT * INTO STRICT command FROM ttl_index.create_index_command('t', 'at', 60, filter);
	EXCEPTION WHEN OTHERS THEN
		RETURN CASE WHEN sqlstate LIKE 'XX%' THEN filter || ': ' || sqlerrm ELSE 'refused' END;
	END;
	BEGIN
		EXECUTE command;
		SELECT count(*) INTO indexes FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
		WHERE indrelid = 't'::regclass AND relkind = 'i';
		RAISE EXCEPTION 'undo' USING ERRCODE = 'TTUND';
	EXCEPTION WHEN SQLSTATE 'TTUND' THEN
		RETURN CASE WHEN indexes = 1 THEN 'an index' ELSE filter || ': ' || indexes || ' indexes' END;
	WHEN OTHERS THEN
		/* what CREATE INDEX alone checks: nothing volatile, no system columns */
		RETURN CASE WHEN sqlstate IN ('42P17', '0A000') THEN 'refused by CREATE INDEX' ELSE filter || ': ' || sqlstate || ' ' || sqlerrm END;
	END;
END $f$;
SELECT result, count(*) >= CASE result WHEN 'refused' THEN 1000 WHEN 'an index' THEN 100 ELSE 1 END AS enough
FROM generate_series(1, 4000) AS seed, any_text(seed::text) AS filter, try(filter) AS result GROUP BY result ORDER BY result COLLATE "C";
SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass;

-- One that is too long is not shown: a number of ten bytes can be one of 131,072 digits.
CREATE TABLE long (at timestamptz, b boolean, n numeric, i int, t text);
CREATE FUNCTION pg_temp.make(name text, filter text, key text = 'at') RETURNS void LANGUAGE plpgsql AS $$BEGIN
	EXECUTE format('CREATE INDEX long_%s ON long (%s) WHERE %s AND ttl_index.expire_after_seconds(60)', name, key, filter);
END$$;
SELECT pg_temp.make('number', 'n <> 1e131071');
SELECT pg_temp.make('numbers', string_agg('n <> 1e131071', ' AND ')) FROM generate_series(1, 10);
SELECT pg_temp.make('list', format('i IN (%s)', string_agg(g::text, ', '))) FROM generate_series(1, 500) AS g;
SELECT pg_temp.make('text', format('t <> %L', repeat('x', 100000)));
SELECT pg_temp.make('nots', 'NOT (NOT (NOT b))');
SELECT pg_temp.make('deep', format('%sb%s', repeat('NOT (', 200), repeat(')', 200)));
SELECT pg_temp.make('key', 'true', format('coalesce(%s, at)', string_agg('CASE WHEN n = 1e131071 THEN at END', ', '))) FROM generate_series(1, 20);
SELECT indexrelid, left(key, 10) AS key, left(partial_filter_expression, 20) AS filter, length(partial_filter_expression)
FROM ttl_index.indexes WHERE relid = 'long'::regclass ORDER BY indexrelid::text COLLATE "C";
CREATE FUNCTION pg_temp.plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS 'BEGIN RETURN QUERY EXECUTE ''EXPLAIN (VERBOSE) '' || query; END';
-- They are written for whoever asks for them, and not to watch the states.
EXPLAIN (VERBOSE, COSTS off) SELECT indexrelid, state FROM ttl_index.indexes;
SELECT line AS written FROM pg_temp.plan('SELECT * FROM ttl_index.index_stats') AS line WHERE line ~ 'index_key|index_filter';
-- What is no TTL index, or no index, or gone, has none.
SELECT o, ttl_index.index_key(o), ttl_index.index_filter(o), ttl_index.index_document_ttl(o)
FROM unnest('{pg_class_oid_index, long, 1, 0}'::regclass[]) AS o;
DROP TABLE long;

-- Names in it are those that the caller finds, as in a CREATE INDEX by hand: not those of the schema
-- that is called like the owner, which a search_path of "$user" means for the latter.
CREATE ROLE regress_ttl_owner;
CREATE SCHEMA regress_ttl_owner AUTHORIZATION regress_ttl_owner;
SET search_path = regress_ttl_owner;
SET ROLE regress_ttl_owner;
CREATE FUNCTION always(varchar, varchar) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR = (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = always);
CREATE FUNCTION chosen(varchar) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE TABLE owned (status varchar, at timestamptz);
RESET ROLE;
SET search_path = "$user", filters;
CREATE FUNCTION chosen(varchar) RETURNS bool IMMUTABLE LANGUAGE sql AS $$SELECT $1 <> ''$$;
GRANT USAGE ON SCHEMA filters TO regress_ttl_owner;
SELECT ttl_index.create_index('regress_ttl_owner.owned', 'at', 3600, $$status = 'closed' AND chosen(status)$$);
CREATE INDEX by_hand ON regress_ttl_owner.owned (at) WHERE status = 'closed' AND chosen(status);
CREATE INDEX other ON regress_ttl_owner.owned (at)
WHERE regress_ttl_owner.chosen(status) AND ttl_index.expire_after_seconds(60);
SELECT indexrelid, partial_filter_expression FROM ttl_index.indexes WHERE relid = 'regress_ttl_owner.owned'::regclass ORDER BY 1;
SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = 'regress_ttl_owner.by_hand'::regclass;
SET search_path = filters;

SET client_min_messages = error;
DROP SCHEMA filters, regress_ttl_owner CASCADE;
DROP ROLE regress_ttl_owner;
