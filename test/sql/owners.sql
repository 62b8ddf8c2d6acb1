-- A worker is a session of the owner of the tables, and of nobody else: rule 44.  Owners
-- need no LOGIN.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA own;
SET search_path = own, pg_catalog;
CREATE ROLE regress_ttl_first NOLOGIN;
CREATE ROLE regress_ttl_second LOGIN CONNECTION LIMIT 0;
CREATE ROLE regress_ttl_member;
GRANT USAGE, CREATE ON SCHEMA own TO regress_ttl_first, regress_ttl_second;
CREATE TABLE log (n serial, owner text, current text, session text, super text, path text, pid int);
GRANT INSERT, SELECT ON log TO PUBLIC;
GRANT USAGE ON SEQUENCE log_n_seq TO PUBLIC;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO own.log (owner, current, session, super, path, pid)
		VALUES (TG_ARGV[0], current_user, session_user, current_setting('is_superuser'), current_setting('search_path'), pg_backend_pid());
	RETURN NULL;
END $$;
SET ROLE regress_ttl_first;
CREATE TABLE a (ts timestamptz);
CREATE TRIGGER note AFTER DELETE ON a FOR EACH ROW EXECUTE FUNCTION note('first');
SELECT ttl_index.create_index('a', 'ts', 0);
INSERT INTO a VALUES ('2001-01-01');
SET ROLE regress_ttl_second;
CREATE TABLE b (ts timestamptz);
CREATE TRIGGER note AFTER DELETE ON b FOR EACH ROW EXECUTE FUNCTION note('second');
SELECT ttl_index.create_index('b', 'ts', 0);
INSERT INTO b VALUES ('2001-01-01');
RESET ROLE;
CALL ttl_index.run_pass();
SELECT owner, current, session, super, path FROM log ORDER BY owner;
SELECT count(DISTINCT pid) AS processes, bool_or(pid = pg_backend_pid()) AS session FROM log;

-- who has the rights of one owner deletes for that one
INSERT INTO a VALUES ('2001-01-01');
INSERT INTO b VALUES ('2001-01-01');
GRANT regress_ttl_first TO regress_ttl_member;
SET ROLE regress_ttl_member;
SET client_min_messages = notice;
CALL ttl_index.run_pass();
SET client_min_messages = warning;
RESET ROLE;
SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM b) AS b;
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM b) AS b;

