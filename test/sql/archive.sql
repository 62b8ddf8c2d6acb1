-- Rows move to another table instead of being deleted: archive_to.
SET client_min_messages = warning;
CREATE SCHEMA archive;
CREATE SCHEMA cold;
SET search_path = archive;
CREATE VIEW marks AS SELECT indexrelid, expire_after_seconds AS n, archive_to, state, reason FROM ttl_index.indexes
	WHERE relid::text !~ '^(public|setup)' ORDER BY indexrelid::text COLLATE "C";
CREATE TABLE event (id int PRIMARY KEY, ts timestamptz, body text, amount numeric(8,2));
CREATE TABLE cold.event (archived_at timestamptz DEFAULT now(), body text, amount numeric, ts timestamptz, id int);

-- by DDL: the target is a dependency, and is named as anything that a definition names
CREATE INDEX event_i ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.event');
SELECT * FROM marks;
SELECT pg_get_indexdef('event_i'::regclass);
DROP TABLE cold.event;
ALTER TABLE cold.event RENAME TO past;
SELECT archive_to, state FROM marks;

-- what REINDEX CONCURRENTLY loses comes back
REINDEX INDEX CONCURRENTLY event_i;
CALL ttl_index.run_pass();
SELECT pg_get_indexdef('event_i'::regclass);
REINDEX TABLE CONCURRENTLY event;
CALL ttl_index.run_pass();
SELECT * FROM marks;
DROP TABLE cold.past;
-- changed, ended, and begun, without a rebuild; the dependency follows
CREATE TABLE cold.other (LIKE cold.past);
SELECT relfilenode AS file FROM pg_class WHERE relname = 'event_i' \gset
SELECT * FROM ttl_index.coll_mod('event', 'ts', 60, archive_to => 'cold.other');
SELECT * FROM ttl_index.coll_mod('event', 'ts', 70);
SELECT * FROM marks;
SELECT relfilenode = :file AS same_file FROM pg_class WHERE relname = 'event_i';
REINDEX INDEX CONCURRENTLY event_i;
CALL ttl_index.run_pass();
SELECT * FROM marks;
SELECT refobjid::regclass FROM pg_depend WHERE objid = 'event_i'::regclass AND refobjsubid = 0 AND refclassid = 'pg_class'::regclass ORDER BY 1;
SELECT * FROM ttl_index.coll_mod_index('event_i', 60, archive_to => '-');
SELECT pg_get_indexdef('event_i'::regclass);
SELECT * FROM ttl_index.coll_mod_index('event_i', 60, archive_to => 'cold.other');
SELECT ttl_index.remove_ttl('event_i');
SELECT refobjid::regclass FROM pg_depend WHERE objid = 'event_i'::regclass AND refobjsubid = 0 AND refclassid = 'pg_class'::regclass;
DROP TABLE cold.other;
SELECT * FROM ttl_index.coll_mod_index('event_i', 60, archive_to => 'cold.past');
DROP INDEX event_i;

-- by function; what is not asked for is left as it is
SELECT ttl_index.create_index_command('event', 'ts', 60, archive_to => 'cold.past');
SELECT ttl_index.create_index('event', 'ts', 60, archive_to => 'cold.past');
CREATE TABLE cold.more (LIKE cold.past);
SET client_min_messages = notice;
SELECT ttl_index.create_index('event', 'ts', 60);
SELECT ttl_index.create_index('event', 'ts', 60, archive_to => 'cold.more');
SELECT ttl_index.create_index('event', 'ts', 60, archive_to => 'cold.more', or_change => true);
SELECT ttl_index.create_index('event', 'ts', 61, or_change => true);
SELECT ttl_index.create_index('event', 'ts', 61, archive_to => '-', or_change => true);
SELECT ttl_index.create_index('event', 'ts', 61, archive_to => 'cold.past', or_change => true);
SET client_min_messages = warning;
SELECT * FROM marks;
DROP INDEX event_ts_ttl;
DROP TABLE cold.more;

-- the option itself
CREATE INDEX ON event (ts) WHERE ttl_index.archive_to('cold.past');
CREATE INDEX ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.past') AND ttl_index.archive_to('cold.past');
CREATE INDEX ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to(NULL);
CREATE INDEX ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('-');
CREATE INDEX ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to(1259);
CREATE INDEX ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.nothing');

