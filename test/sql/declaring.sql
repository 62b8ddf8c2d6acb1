-- What a command that declares a TTL says: the same as the functions do.
\set SHOW_CONTEXT never
SET TimeZone = 'UTC';
CREATE SCHEMA decl;
SET search_path = decl;
SET client_min_messages = warning;
CALL ttl_index.run_pass();
RESET client_min_messages;
CREATE TABLE t (id int, ts timestamptz, doc jsonb);
INSERT INTO t SELECT g, CASE WHEN g <= 900 THEN '2001-01-01'::timestamptz ELSE '2999-01-01' END FROM generate_series(1, 1000) AS g;

-- how many rows are due at once
CREATE INDEX a ON t (ts) WHERE ttl_index.expire_after_seconds(60);
CREATE INDEX CONCURRENTLY b ON t (ts) WHERE id <= 100 AND ttl_index.expire_after_seconds(60);
-- no date at all
CREATE INDEX c ON t ((ttl_index.document_date(doc, 'at'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX a, b, c;

-- a foreign key without an index makes each delete read a whole table, also beyond a cascade
CREATE TABLE par (id int, n int, at timestamptz, PRIMARY KEY (id, n));
CREATE TABLE "Chi" (id int PRIMARY KEY, "P" int, n int, FOREIGN KEY (n, "P") REFERENCES par (n, id) ON DELETE CASCADE);
CREATE TABLE gchi (chi int REFERENCES "Chi", par int, n int, FOREIGN KEY (par, n) REFERENCES par ON DELETE SET NULL);
CREATE INDEX ON gchi (par) WHERE n IS NOT NULL;
CREATE INDEX par_ttl ON par (at) WHERE ttl_index.expire_after_seconds(60);
SELECT reason FROM ttl_index.indexes WHERE indexrelid = 'par_ttl'::regclass;
CREATE INDEX ON decl."Chi" (n, "P");
CREATE INDEX ON decl.gchi (chi);
SELECT reason FROM ttl_index.indexes WHERE indexrelid = 'par_ttl'::regclass;
DROP TABLE gchi, "Chi", par;

-- an index goes with a column, also with one that only its filter names
CREATE TABLE narrow (id int, tenant int, at timestamptz, made timestamptz, expire int);
CREATE INDEX narrow_ttl ON narrow (at) WHERE tenant = 5 AND ttl_index.expire_after_seconds(60);
CREATE INDEX narrow_plain ON narrow (id) WHERE tenant = 5;
SELECT ttl_index.create_index('narrow', 'made', 60, document_ttl_field => 'expire');
ALTER TABLE narrow ALTER tenant TYPE bigint, ALTER expire TYPE bigint;
ALTER TABLE narrow DROP COLUMN tenant, DROP COLUMN expire;
SELECT indexrelid FROM ttl_index.indexes WHERE relid = 'narrow'::regclass;
CREATE INDEX narrow_ttl ON narrow (at) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX narrow_ttl;
DROP TABLE narrow;
CREATE TABLE narrow (tenant int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE narrow_1 PARTITION OF narrow FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE INDEX narrow_ttl ON narrow (at) WHERE tenant = 5 AND ttl_index.expire_after_seconds(60);
ALTER TABLE narrow DROP COLUMN tenant;
DROP TABLE narrow;

-- a restore asks for no notices, and gets nothing; our functions warn all the same
SET client_min_messages = warning;
CREATE INDEX a ON t (ts) WHERE ttl_index.expire_after_seconds(60);
CREATE INDEX c ON t ((ttl_index.document_date(doc, 'at'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX c;
SELECT ttl_index.create_index('t', 'doc.at', 60, name => 'c');
RESET client_min_messages;
DROP INDEX a, c;

-- units that were taken for others
CREATE TABLE epoch (s bigint, ms bigint, doc jsonb, never timestamptz);
INSERT INTO epoch SELECT 1709210096 + g, (1709210096 + g) * 1000::bigint,
	jsonb_build_object('at', jsonb_build_object('$date', 1709210096 + g)), '0001-01-01' FROM generate_series(1, 10) AS g;
CREATE INDEX e1 ON epoch (to_timestamp(ms)) WHERE ttl_index.expire_after_seconds(60);
CREATE INDEX e2 ON epoch (to_timestamp(ms / 1000.0)) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX e1, e2;
CREATE INDEX e3 ON epoch ((ttl_index.document_date(doc, 'at'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX e3;
CREATE INDEX e4 ON epoch (never) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX e4;
-- what is not due, and infinity, is left alone
UPDATE epoch SET never = CASE WHEN s % 2 = 0 THEN 'infinity'::timestamptz ELSE '9999-12-31' END;
CREATE INDEX e5 ON epoch (never) WHERE ttl_index.expire_after_seconds(60);

-- documents without a date never expire; there are others
CREATE TABLE docs (doc jsonb);
INSERT INTO docs SELECT jsonb_build_object('at', CASE WHEN g % 2 = 0 THEN '2001-01-01T00:00:00Z' ELSE '2001-01-01T00:00:00' END)
FROM generate_series(1, 100) AS g;
CREATE INDEX d1 ON docs ((ttl_index.document_date(doc, 'at'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX d1;

-- a zero date among many; a column without dates is for what has not happened yet, a misread document is not
CREATE TABLE mixed (at timestamptz, deleted_at timestamptz, deleted_ms bigint, doc jsonb);
INSERT INTO mixed SELECT CASE WHEN g = 7 THEN '0001-01-01'::timestamptz ELSE '2999-01-01' END, NULL, NULL,
	jsonb_build_object('ms', 1700000000000, 'local', '2999-02-28T12:34:56', 'text', '2999-02-28 12:34:56', 'meta', jsonb_build_object('expiresAt', '2999-01-01T00:00:00Z'),
		'made', '2998-01-01T00:00:00Z')
FROM generate_series(1, 100) AS g;
CREATE INDEX m ON mixed (at) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
CREATE INDEX m ON mixed (deleted_at) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
CREATE INDEX m ON mixed (to_timestamp(deleted_ms / 1000.0)) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
CREATE INDEX m ON mixed ((ttl_index.document_date(doc, 'ms'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
SELECT ttl_index.create_index('decl.mixed', 'doc.ms', 60, unit => 'milliseconds', name => 'm');
DROP INDEX m;
CREATE INDEX m ON mixed ((ttl_index.document_date(doc, 'local'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
SELECT ttl_index.create_index('decl.mixed', 'doc.local', 60, time_zone => 'UTC', name => 'm');
DROP INDEX m;
CREATE INDEX m ON mixed ((ttl_index.document_date(doc, 'text'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
CREATE INDEX m ON mixed ((ttl_index.document_date(doc, 'meta', 'expires_at'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
CREATE INDEX m ON mixed ((ttl_index.document_date(doc, 'mode'))) WHERE ttl_index.expire_after_seconds(60);
DROP INDEX m;
-- a key that is made of the whole row
CREATE FUNCTION row_date(mixed) RETURNS timestamptz LANGUAGE sql IMMUTABLE RETURN ($1).deleted_at;
CREATE INDEX m ON mixed (row_date(mixed)) WHERE ttl_index.expire_after_seconds(60);
DROP FUNCTION row_date CASCADE;
-- also where the user may not read the rows
REVOKE SELECT ON mixed FROM CURRENT_USER;
CREATE ROLE regress_ttl_blind;
ALTER TABLE mixed OWNER TO regress_ttl_blind;
REVOKE SELECT ON mixed FROM regress_ttl_blind;
GRANT USAGE, CREATE ON SCHEMA decl TO regress_ttl_blind;
SET ROLE regress_ttl_blind;
CREATE INDEX m ON mixed ((ttl_index.document_date(doc, 'mode'))) WHERE ttl_index.expire_after_seconds(60);
RESET ROLE;
DROP OWNED BY regress_ttl_blind;
DROP ROLE regress_ttl_blind;

-- most of a table is worth a warning, unless that is small or no pass deletes them
CREATE TABLE big (id int, ts timestamptz);
INSERT INTO big SELECT g, CASE WHEN g <= 11760 THEN '2001-01-01'::timestamptz ELSE '2999-01-01' END FROM generate_series(1, 12000) AS g;
CREATE INDEX big_ttl ON big (ts) WHERE ttl_index.expire_after_seconds(60);
SELECT ttl_index.pause_index('decl.big_ttl');
SELECT ttl_index.coll_mod_index('big_ttl', 30);
SELECT ttl_index.unpause_index('big_ttl');
DROP INDEX big_ttl;
CREATE INDEX big_ttl ON big (ts) WHERE id <= 6000 AND ttl_index.expire_after_seconds(60);
DROP INDEX big_ttl;
CREATE INDEX big_ttl ON big (ts) WHERE id <= 6001 AND ttl_index.expire_after_seconds(60);
DROP TABLE big;
CREATE TABLE big (id int, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE big_2 PARTITION OF big DEFAULT;
INSERT INTO big SELECT g, CASE WHEN g <= 7500 THEN '2001-01-01'::timestamptz ELSE '2999-01-01' END FROM generate_series(1, 12000) AS g;
ANALYZE big;
CREATE INDEX big_ttl ON big (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions();
DROP INDEX big_ttl;
CREATE INDEX big_ttl ON big (ts) WHERE ttl_index.expire_after_seconds(60);
DROP TABLE big;

-- filters that exclude each other
CREATE TABLE states (k text, done bool, ts timestamptz);
CREATE INDEX s1 ON states (ts) WHERE k = 'a' AND ttl_index.expire_after_seconds(60);
CREATE INDEX s2 ON states (ts) WHERE k IS DISTINCT FROM 'a' AND ttl_index.expire_after_seconds(60);
DROP INDEX s1;
CREATE INDEX s1 ON states (ts) WHERE k = 'b' AND ttl_index.expire_after_seconds(60);
DROP INDEX s1, s2;
CREATE INDEX s1 ON states (ts) WHERE done IS NOT TRUE AND ttl_index.expire_after_seconds(60);
CREATE INDEX s2 ON states (ts) WHERE done AND ttl_index.expire_after_seconds(60);
DROP INDEX s2;
CREATE INDEX s2 ON states (ts) WHERE done IS NOT FALSE AND ttl_index.expire_after_seconds(60);
DROP TABLE states;

-- triggers run with another search_path, those of tables whose rows go too
CREATE TABLE customers (id int PRIMARY KEY, ts timestamptz);
CREATE TABLE invoices (id int REFERENCES customers ON DELETE CASCADE);
CREATE INDEX ON invoices (id);
CREATE FUNCTION bare() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
CREATE FUNCTION safe() RETURNS trigger LANGUAGE plpgsql SET search_path = decl AS 'BEGIN RETURN OLD; END';
CREATE TRIGGER t1 AFTER DELETE ON invoices FOR EACH ROW EXECUTE FUNCTION bare();
CREATE TRIGGER t1 AFTER DELETE ON customers FOR EACH ROW EXECUTE FUNCTION safe();
CREATE TRIGGER t2 AFTER UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION bare();
CREATE INDEX customers_ttl ON customers (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER FUNCTION decl.bare() SET search_path = decl, pg_temp;
SELECT ttl_index.coll_mod_index('customers_ttl', 50);
DROP TABLE invoices, customers;
-- each once, also of tables that reference each other in a circle and in two ways
CREATE TABLE k1 (id int PRIMARY KEY, ts timestamptz);
CREATE TABLE k2 (id int PRIMARY KEY REFERENCES k1 ON DELETE CASCADE);
CREATE TABLE k3 (id int PRIMARY KEY REFERENCES k1 ON DELETE CASCADE REFERENCES k2 ON DELETE CASCADE);
CREATE TABLE k4 (id int PRIMARY KEY REFERENCES k3);
ALTER TABLE k1 ADD FOREIGN KEY (id) REFERENCES k3 ON DELETE CASCADE;
CREATE INDEX k1_ttl ON k1 (ts) WHERE ttl_index.expire_after_seconds(60);
DROP TABLE k1, k2, k3, k4;

-- partitions
CREATE TABLE parted (id int, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF parted FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
INSERT INTO parted SELECT g, '2001-01-15' FROM generate_series(1, 10) AS g;
CREATE INDEX parted_ttl ON parted (ts) WHERE ttl_index.expire_after_seconds(60);
CREATE TABLE p2 PARTITION OF parted FOR VALUES FROM ('2001-02-01') TO ('2001-03-01');
CREATE TABLE p3 (id int, ts timestamptz NOT NULL);
INSERT INTO p3 SELECT g, '2001-03-15' FROM generate_series(1, 20) AS g;
ALTER TABLE parted ATTACH PARTITION p3 FOR VALUES FROM ('2001-03-01') TO ('2001-04-01');
DROP INDEX parted_ttl;
CREATE INDEX p1_plain ON p1 (ts);
CREATE INDEX parted_ttl ON ONLY parted (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER INDEX parted_ttl ATTACH PARTITION p1_plain;
DROP INDEX parted_ttl;
CREATE INDEX parted_ttl ON parted (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions();
CREATE TABLE p4 (id int, ts timestamptz NOT NULL);
ALTER TABLE parted ATTACH PARTITION p4 FOR VALUES FROM ('2001-04-01') TO ('2001-05-01');
CREATE TABLE p5 (id int, ts timestamptz NOT NULL);
ALTER TABLE parted ATTACH PARTITION p5 FOR VALUES FROM ('2999-04-01') TO ('2999-05-01');

-- a partition whose rows were to stay for longer
CREATE TABLE longer (id int, ts timestamptz NOT NULL);
CREATE INDEX longer_ttl ON longer (ts) WHERE ttl_index.expire_after_seconds(5000);
CREATE TABLE over (id int, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
CREATE INDEX over_ttl ON over (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER TABLE over ATTACH PARTITION longer FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
DROP INDEX over_ttl;
CREATE INDEX longer_ttl ON longer (ts) WHERE ttl_index.expire_after_seconds(5000);
CREATE INDEX over_ttl ON over (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER TABLE over DETACH PARTITION longer;
ALTER TABLE over ATTACH PARTITION longer FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
-- one that was attached without the event trigger has its own option again, and is told which
CREATE TABLE unseen (id int, ts timestamptz NOT NULL);
CREATE INDEX unseen_ttl ON unseen (ts) WHERE ttl_index.expire_after_seconds(30);
SET session_replication_role = replica;
ALTER TABLE over ATTACH PARTITION unseen FOR VALUES FROM ('2001-05-01') TO ('2001-06-01');
RESET session_replication_role;
SELECT expire_after_seconds FROM ttl_index.indexes WHERE indexrelid = 'unseen_ttl'::regclass;
ALTER TABLE over DETACH PARTITION unseen;
DROP TABLE unseen;
-- or were to stay, or to be moved
CREATE TABLE cold (id int, ts timestamptz);
CREATE TABLE stays (id int, ts timestamptz NOT NULL);
CREATE INDEX stays_ttl ON stays (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('cold') AND ttl_index.paused();
ALTER TABLE over ATTACH PARTITION stays FOR VALUES FROM ('2001-03-01') TO ('2001-04-01');
ALTER TABLE over DETACH PARTITION stays;
SELECT ttl_index.coll_mod_index('over_ttl', 60, archive_to => 'cold');
SELECT ttl_index.pause_index('stays_ttl');
SELECT ttl_index.pause_index('over_ttl');
ALTER TABLE over ATTACH PARTITION stays FOR VALUES FROM ('2001-03-01') TO ('2001-04-01');
-- or whose partitions were to stay
CREATE TABLE keeps (id int, ts timestamptz NOT NULL) PARTITION BY RANGE (ts);
CREATE INDEX keeps_ttl ON keeps (ts) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.detach_expired_partitions();
ALTER TABLE over ATTACH PARTITION keeps FOR VALUES FROM ('2001-04-01') TO ('2001-05-01');
DROP TABLE over, cold;

-- what is wrong with the table keeps its rows
CREATE TABLE published (ts timestamptz);
INSERT INTO published VALUES ('2001-01-01');
SET client_min_messages = error;
CREATE PUBLICATION decl_publication FOR TABLE published;
RESET client_min_messages;
CREATE INDEX published_ttl ON published (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER TABLE published REPLICA IDENTITY FULL;
SELECT * FROM ttl_index.coll_mod_index('published_ttl', 50);
DROP PUBLICATION decl_publication;
CREATE ROLE regress_ttl_without;
CREATE TABLE without (ts timestamptz);
INSERT INTO without VALUES ('2001-01-01');
ALTER TABLE without OWNER TO regress_ttl_without;
CREATE INDEX without_ttl ON without (ts) WHERE ttl_index.expire_after_seconds(60);
DROP OWNED BY regress_ttl_without;
DROP ROLE regress_ttl_without;

-- counting runs no code of users
CREATE FUNCTION touchy(timestamptz) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF pg_catalog.current_setting('decl.fail', true) = 'on' THEN RAISE EXCEPTION 'counting fails'; END IF;
	RETURN $1;
END $$;
CREATE TABLE outer_part (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE INDEX outer_ttl ON outer_part (touchy(ts)) WHERE ttl_index.expire_after_seconds(60);
CREATE TABLE inner_part (id int, ts timestamptz);
INSERT INTO inner_part SELECT 1, '2001-01-01' FROM generate_series(1, 3);
CREATE INDEX inner_plain ON inner_part (touchy(ts));
SET decl.fail = on;
ALTER TABLE outer_part ATTACH PARTITION inner_part FOR VALUES IN (1);
SELECT indexrelid, expire_after_seconds, state FROM ttl_index.indexes WHERE relid IN ('outer_part'::regclass, 'inner_part') ORDER BY 1;
SET decl.fail = off;
-- who will delete: nobody, once no session has called run_pass() for ten minutes
CREATE ROLE regress_ttl_caller;
UPDATE ttl_index.counters SET last_call = last_call - interval '9 minutes' WHERE last_call IS NOT NULL;
SELECT status FROM ttl_index.monitor_status();
UPDATE ttl_index.counters SET last_call = last_call - interval '2 minutes' WHERE last_call IS NOT NULL;
SELECT status = 'run_pass' AS served, reason LIKE '%in the last ten minutes' AS why, hint LIKE '%run_pass()%' AS way_out FROM ttl_index.monitor_status();
SELECT state, reason LIKE '%in the last ten minutes' AS why FROM ttl_index.indexes WHERE indexrelid = 'parted_ttl'::regclass;
-- not without preload here or there, so the sentence is left out
\set VERBOSITY terse
CREATE TABLE nobody (ts timestamptz);
CREATE INDEX nobody_ttl ON nobody (ts) WHERE ttl_index.expire_after_seconds(60);
CREATE TABLE nobody2 (LIKE nobody INCLUDING INDEXES);
SELECT ttl_index.create_index('nobody', 'ts', 60, 'ts > ''2001-01-01''');
INSERT INTO nobody VALUES ('2001-01-01');
SELECT ttl_index.create_index('nobody', 'ts', 60, 'ts > ''2000-01-01''');
-- within another one, by an event trigger of others, it is said once all the same
CREATE TABLE outer_t AS SELECT timestamptz '2001-01-01' AS ts FROM generate_series(1, 7);
CREATE TABLE inner_t AS SELECT timestamptz '2001-01-01' AS ts FROM generate_series(1, 3);
CREATE FUNCTION a_nested() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
	IF to_regclass('decl.inner_t_ts_ttl') IS NULL THEN
		PERFORM ttl_index.create_index('decl.inner_t', 'ts', 60);
	END IF;
END$$;
CREATE EVENT TRIGGER a_nested ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION a_nested();
SELECT ttl_index.create_index('outer_t', 'ts', 60);
DROP EVENT TRIGGER a_nested;
-- an error within ends it, too
SELECT ttl_index.create_index('outer_t', 'ts', 60, 'no_such_column > 0');
CREATE INDEX outer_t_i ON outer_t (ts) WHERE ts > '2000-01-01' AND ttl_index.expire_after_seconds(60);
DROP TABLE outer_t, inner_t;
-- a role serves its own tables, and those of the roles whose rights it has
CREATE TABLE own (ts timestamptz);
CREATE INDEX own_ttl ON own (ts) WHERE ttl_index.expire_after_seconds(60);
ALTER TABLE own OWNER TO regress_ttl_caller;
GRANT USAGE ON SCHEMA decl TO regress_ttl_caller;
SET ROLE regress_ttl_caller;
SET client_min_messages = warning;
CALL ttl_index.run_pass();
RESET client_min_messages;
RESET ROLE;
SELECT indexrelid, state FROM ttl_index.indexes WHERE indexrelid IN ('own_ttl'::regclass, 'nobody_ttl') ORDER BY 1;
-- that is no count
SELECT ttl_index.stats_reset();
SELECT passes, last_pass_end FROM ttl_index.stats;
SELECT indexrelid, state FROM ttl_index.indexes WHERE indexrelid IN ('own_ttl'::regclass, 'nobody_ttl') ORDER BY 1;
SET client_min_messages = warning;
CALL ttl_index.run_pass();
RESET client_min_messages;
SELECT status, reason, hint FROM ttl_index.monitor_status();
SELECT indexrelid, state FROM ttl_index.indexes WHERE indexrelid IN ('own_ttl'::regclass, 'nobody_ttl') ORDER BY 1;

SET client_min_messages = error;
DROP SCHEMA decl CASCADE;
DROP ROLE regress_ttl_caller;
