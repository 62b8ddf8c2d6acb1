-- CREATE EXTENSION, and the schema ttl_index, which is a member of the extension.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE VIEW ttl_schema AS
SELECT n.nspowner, n.nspacl, (SELECT e.extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
	WHERE d.classid = 'pg_namespace'::regclass AND d.objid = n.oid AND d.deptype = 'e') AS extname
FROM pg_namespace AS n WHERE n.nspname = 'ttl_index';
SELECT extname, nspacl::text LIKE '%,=U/%' AS for_all, obj_description('ttl_index'::regnamespace, 'pg_namespace') FROM ttl_schema;

-- all that is made is in there
SELECT d.classid::regclass, count(*) FROM pg_depend AS d, pg_identify_object(d.classid, d.objid, d.objsubid) AS o
WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ttl_index') AND o.schema IS DISTINCT FROM 'ttl_index'
	AND d.classid NOT IN ('pg_namespace'::regclass, 'pg_event_trigger'::regclass, 'pg_cast'::regclass)
GROUP BY 1;
-- a description of the extension would be dumped, and be an error where an ordinary user restores
SELECT obj_description(oid) FROM pg_extension WHERE extname = 'ttl_index';
SELECT comment FROM pg_available_extensions WHERE name = 'ttl_index';

-- gone with the extension, not without it
DROP SCHEMA ttl_index;
CREATE TABLE ttl_index.stray (x int);
DROP EXTENSION ttl_index;
DROP TABLE ttl_index.stray;
DROP EXTENSION ttl_index;
SELECT extname FROM ttl_schema;

-- where it is cannot be chosen
CREATE SCHEMA elsewhere;
CREATE EXTENSION ttl_index SCHEMA elsewhere;
CREATE EXTENSION ttl_index SCHEMA ttl_index;
CREATE EXTENSION ttl_index SCHEMA pg_catalog;
SELECT extname FROM ttl_schema;
DROP EXTENSION ttl_index;

-- beside a publication of all tables, to which deletes from the counters would mean nothing
SET client_min_messages = error;
CREATE PUBLICATION ttl_everything FOR ALL TABLES;
CREATE EXTENSION ttl_index;
CALL ttl_index.run_pass();
SELECT ttl_index.stats_reset();
DROP PUBLICATION ttl_everything;
DROP EXTENSION ttl_index;
SET client_min_messages = warning;

-- whatever tables are made of by default, the counters are of heap, which is written directly
CREATE ACCESS METHOD ttl_heap TYPE TABLE HANDLER heap_tableam_handler;
SET default_table_access_method = ttl_heap;
CREATE EXTENSION ttl_index;
SELECT relname, amname FROM pg_class JOIN pg_am ON pg_am.oid = relam
WHERE relnamespace = 'ttl_index'::regnamespace AND relkind = 'r' ORDER BY relname;
DROP EXTENSION ttl_index;
RESET default_table_access_method;
DROP ACCESS METHOD ttl_heap;

-- a schema that is empty and a superuser's is taken over, without what was granted on it
CREATE ROLE regress_ttl_squatter;
CREATE SCHEMA ttl_index;
GRANT ALL ON SCHEMA ttl_index TO regress_ttl_squatter;
ALTER DEFAULT PRIVILEGES IN SCHEMA ttl_index GRANT ALL ON TABLES TO regress_ttl_squatter;
CREATE EXTENSION ttl_index;
SELECT extname, has_schema_privilege('regress_ttl_squatter', 'ttl_index', 'CREATE') AS may_create,
	has_table_privilege('regress_ttl_squatter', 'ttl_index.counters', 'SELECT, INSERT, UPDATE, DELETE') AS may_write,
	nspowner = current_user::regrole AS is_mine FROM ttl_schema;
DROP EXTENSION ttl_index;
SELECT extname FROM ttl_schema;

-- what all new objects of a superuser grant is not granted on those of the extension
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_ttl_squatter, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_ttl_squatter;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_ttl_squatter;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_ttl_squatter, PUBLIC;
CREATE EXTENSION ttl_index;
SELECT has_schema_privilege('regress_ttl_squatter', 'ttl_index', 'CREATE') AS may_create,
	has_schema_privilege('regress_ttl_squatter', 'ttl_index', 'USAGE') AS may_use,
	has_function_privilege('regress_ttl_squatter', 'ttl_index.resume()', 'EXECUTE') AS may_resume,
	has_function_privilege('regress_ttl_squatter', 'ttl_index.lag(regclass)', 'EXECUTE') AS may_look;
SELECT relname FROM pg_class WHERE relnamespace = 'ttl_index'::regnamespace AND relkind IN ('r', 'v')
	AND has_table_privilege('regress_ttl_squatter', oid, 'INSERT, UPDATE, DELETE, TRUNCATE');
SELECT relname FROM pg_class WHERE relnamespace = 'ttl_index'::regnamespace AND relkind IN ('r', 'v')
	AND has_table_privilege('regress_ttl_squatter', oid, 'SELECT') ORDER BY 1;
DROP EXTENSION ttl_index;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM regress_ttl_squatter, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM regress_ttl_squatter;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM regress_ttl_squatter;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM regress_ttl_squatter, PUBLIC;

-- one that holds something is not, and nobody else's
CREATE SCHEMA ttl_index;
CREATE FUNCTION ttl_index.coalesce(bigint, integer) RETURNS bigint LANGUAGE sql RETURN 1;
CREATE EXTENSION ttl_index;
SELECT extname FROM ttl_schema;
DROP SCHEMA ttl_index CASCADE;
CREATE SCHEMA ttl_index AUTHORIZATION regress_ttl_squatter;
CREATE EXTENSION ttl_index;
DROP SCHEMA ttl_index;

-- what stands in the path of whoever installs is not called, and the path stays as it was
CREATE FUNCTION elsewhere.trap() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$;
CREATE FUNCTION elsewhere.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql RETURN elsewhere.trap();
CREATE FUNCTION elsewhere.string_agg(text) RETURNS text LANGUAGE sql RETURN elsewhere.trap();
CREATE FUNCTION elsewhere.differs(name, text) RETURNS boolean LANGUAGE sql RETURN elsewhere.trap() = '';
CREATE FUNCTION elsewhere.current_setting(text) RETURNS text LANGUAGE sql RETURN elsewhere.trap();
CREATE OPERATOR elsewhere.= (LEFTARG = name, RIGHTARG = text, FUNCTION = elsewhere.differs);
CREATE TABLE elsewhere.counters (trap int);
CREATE TEMP TABLE counters (trap int);
CREATE TEMP TABLE pg_namespace (nspname name);
SET search_path = elsewhere, pg_temp, pg_catalog;
CREATE EXTENSION ttl_index;
SHOW search_path;
BEGIN;
DROP EXTENSION ttl_index;
SET LOCAL search_path = pg_temp, elsewhere, pg_catalog;
CREATE EXTENSION ttl_index;
SHOW search_path;
COMMIT;
SHOW search_path;
SET search_path = public;
SELECT extname FROM ttl_schema;
SELECT passes FROM ttl_index.stats;

DROP SCHEMA elsewhere CASCADE;
DROP TABLE pg_temp.counters, pg_temp.pg_namespace;
DROP VIEW ttl_schema;
DROP ROLE regress_ttl_squatter;
