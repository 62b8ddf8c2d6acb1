-- The table, what makes its partitions, and what looks at its locks.
CREATE EXTENSION ttl_index;
CREATE TABLE measurement (taken timestamptz NOT NULL, sensor int, value float) PARTITION BY RANGE (taken);
CREATE INDEX ON measurement (sensor, taken);
CREATE TABLE measurement_default PARTITION OF measurement DEFAULT;

-- Where partitions move to.
CREATE TABLE archive (LIKE measurement, archived_at timestamptz DEFAULT now()) PARTITION BY RANGE (taken);
CREATE INDEX ON archive (sensor, taken);

CREATE PROCEDURE make_day(day date, rows int) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DROP TABLE IF EXISTS %I', 'measurement_p' || to_char(day, 'YYYY_MM_DD'));
	EXECUTE format('CREATE TABLE %I PARTITION OF measurement FOR VALUES FROM (%L) TO (%L)',
		'measurement_p' || to_char(day, 'YYYY_MM_DD'), day, day + 1);
	EXECUTE format('INSERT INTO %I SELECT %L::timestamptz + i * interval ''1 day'' / %s, i %% 1000, i
		FROM generate_series(0, %s - 1) AS i', 'measurement_p' || to_char(day, 'YYYY_MM_DD'), day, rows, rows);
END $$;

-- The days from the first and the last number on, counted from a date.
CREATE PROCEDURE make_days(start date, first int, last int, rows int) LANGUAGE plpgsql AS $$
BEGIN
	FOR day IN first..last LOOP
		CALL make_day(start + day, rows);
		COMMIT;
	END LOOP;
END $$;

-- Looks once a millisecond, until there is a file "stop"; keeps what it saw to the end.
CREATE TABLE locked (at timestamptz, vxid text);
CREATE PROCEDURE watch() LANGUAGE plpgsql AS $$
DECLARE
	parent oid := 'measurement'::regclass;
	seen timestamptz[] = '{}';
	holders text[] = '{}';
	holder text;
BEGIN
	LOOP
		SELECT virtualtransaction INTO holder FROM pg_locks
		WHERE relation = parent AND mode = 'AccessExclusiveLock' AND granted;
		IF FOUND THEN
			seen := seen || clock_timestamp();
			holders := holders || holder;
		END IF;
		PERFORM pg_sleep(0.001);
		EXIT WHEN (pg_stat_file('stop', true)).size IS NOT NULL;
	END LOOP;
	TRUNCATE locked;
	INSERT INTO locked SELECT * FROM unnest(seen, holders);
END $$;
