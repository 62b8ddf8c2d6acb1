-- The extension for all tests; the monitor, if it is preloaded, stays out.
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ttl_index.monitor_enabled = off', current_database()); END $$;
-- pg_regress sets them for its sessions; a worker has those of the database.
DO $$ BEGIN
	EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), current_setting('timezone'));
	EXECUTE format('ALTER DATABASE %I SET datestyle = %L', current_database(), current_setting('datestyle'));
END $$;
CREATE EXTENSION ttl_index;
-- A database that a session serves counts as visited for ten minutes.
CALL ttl_index.run_pass();
SELECT extname, extnamespace::regnamespace FROM pg_extension WHERE extname = 'ttl_index';
