-- Rule 35: a partial TTL on a meta column of a time series.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA meta;
SET search_path = meta;
CREATE TABLE weather24h (ts timestamptz, sensor text) PARTITION BY RANGE (ts);
CREATE TABLE weather24h_old PARTITION OF weather24h FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE weather24h_now PARTITION OF weather24h FOR VALUES FROM ('2001-01-01') TO ('2999-01-01');
CREATE TABLE weather24h_rest PARTITION OF weather24h DEFAULT;
CREATE VIEW stored AS SELECT tableoid::regclass::text, date_trunc('hour', now() - ts) AS age, sensor FROM weather24h ORDER BY 2, 3;
CREATE PROCEDURE fill() LANGUAGE sql AS $$
	TRUNCATE weather24h;
	INSERT INTO weather24h SELECT now() - age - interval '10 minutes', sensor
	FROM unnest(ARRAY['MDB_NYC', 'MDB_BERLIN']) AS sensor, unnest(ARRAY['0', '2 hours', '30 hours']::interval[]) AS age;
$$;
SELECT ttl_index.create_index('weather24h', 'ts', 86400, drop_expired_partitions => true, name => 'weather24h_ttl');
SELECT ttl_index.create_index('weather24h', 'ts', 3600, partial_filter_expression => $$sensor = 'MDB_NYC'$$, name => 'nyc_ttl');
INSERT INTO weather24h VALUES ('2000-06-01', 'MDB_NYC'), ('2000-06-01', 'MDB_BERLIN');
CALL ttl_index.run_pass();
SELECT count(*) FROM weather24h;
-- shorter: its rows go after an hour, the others stay as long as their partition does
CALL fill();
CALL ttl_index.run_pass();
SELECT * FROM stored;
-- the rows of the boundary bucket go one by one with delete_boundary_rows
SELECT ttl_index.coll_mod_index('weather24h_ttl', 86400, delete_boundary_rows => true);
CALL ttl_index.run_pass();
SELECT * FROM stored;
-- longer: without effect
SELECT ttl_index.coll_mod_index('weather24h_ttl', 3600);
SELECT ttl_index.coll_mod_index('nyc_ttl', 86400);
CALL fill();
CALL ttl_index.run_pass();
SELECT * FROM stored;
CREATE TABLE weather24h_old PARTITION OF weather24h FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
INSERT INTO weather24h VALUES ('2000-06-01', 'MDB_NYC');
SELECT ttl_index.coll_mod_index('nyc_ttl', 2147483647);
CALL ttl_index.run_pass();
SELECT to_regclass('weather24h_old');
SELECT indexrelname, deleted_buckets FROM ttl_index.index_stats ORDER BY indexrelname COLLATE "C";
DROP SCHEMA meta CASCADE;