-- what cannot take the rows: by DDL and by function alike
CREATE FUNCTION try(target text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_ddl text;
	by_function text;
	by_coll_mod text;
	the_hint text;
BEGIN
	BEGIN
		EXECUTE format('CREATE INDEX refused ON archive.event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to(%L)', target);
		RETURN 'taken';
	EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS by_ddl = MESSAGE_TEXT, the_hint = PG_EXCEPTION_HINT;
	END;
	BEGIN
		PERFORM ttl_index.create_index('archive.event', 'ts', 60, archive_to => target::regclass);
		RETURN 'taken by the function';
	EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS by_function = MESSAGE_TEXT;
	END;
	BEGIN
		CREATE INDEX refused ON archive.event (ts);
		PERFORM ttl_index.coll_mod_index('archive.refused', 60, archive_to => target::regclass);
		RETURN 'taken by coll_mod';
	EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS by_coll_mod = MESSAGE_TEXT;
	END;
	IF by_ddl IS DISTINCT FROM by_function OR by_ddl IS DISTINCT FROM by_coll_mod OR the_hint = '' THEN
		RETURN format('%s -- %s -- %s -- %s', by_ddl, by_function, by_coll_mod, the_hint);
	END IF;
	RETURN by_ddl || E'\n' || the_hint;
END
$$;
CREATE VIEW cold.a_view AS SELECT * FROM event;
CREATE MATERIALIZED VIEW cold.a_matview AS SELECT * FROM event;
CREATE SEQUENCE cold.a_sequence;
CREATE TYPE cold.a_type AS (id int);
CREATE TEMP TABLE temporary (LIKE event);
CREATE UNLOGGED TABLE cold.unlogged (LIKE event);
CREATE TABLE cold.lacks (id int, ts timestamptz, amount numeric);
CREATE TABLE cold.dropped (LIKE event);
ALTER TABLE cold.dropped DROP COLUMN body;
CREATE TABLE cold.type (id bigint, ts timestamptz, body text, amount numeric);
CREATE TABLE cold.modifier (id int, ts timestamptz, body text, amount numeric(6,1));
CREATE TABLE cold.whole (id int, ts timestamptz, body text) PARTITION BY RANGE (ts);
CREATE TABLE cold.part PARTITION OF cold.whole DEFAULT;
CREATE TABLE cold.generated (id int, ts timestamptz, amount numeric, body text GENERATED ALWAYS AS ('x') STORED);
CREATE TABLE cold.ruled (LIKE event);
CREATE RULE gone AS ON INSERT TO cold.ruled DO INSTEAD NOTHING;
CREATE TABLE cold.loop (LIKE event);
CREATE INDEX ON cold.loop (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('archive.event');
SELECT target, regexp_replace(try(target), 'pg_temp_\d+', 'pg_temp') FROM unnest(ARRAY['cold.a_view', 'cold.a_matview', 'cold.a_sequence', 'cold.a_type', 'event_pkey',
	'pg_temp.temporary', 'cold.unlogged', 'cold.lacks',
	'cold.dropped', 'cold.type', 'cold.modifier', 'cold.part', 'cold.generated', 'cold.ruled', 'archive.event',
	'cold.loop', 'cold.past']) AS target;
DROP INDEX refused;
DROP TABLE cold.loop;

-- rows must not come back, over more than one stage either
CREATE TABLE cold.ring (LIKE event);
CREATE TABLE cold.after (LIKE event) PARTITION BY RANGE (ts);
CREATE INDEX ON cold.after (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('archive.event');
CREATE INDEX ON cold.ring (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.after');
SELECT try('cold.ring');
DROP TABLE cold.ring, cold.after;
CREATE TABLE child (LIKE event);
CREATE INDEX refused ON child (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.past');
CREATE INDEX ON cold.past (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('archive.child');
DROP TABLE child;

-- a circle that is closed later stops it, with a line to whoever closes it
CREATE TABLE cold.ring (LIKE event) PARTITION BY RANGE (ts);
CREATE TABLE closing (LIKE event);
CREATE INDEX closing_i ON closing (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.ring');
INSERT INTO closing VALUES (1, '2000-06-01', 'x', 1);
SELECT state FROM marks;
ALTER TABLE cold.ring ATTACH PARTITION closing FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT indexrelid, state, reason FROM marks;
CALL ttl_index.run_pass();
SELECT tableoid::regclass, id FROM cold.ring;
ALTER TABLE cold.ring DETACH PARTITION closing;
SELECT indexrelid, state FROM marks;
DROP TABLE closing, cold.ring;

-- a partitioned table: all its partitions' indexes, also of those that come later
CREATE TABLE p (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE p_cold (LIKE p);
SELECT ttl_index.create_index('p', 'ts', 60, archive_to => 'p1');
SELECT ttl_index.create_index('p1', 'ts', 60, archive_to => 'p');
SELECT ttl_index.create_index('p', 'ts', 60, archive_to => 'p_cold');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE p3 (ts timestamptz, id int);
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
SELECT * FROM marks;
CREATE TABLE p_cold2 (LIKE p);
SELECT * FROM ttl_index.coll_mod('p', 'ts', 60, archive_to => 'p_cold2');
SELECT relid, pg_get_indexdef(indexrelid) FROM ttl_index.indexes WHERE relid::text ~ '^p' ORDER BY 1;
DROP TABLE p_cold;
REINDEX TABLE CONCURRENTLY p;
ALTER TABLE p DETACH PARTITION p2;
SELECT * FROM marks;
DROP TABLE p, p2;
DROP TABLE p_cold2;

-- a pair: both
CREATE TABLE doc (ts timestamptz, doc jsonb);
CREATE TABLE cold.doc (LIKE doc);
SELECT ttl_index.create_index_command('doc', 'ts', 60, document_ttl_field => 'doc.ttl', archive_to => 'cold.doc');
SELECT ttl_index.create_index('doc', 'ts', 60, document_ttl_field => 'doc.ttl', archive_to => 'cold.doc');
CREATE TABLE cold.doc2 (LIKE doc);
SELECT * FROM ttl_index.coll_mod('doc', 'ts', 60, archive_to => 'cold.doc2');
SELECT pg_get_indexdef(indexrelid) FROM ttl_index.indexes WHERE relid = 'doc'::regclass ORDER BY 1;
SELECT * FROM ttl_index.coll_mod('doc', 'ts', -1, archive_to => '-');
SELECT * FROM marks;
SELECT ttl_index.remove_ttl('doc_ts_ttl');
SELECT * FROM ttl_index.coll_mod_index('doc_ts_ttl', 60, archive_to => 'cold.doc');
SELECT * FROM marks;
DROP TABLE doc;

-- LIKE takes it along
CREATE INDEX event_i ON event (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold.past');
CREATE TABLE event2 (LIKE event INCLUDING INDEXES);
SELECT * FROM marks;
DROP TABLE event2;

-- what comes to be wrong later: nothing is deleted
INSERT INTO event VALUES (1, '2001-01-01', 'x', 1);
ALTER TABLE event ADD COLUMN more int;
SELECT * FROM marks;
CALL ttl_index.run_pass();
SELECT count(*) FROM event;
ALTER TABLE cold.past ADD COLUMN more int;
SELECT * FROM marks;

-- it is said by the command that makes it so, with the command that ends it; a restore is quiet
SET client_min_messages = notice;
ALTER TABLE event ADD COLUMN "the Note" varchar(20) COLLATE "C";
ALTER TABLE cold.past ADD COLUMN "the Note" varchar(20) COLLATE "C";
ALTER TABLE event ALTER COLUMN more TYPE bigint;
ALTER TABLE cold.past ALTER COLUMN more TYPE bigint;
ALTER TABLE event RENAME COLUMN more TO "More";
ALTER TABLE cold.past RENAME COLUMN more TO "More";
ALTER TABLE event DROP COLUMN "More", DROP COLUMN "the Note";
-- who changes the archive learns it from the state
CREATE RULE gone AS ON INSERT TO cold.past DO INSTEAD NOTHING;
SELECT state, reason FROM marks;
DROP RULE gone ON cold.past;
SET client_min_messages = warning;
ALTER TABLE event ADD COLUMN quiet int;
ALTER TABLE event DROP COLUMN quiet;

CREATE ROLE archive_owner;
GRANT CREATE, USAGE ON SCHEMA archive TO archive_owner;
SET client_min_messages = notice;
ALTER TABLE event OWNER TO archive_owner;
SET client_min_messages = warning;
SELECT state, reason FROM marks;
GRANT USAGE ON SCHEMA cold TO archive_owner;
GRANT INSERT ON cold.past TO archive_owner;
SELECT state, reason FROM marks;

-- the owner of the archive has the rights of the owner of the rows, or the other way round
CREATE ROLE archive_other;
ALTER TABLE cold.past OWNER TO archive_other;
SELECT state, reason FROM marks;
GRANT archive_owner TO archive_other;
SELECT state FROM marks;
CALL ttl_index.run_pass();
SELECT id FROM cold.past;

-- what the archive does not take is an error of the index
INSERT INTO event VALUES (2, '2001-01-01', 'x', 1);
ALTER TABLE cold.past ADD COLUMN batch int NOT NULL DEFAULT 1;
ALTER TABLE cold.past ALTER COLUMN batch DROP DEFAULT;
CALL ttl_index.run_pass();
SELECT state FROM marks;
SELECT id FROM event;

DROP TABLE temporary;

-- a second TTL index would delete what the first one moves, and remove_ttl() forgets the archive
CREATE SCHEMA twice;
CREATE TABLE twice.t (at timestamptz);
CREATE TABLE twice.old (LIKE twice.t);
CREATE INDEX moving ON twice.t (at) WHERE ttl_index.expire_after_seconds(20) AND ttl_index.archive_to('twice.old');
CREATE INDEX deleting ON twice.t (at) WHERE ttl_index.expire_after_seconds(10);
SELECT * FROM ttl_index.coll_mod_index('twice.deleting', 10, archive_to => 'twice.old');
SET client_min_messages = notice;
SELECT ttl_index.remove_ttl('twice.moving');
SET client_min_messages = warning;
DROP SCHEMA twice CASCADE;

DROP SCHEMA archive, cold CASCADE;
DROP ROLE archive_owner, archive_other;