-- an owner with a small table is served after one round of an owner with a backlog
SET ROLE regress_ttl_first;
SELECT format('CREATE TABLE backlog_%1$s (ts timestamptz); INSERT INTO backlog_%1$s SELECT ''2001-01-01'' FROM generate_series(1, 100);
	CREATE INDEX ON backlog_%1$s (ts) WHERE ttl_index.expire_after_seconds(0); GRANT SELECT ON backlog_%1$s TO regress_ttl_second', i)
FROM generate_series(1, 5) AS i \gexec
RESET ROLE;
CREATE VIEW backlog AS SELECT count(*) AS rows FROM (SELECT FROM backlog_1 UNION ALL SELECT FROM backlog_2
	UNION ALL SELECT FROM backlog_3 UNION ALL SELECT FROM backlog_4 UNION ALL SELECT FROM backlog_5) AS b;
CREATE TABLE seen (rows int);
GRANT SELECT ON backlog TO regress_ttl_second;
GRANT INSERT ON seen TO regress_ttl_second;
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO own.seen SELECT rows FROM own.backlog; RETURN NULL; END';
CREATE TRIGGER see AFTER DELETE ON b FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO b VALUES ('2001-01-01');
SET ttl_index.index_delete_target_docs = 10;
CALL ttl_index.run_pass();
SELECT s.rows >= 450 AS after_one_round, backlog.rows AS left FROM seen AS s, backlog;
RESET ttl_index.index_delete_target_docs;
DROP TRIGGER see ON b;

-- what code of an owner leaves behind runs as the owner, or not at all
CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE held refcursor := 'held';
BEGIN
	IF TG_ARGV[0] = 'deferred' THEN
		BEGIN
			SET CONSTRAINTS ALL DEFERRED;
			INSERT INTO own.deferred VALUES (1);
			RAISE 'caught';
		EXCEPTION WHEN raise_exception THEN
			INSERT INTO own.deferred VALUES (2);
		END;
	ELSIF TG_ARGV[0] = 'cursor' THEN
		EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT own.tell()';
	ELSE
		EXECUTE TG_ARGV[0];
	END IF;
	RETURN NULL;
END $$;
CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO own.log (owner, current, session, super) VALUES ('left', current_user, session_user, current_setting('is_superuser'));
	BEGIN
		ALTER ROLE regress_ttl_first SUPERUSER;
	EXCEPTION WHEN insufficient_privilege THEN NULL;
	END;
	RETURN 1;
END $$;
CREATE FUNCTION tell_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM own.tell(); RETURN NULL; END';
SET ROLE regress_ttl_first;
CREATE TABLE deferred (n int);
CREATE CONSTRAINT TRIGGER tell AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tell_trigger();
RESET ROLE;
TRUNCATE log;
DO $$
DECLARE what text;
BEGIN
	FOREACH what IN ARRAY ARRAY['deferred', 'cursor', 'RESET ROLE', 'RESET SESSION AUTHORIZATION', 'SET ROLE pg_read_all_data',
		'SET SESSION AUTHORIZATION DEFAULT', 'SET search_path = own', 'RESET ALL']
	LOOP
		EXECUTE format('CREATE OR REPLACE TRIGGER leave AFTER DELETE ON own.a FOR EACH ROW EXECUTE FUNCTION own.leave(%L)', what);
		INSERT INTO own.a VALUES ('2001-01-01');
		CALL ttl_index.run_pass();
		INSERT INTO own.a VALUES ('2001-01-01');
		CALL ttl_index.run_pass();
		TRUNCATE own.a;
	END LOOP;
END $$;
SELECT DISTINCT owner, current, session, super FROM log ORDER BY 1, 2;
SELECT rolname, rolsuper FROM pg_roles WHERE rolname ~ '^regress_ttl_' ORDER BY 1;
SELECT count(*) FROM deferred;

-- a partition of a role with more rights than the owner of the whole, whose triggers and option count there
SET ROLE regress_ttl_first;
CREATE FUNCTION escalate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'ALTER ROLE regress_ttl_first SUPERUSER';
	RETURN coalesce(NEW, OLD);
END $$;
CREATE TABLE whole (id int, ts timestamptz) PARTITION BY LIST (id);
CREATE TRIGGER escalate BEFORE DELETE ON whole FOR EACH ROW EXECUTE FUNCTION escalate();
CREATE INDEX whole_ttl ON whole (ts) WHERE ttl_index.expire_after_seconds(0);
RESET ROLE;
CREATE TABLE part PARTITION OF whole FOR VALUES IN (1);
INSERT INTO whole VALUES (1, '2001-01-01');
CALL ttl_index.run_pass();
SELECT rolsuper, (SELECT count(*) FROM whole) FROM pg_roles WHERE rolname = 'regress_ttl_first';
SELECT relid, state, reason FROM ttl_index.indexes WHERE relid IN ('whole'::regclass, 'part'::regclass) ORDER BY 1;
-- also where it is the archive's trigger
SET ROLE regress_ttl_first;
DROP TRIGGER escalate ON whole;
CREATE TABLE archive (id int, ts timestamptz);
CREATE TRIGGER escalate BEFORE INSERT ON archive FOR EACH ROW EXECUTE FUNCTION escalate();
GRANT INSERT ON archive TO PUBLIC;
SELECT ttl_index.coll_mod('whole', 'ts', 0, archive_to => 'archive');
RESET ROLE;
CALL ttl_index.run_pass();
CREATE TABLE moves (id int, ts timestamptz);
INSERT INTO moves VALUES (1, '2001-01-01');
CREATE TABLE moved (LIKE moves) PARTITION BY LIST (id);
CREATE TABLE moved_rest PARTITION OF moved DEFAULT;
SELECT ttl_index.create_index('moves', 'ts', 0, archive_to => 'moved');
ALTER TABLE moved_rest OWNER TO regress_ttl_first;
SET ROLE regress_ttl_first;
CREATE TRIGGER escalate BEFORE INSERT ON moved_rest FOR EACH ROW EXECUTE FUNCTION escalate();
RESET ROLE;
CALL ttl_index.run_pass();
SELECT rolsuper, (SELECT count(*) FROM whole) AS whole, (SELECT count(*) FROM moves) AS moves FROM pg_roles WHERE rolname = 'regress_ttl_first';
SELECT relid, state, replace(reason, current_user, 'superuser') AS reason FROM ttl_index.indexes WHERE relid IN ('moves'::regclass, 'part'::regclass) ORDER BY 1;
DROP TABLE moves, moved;
-- who has the rights of the partition's owner may have it deleted
ALTER TABLE whole OWNER TO regress_ttl_second;
GRANT regress_ttl_first TO regress_ttl_second;
ALTER TABLE part OWNER TO regress_ttl_first;
SELECT ttl_index.remove_ttl('whole_ttl');
SELECT ttl_index.create_index('whole', 'ts', 0, or_change => true);
CALL ttl_index.run_pass();
SELECT count(*) FROM whole;
DROP TABLE whole, archive;
REVOKE regress_ttl_first FROM regress_ttl_second;

-- what an owner's code says ends nobody's pass, in whatever encoding
SET ROLE regress_ttl_first;
CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING '%', U&'\6F22\5B57';
	PERFORM set_config('client_encoding', 'LATIN1', false);
	RAISE WARNING '%', U&'\00E9';
	RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER leave AFTER DELETE ON a FOR EACH ROW EXECUTE FUNCTION say();
RESET ROLE;
INSERT INTO a VALUES ('2001-01-01');
INSERT INTO b VALUES ('2001-01-01');
SET client_encoding = 'LATIN1';
CALL ttl_index.run_pass();
RESET client_encoding;
SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM b) AS b;

-- canceled, it ends its processes
CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_catalog.pg_sleep(600); RETURN NULL; END';
CREATE OR REPLACE TRIGGER leave AFTER DELETE ON a FOR EACH ROW EXECUTE FUNCTION sleep();
INSERT INTO a VALUES ('2001-01-01');
SET ttl_index.batch_timeout = 0;
SET statement_timeout = '1s';
CALL ttl_index.run_pass();
RESET statement_timeout;
DO $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'ttl_index %') LOOP
		PERFORM pg_sleep(0.01);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
END $$;
SELECT count(*) FROM a;
RESET ttl_index.batch_timeout;
DROP SCHEMA own CASCADE;
DROP ROLE regress_ttl_first, regress_ttl_second, regress_ttl_member;
