-- Documents with a TTL of their own: rules 32 and 33.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA own;
SET search_path = own;
CREATE VIEW marks AS SELECT indexrelid, parent_indexrelid AS parent, key, expire_after_seconds AS n, document_ttl,
	partial_filter_expression AS filter, state FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C";

-- The truth table of rule 33, every row once fresh and once old: a document that
-- was modified 1,500 seconds ago is expired by a TTL of 1,000 and not by one of 2,000.
CREATE FUNCTION fill(rel regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('TRUNCATE %s', rel);
	EXECUTE format($i$INSERT INTO %s (name, doc, own, _ts)
		SELECT concat(age, ' s: ', ttl), CASE WHEN ttl = 'missing' THEN '{}' ELSE jsonb_build_object('ttl', ttl::int) END,
			CASE WHEN ttl <> 'missing' THEN ttl::int END, clock_timestamp() - age * interval '1 s'
		FROM unnest('{500,1500,2500}'::int[]) AS age, unnest('{missing,-1,2000}'::text[]) AS ttl$i$, rel);
END $$;
CREATE FUNCTION left_of(rel regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(name, '', '' ORDER BY name COLLATE "C") FROM %s', rel) INTO result;
	RETURN result;
END $$;
CREATE TABLE coll (name text, doc jsonb, own int, _ts timestamptz);
-- no TTL index: never
SELECT fill('coll');
CALL ttl_index.run_pass();
SELECT left_of('coll');
-- n = 1000
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
SELECT * FROM marks;
\d coll
SELECT ttl_index.due_count('coll__ts_ttl'), ttl_index.due_count('coll__ts_own_ttl');
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT left_of('coll');
-- each index has statistics of its own
SELECT indexrelname, deleted_documents FROM ttl_index.index_stats ORDER BY 1;
-- n = -1: only documents with their own TTL, without a rebuild of either
SELECT pg_relation_filenode('coll__ts_ttl') AS main, pg_relation_filenode('coll__ts_own_ttl') AS other \gset
SELECT * FROM ttl_index.coll_mod('coll', '_ts', -1);
SELECT fill('coll');
SELECT ttl_index.due_count('coll__ts_ttl'), ttl_index.due_count('coll__ts_own_ttl'), ttl_index.oldest_due('coll__ts_own_ttl') IS NOT NULL AS oldest;
CALL ttl_index.run_pass();
SELECT left_of('coll');
SELECT * FROM marks;
REINDEX TABLE CONCURRENTLY coll;
SELECT * FROM marks;
SELECT pg_relation_filenode('coll__ts_ttl') AS main, pg_relation_filenode('coll__ts_own_ttl') AS other \gset
SELECT * FROM ttl_index.coll_mod('coll', '_ts', 1000);
SELECT * FROM ttl_index.coll_mod_index('coll__ts_ttl', -1);
SELECT * FROM ttl_index.coll_mod_index('coll__ts_ttl', 2000000000);
SELECT pg_relation_filenode('coll__ts_ttl') = :main AND pg_relation_filenode('coll__ts_own_ttl') = :other AS not_rebuilt;

-- rule 15 for both indexes; the one that is missing is made
SELECT ttl_index.create_index('coll', '_ts', 2000000000, document_ttl_field => 'doc.ttl');
SELECT ttl_index.create_index('coll', '_ts', 5, document_ttl_field => 'doc.ttl');
DROP INDEX coll__ts_own_ttl;
SELECT ttl_index.create_index('coll', '_ts', 2000000000, document_ttl_field => 'doc.ttl');
SELECT * FROM marks;
-- what is said of one holds for both
SELECT ttl_index.coll_mod_index('coll__ts_own_ttl', 5);
SELECT * FROM marks;
SELECT ttl_index.remove_ttl('coll__ts_own_ttl');
SELECT * FROM marks;
SELECT * FROM ttl_index.coll_mod_index('coll__ts_ttl', 7);
SELECT * FROM marks;
SELECT ttl_index.drop_index('coll', '_ts');
SELECT * FROM marks;
DROP TABLE coll;

-- with a filter, over an integer column, on a date in the document
CREATE TABLE coll (name text, doc jsonb, own smallint, _ts timestamptz);
SELECT ttl_index.create_index('coll', '_ts', 1000, 'name LIKE ''%s%''', document_ttl_field => 'own', name => 'named');
SELECT fill('coll');
CALL ttl_index.run_pass();
SELECT left_of('coll');
SELECT * FROM marks;
SELECT ttl_index.remove_all_ttl();
DROP TABLE coll;
CREATE TABLE coll (doc jsonb);
SELECT ttl_index.create_index_command('coll', 'doc.at', -1, document_ttl_field => 'doc.time to live', concurrently => true) \gexec
INSERT INTO coll VALUES ('{"at": "2001-01-01T00:00:00Z", "time to live": 5}'), ('{"at": "2001-01-01T00:00:00Z"}'),
	('{"at": "2999-01-01T00:00:00Z", "time to live": 5}'), ('{"time to live": 5}');
CALL ttl_index.run_pass();
SELECT * FROM coll ORDER BY 1;
SELECT * FROM marks;
DROP TABLE coll;

-- partitioned
CREATE TABLE coll (name text, doc jsonb, own int, _ts timestamptz) PARTITION BY LIST (name);
CREATE TABLE coll_rest PARTITION OF coll DEFAULT;
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
SELECT fill('coll');
CALL ttl_index.run_pass();
SELECT left_of('coll');
SELECT * FROM marks;
SELECT ttl_index.drop_index('coll', '_ts');

-- rule 32 at the engine: a value that is no TTL is as if it were missing
DROP TABLE coll;
CREATE TABLE coll (name text, doc jsonb, _ts timestamptz DEFAULT clock_timestamp() - interval '1500 s');
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
INSERT INTO coll (name, doc) VALUES ('goes: 20.5', '{"ttl": 20.5}'), ('goes: 0', '{"ttl": 0}'), ('goes: -2', '{"ttl": -2}'),
	('goes: 2147483648', '{"ttl": 2147483648}'), ('goes: string', '{"ttl": "2000"}'), ('goes: true', '{"ttl": true}'),
	('goes: null', '{"ttl": null}'), ('goes: nested', '{"a": {"ttl": 2000}}'), ('goes: TTL', '{"TTL": 2000}'),
	('goes: 20', '{"ttl": 20}'), ('goes: 20.0', '{"ttl": 20.0}'), ('stays: 2000.0', '{"ttl": 2000.0}'), ('stays: -1.0', '{"ttl": -1.0}'),
	('stays: the largest', '{"ttl": 2147483647}'), ('goes: no object', '[]');
CALL ttl_index.run_pass();
SELECT left_of('coll');

SELECT ttl_index.drop_index('coll', '_ts');

-- a second index that lost its main one is taken again, not made twice
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
DROP INDEX coll__ts_ttl;
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
SELECT indexrelid, parent_indexrelid FROM ttl_index.indexes ORDER BY 1;
SELECT ttl_index.drop_index('coll', '_ts');
SELECT count(*) FROM ttl_index.indexes;
-- document_ttl(doc) is document_ttl(doc, 'ttl'), however the indexes were written
CREATE INDEX by_hand ON coll (_ts) WHERE ttl_index.document_ttl(doc) IS NULL AND ttl_index.expire_after_seconds(1000);
CREATE INDEX by_hand_own ON coll (ttl_index.expire_at(_ts, ttl_index.document_ttl(doc, 'ttl'))) WHERE ttl_index.expire_after_seconds(0);
SELECT indexrelid, parent_indexrelid, document_ttl FROM ttl_index.indexes ORDER BY 1;
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
SELECT ttl_index.drop_index('coll', '_ts');
SELECT count(*) FROM ttl_index.indexes;

-- refusals
SELECT ttl_index.create_index('coll', '_ts', -1);
SELECT ttl_index.create_index('coll', '_ts', -2, document_ttl_field => 'doc.ttl');
SELECT ttl_index.create_index('coll', '_ts', 5, document_ttl_field => 'doc.a.ttl');
SELECT ttl_index.create_index('coll', '_ts', 5, document_ttl_field => 'doc');
SELECT ttl_index.create_index('coll', '_ts', 5, document_ttl_field => 'name');
SELECT ttl_index.create_index('coll', '_ts', 5, document_ttl_field => 'nothing.ttl');
ALTER TABLE coll ADD COLUMN local timestamp;
SELECT ttl_index.create_index('coll', 'local', 5, time_zone => 'UTC', document_ttl_field => 'doc.ttl');
CREATE INDEX bad ON coll (_ts) WHERE ttl_index.expire_after_seconds(-1);
CREATE INDEX bad ON coll (_ts) WHERE ttl_index.document_ttl(doc) IS NULL AND ttl_index.expire_after_seconds(-2);
CREATE INDEX good ON coll (_ts) WHERE ttl_index.document_ttl(doc) IS NULL AND ttl_index.expire_after_seconds(-1);
SELECT indexrelid, expire_after_seconds, document_ttl, state FROM ttl_index.indexes WHERE indexrelid = 'good'::regclass;
CREATE INDEX plain ON coll (local);
SELECT ttl_index.coll_mod_index('plain', -1, 'UTC');

-- a TTL index beside a pair on the same key would delete what the pair keeps, and
-- the reverse: refused, and warned of by DDL
SET client_min_messages = notice;
CREATE TABLE beside (at timestamptz, touched timestamptz, kind text, doc jsonb, own_ttl int);
SELECT ttl_index.create_index('beside', 'at', 10);
SELECT ttl_index.create_index('beside', 'at', 10, document_ttl_field => 'doc.ttl');
SELECT ttl_index.create_index_command('beside', 'at', 10, document_ttl_field => 'own_ttl');
SELECT ttl_index.create_index('beside', 'at', 10, 'kind = ''x''', document_ttl_field => 'doc.ttl');
SELECT ttl_index.remove_ttl('beside_at_ttl');
SELECT ttl_index.create_index('beside', 'at', 10, document_ttl_field => 'doc.ttl', name => 'pair');
SELECT ttl_index.create_index('beside', 'at', 10, document_ttl_field => 'doc.ttl');
SELECT ttl_index.create_index('beside', 'at', 10, 'kind = ''x''');
SELECT ttl_index.coll_mod_index('beside_at_ttl', 10);
CREATE INDEX by_ddl ON beside (at) WHERE kind = 'x' AND ttl_index.expire_after_seconds(10);
DROP INDEX by_ddl, pair, beside_at_own_ttl;
SELECT ttl_index.coll_mod_index('beside_at_ttl', 10);
CREATE INDEX own_first ON beside (ttl_index.expire_at(at, ttl_index.document_ttl(doc)))
	WHERE ttl_index.document_ttl(doc) IS NOT NULL AND ttl_index.expire_after_seconds(0);
SELECT ttl_index.remove_ttl('beside_at_ttl');
-- the two of a pair are one TTL index, in either order
CREATE INDEX main_second ON beside (at) WHERE ttl_index.document_ttl(doc) IS NULL AND ttl_index.expire_after_seconds(10);
-- another key is told of, once for a pair
SELECT ttl_index.create_index('beside', 'touched', 10, 'kind = ''y''', document_ttl_field => 'doc.ttl', name => 'touched_pair');
DROP INDEX own_first, main_second;
-- arguments by name, in any order, are the same
CREATE INDEX own_named ON beside (ttl_index.expire_at(ttl => ttl_index.document_ttl(document => doc), since => at))
	WHERE ttl_index.document_ttl(doc) IS NOT NULL AND ttl_index.expire_after_seconds(seconds => 0);
CREATE INDEX main_named ON beside (at)
	WHERE ttl_index.document_ttl(field => 'ttl', document => doc) IS NULL AND ttl_index.expire_after_seconds(seconds => 10);
SELECT indexrelid, parent_indexrelid, document_ttl FROM ttl_index.indexes WHERE indexrelid::text LIKE '%_named' ORDER BY 1;
CREATE INDEX by_ddl ON beside (at) WHERE ttl_index.expire_after_seconds(10);
CREATE INDEX by_path ON beside (ttl_index.document_date(document => doc, VARIADIC path => ARRAY['a', 'b'])) WHERE ttl_index.expire_after_seconds(10);
SELECT ttl_index.coll_mod('beside', 'doc.a.b', 20);
SELECT indexrelid, key FROM ttl_index.indexes WHERE indexrelid = 'by_path'::regclass;
DROP INDEX own_named, main_named, by_path, by_ddl;
-- filters that no row can pass both: nothing is said, and nothing refused
SELECT ttl_index.create_index('beside', 'touched', 10, 'kind = ''z''', name => 'z');
CREATE INDEX ON beside (touched) WHERE kind IS NULL AND ttl_index.expire_after_seconds(10);
SELECT ttl_index.create_index('beside', 'touched', 10, 'kind > ''z''', name => 'after_z');
SELECT ttl_index.create_index('beside', 'touched', 10, 'kind >= ''z''', name => 'from_z');
-- nor where nothing is new
SELECT ttl_index.coll_mod_index('z', 20), ttl_index.coll_mod_index('from_z', 20);
-- but where an index is built anew, of other dates
ALTER TABLE beside ALTER touched TYPE timestamptz(3);
-- a partition's own, at ATTACH
CREATE TABLE whole (at timestamptz, touched timestamptz) PARTITION BY RANGE (at);
CREATE INDEX ON whole (at) WHERE ttl_index.expire_after_seconds(10);
CREATE TABLE part (at timestamptz, touched timestamptz);
CREATE INDEX ON part (touched) WHERE ttl_index.expire_after_seconds(10);
ALTER TABLE whole ATTACH PARTITION part DEFAULT;
CREATE TABLE part_2 PARTITION OF whole FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE alike (LIKE part INCLUDING INDEXES);

SET client_min_messages = error;
DROP SCHEMA own CASCADE;
