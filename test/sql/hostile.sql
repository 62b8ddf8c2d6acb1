-- Code of the owner in operators, casts, domains, policies, rules and behind
-- foreign keys runs as the owner or not at all, and event triggers do not meddle.
-- For index expressions, predicates and triggers see security.
\set SHOW_CONTEXT never
SET client_min_messages = error;
CREATE ROLE regress_ttl_owner;
CREATE ROLE regress_ttl_child;
CREATE SCHEMA hostile;
GRANT ALL ON SCHEMA hostile TO PUBLIC;
SET search_path = hostile;

-- Who ran what, and whether it could become somebody else.  It is switched on only
-- while the extension is at work: what core runs is core's own matter.  Kept in sequences, which
-- are not rolled back, as is what the extension only looks at: a bit for each role, and once more.
CREATE FUNCTION places() RETURNS SETOF text LANGUAGE sql AS
$$ SELECT unnest('{cast, domain, event trigger, operator, policy, rule, trigger of a referencing table}'::text[]) $$;
SELECT format('CREATE SEQUENCE %I MINVALUE 0', place) FROM places() AS place \gexec
GRANT ALL ON ALL SEQUENCES IN SCHEMA hostile TO PUBLIC;
CREATE FUNCTION bits(place text, OUT bits bigint) LANGUAGE plpgsql AS
$$ BEGIN EXECUTE format('SELECT last_value FROM hostile.%I', place) INTO bits; END $$;
CREATE VIEW log AS
	SELECT place, CASE b & 3 WHEN 0 THEN 'regress_ttl_owner' WHEN 1 THEN 'regress_ttl_child' ELSE 'somebody else' END AS who, b & 4 > 0 AS escaped
	FROM places() AS place, unnest('{0, 1, 2, 4, 5, 6}'::int[]) AS b
	WHERE bits(place) & (1 << b) > 0
	ORDER BY 1, 2, 3;
