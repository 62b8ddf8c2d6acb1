-- What code of the owner does while core, or the extension, is in the middle of something.
\set VERBOSITY terse
CREATE ROLE regress_ttl_owner;
CREATE ROLE regress_ttl_other;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_ttl_owner', current_database()) \gexec

-- Between the two indexes of a pair it swaps two schemas by three renames, so that the name
-- of its table leads to that of another role, and puts another index under the name of the second.
SET ROLE regress_ttl_owner;
CREATE SCHEMA meanwhile;
CREATE SCHEMA meanwhile_other;
GRANT ALL ON SCHEMA meanwhile_other TO regress_ttl_other;
CREATE TABLE meanwhile.t (id int, at timestamptz, doc jsonb, other timestamptz);
INSERT INTO meanwhile.t VALUES (1, '2100-01-01');
CREATE INDEX prepared ON meanwhile.t (other) WHERE ttl_index.expire_after_seconds(2000000000);
CREATE SCHEMA meanwhile_code;
CREATE FUNCTION meanwhile_code.swap() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF to_regclass('meanwhile.t_at_ttl') IS NOT NULL AND to_regnamespace('meanwhile_third') IS NULL THEN
		ALTER SCHEMA meanwhile RENAME TO meanwhile_third;
		ALTER SCHEMA meanwhile_other RENAME TO meanwhile;
		ALTER INDEX meanwhile_third.prepared RENAME TO t_at_own_ttl;
	END IF;
END $$;
CREATE FUNCTION meanwhile_code.f(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN PERFORM meanwhile_code.swap(); RETURN true; END $$;
SET ROLE regress_ttl_other;
CREATE TABLE meanwhile_other.t (id int, at timestamptz, doc jsonb);
RESET ROLE;
SELECT ttl_index.create_index('meanwhile.t', 'at', 2000000000, 'meanwhile_code.f(id)', document_ttl_field => 'doc.ttl');
SELECT indexrelid, relid FROM ttl_index.indexes WHERE relid::text LIKE 'meanwhile%';
RESET ROLE;

SET client_min_messages = warning;
DROP SCHEMA meanwhile, meanwhile_other, meanwhile_code CASCADE;
SELECT format('REVOKE CREATE ON DATABASE %I FROM regress_ttl_owner', current_database()) \gexec
DROP ROLE regress_ttl_owner, regress_ttl_other;