CREATE TABLE armed (yes bool);
GRANT SELECT ON armed TO PUBLIC;
CREATE FUNCTION note(place text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	escaped bool := false;
BEGIN
	-- since 18 core crashes where the CHECK of a domain begins a subtransaction
	IF place <> 'domain' OR current_setting('server_version_num')::int < 180000 THEN
		BEGIN
			PERFORM set_config('role', 'none', true);
			escaped := true;
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END IF;
	PERFORM setval(format('hostile.%I', place), hostile.bits(place) |
		(1 << (CASE current_user WHEN 'regress_ttl_owner' THEN 0 WHEN 'regress_ttl_child' THEN 1 ELSE 2 END + CASE WHEN escaped THEN 4 ELSE 0 END)));
END $$;
CREATE FUNCTION spy(place text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF EXISTS (SELECT FROM hostile.armed) THEN PERFORM hostile.note(place); END IF;
	RETURN true;
END $$;

SET ROLE regress_ttl_owner;
CREATE TYPE kind AS ENUM ('a', 'b');
CREATE FUNCTION kind_to_int(kind) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 1 WHERE hostile.spy('cast') $$;
CREATE CAST (kind AS int) WITH FUNCTION kind_to_int(kind) AS IMPLICIT;
CREATE FUNCTION alike(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT $1 = $2 AND hostile.spy('operator') $$;
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = alike);
CREATE DOMAIN moment AS timestamptz CHECK (hostile.spy('domain') OR VALUE IS NULL);
CREATE FUNCTION shift(moment) RETURNS moment LANGUAGE sql IMMUTABLE AS $$ SELECT $1::timestamptz::hostile.moment $$;
CREATE TABLE victim (id int PRIMARY KEY, ts moment, k kind);
CREATE INDEX victim_ttl ON victim (shift(ts)) WHERE id === 1 AND k::int > 0 AND 2 === 2
	AND ttl_index.expire_after_seconds(0);
CREATE INDEX victim_ts ON victim (ts);
CREATE POLICY p ON victim USING (spy('policy')) WITH CHECK (spy('policy'));
ALTER TABLE victim ENABLE ROW LEVEL SECURITY;
ALTER TABLE victim FORCE ROW LEVEL SECURITY;
-- a foreign key, with a trigger of somebody else on the other side
RESET ROLE;
GRANT REFERENCES ON victim TO regress_ttl_child;
-- else no cascade leads there
GRANT regress_ttl_owner TO regress_ttl_child;
SET ROLE regress_ttl_child;
CREATE FUNCTION child_gone() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM hostile.spy('trigger of a referencing table'); RETURN OLD; END $$;
CREATE TABLE child (id int REFERENCES victim ON DELETE CASCADE);
CREATE TRIGGER gone BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION child_gone();
RESET ROLE;
-- and a rule beside it
SET ROLE regress_ttl_owner;
CREATE TABLE ruled (id int, ts timestamptz);
CREATE INDEX ruled_ttl ON ruled (ts) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE echo (yes bool);
CREATE RULE also AS ON DELETE TO ruled DO ALSO INSERT INTO hostile.echo SELECT hostile.spy('rule') WHERE OLD.id > 0;
INSERT INTO ruled VALUES (1, '2001-01-01');
INSERT INTO victim SELECT g, '2001-01-01', 'a' FROM generate_series(1, 2) AS g;
RESET ROLE;
INSERT INTO child VALUES (1), (2);
CREATE FUNCTION on_event() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM hostile.spy('event trigger'); END $$;
CREATE EVENT TRIGGER regress_ttl_start ON ddl_command_start EXECUTE FUNCTION on_event();
CREATE EVENT TRIGGER regress_ttl_drop ON sql_drop EXECUTE FUNCTION on_event();
CREATE EVENT TRIGGER regress_ttl_rewrite ON table_rewrite EXECUTE FUNCTION on_event();
INSERT INTO armed VALUES (true);

-- a superuser looks, changes and runs
SELECT indexrelid, partial_filter_expression, state FROM ttl_index.indexes ORDER BY 1;
SELECT count(*) FROM ttl_index.index_stats;
SELECT ttl_index.due_count('victim_ttl'), ttl_index.oldest_due('victim_ttl') IS NOT NULL AS oldest;
SELECT ttl_index.coll_mod_index('victim_ttl', 2);
SELECT ttl_index.coll_mod('victim', 'ts', 1000000000);
SELECT ttl_index.remove_ttl('victim_ts');
SELECT ttl_index.create_index_command('victim', 'ts', 5, 'id === 1');
SELECT * FROM log WHERE escaped;
SELECT setval(format('%I', place), 0) FROM places() AS place \g /dev/null
-- To change an option no function in the filter is called, so that none can keep anybody from it.
SELECT ttl_index.coll_mod_index('victim_ttl', 3);
SELECT ttl_index.remove_ttl('victim_ttl');
SELECT ttl_index.remove_all_ttl() > 0 AS removed;
SELECT * FROM log;
SELECT ttl_index.coll_mod_index('victim_ttl', 2), ttl_index.coll_mod('ruled', 'ts', 0);
SELECT setval(format('%I', place), 0) FROM places() AS place \g /dev/null
-- What a session knows of an index's filter it does not fold again; this one knows nothing.
\c -
\set SHOW_CONTEXT never
SET client_min_messages = error;
SET search_path = hostile;
CALL ttl_index.run_pass();
TRUNCATE armed;
SELECT * FROM log;
SELECT (SELECT count(*) FROM victim) AS victim, (SELECT count(*) FROM child) AS child, (SELECT count(*) FROM ruled) AS ruled;
SELECT errors, last_error FROM ttl_index.index_stats WHERE schemaname = 'hostile';

DROP EVENT TRIGGER regress_ttl_start;
DROP EVENT TRIGGER regress_ttl_drop;
DROP EVENT TRIGGER regress_ttl_rewrite;

-- a member of the owner's role creates an index on documents, which are looked at for dates
SET ROLE regress_ttl_owner;
CREATE TABLE documents AS SELECT '{"at": 5}'::jsonb AS doc;
CREATE POLICY p ON documents USING (spy('policy'));
ALTER TABLE documents ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
RESET ROLE;
SELECT setval(format('%I', place), 0) FROM places() AS place \g /dev/null
INSERT INTO armed VALUES (true);
SET ROLE regress_ttl_child;
SET client_min_messages = warning;
SELECT ttl_index.create_index('documents', 'doc.at', 5);
RESET ROLE;
SELECT * FROM log;
SET client_min_messages = error;
DROP SCHEMA hostile CASCADE;
DROP ROLE regress_ttl_owner, regress_ttl_child;
