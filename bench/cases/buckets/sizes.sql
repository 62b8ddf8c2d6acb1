-- The table, its archive, and the partition that is due.
CREATE EXTENSION IF NOT EXISTS ttl_index;
CREATE TABLE reading (taken timestamptz NOT NULL, sensor int, value float) PARTITION BY RANGE (taken);
CREATE INDEX ON reading (sensor, taken);
CREATE TABLE reading_default PARTITION OF reading DEFAULT;
CREATE TABLE reading_archive (LIKE reading, archived_at timestamptz DEFAULT now()) PARTITION BY RANGE (taken);
CREATE INDEX ON reading_archive (sensor, taken);

-- Partitions that are not due.
CREATE PROCEDURE make_readings(days int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..days LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF reading FOR VALUES FROM (%L) TO (%L)',
			'reading_' || i, current_date + i, current_date + i + 1);
		COMMIT;
	END LOOP;
END $$;

-- The one that is due.
CREATE PROCEDURE make_due(rows int) LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS reading_due;
	CREATE TABLE reading_due PARTITION OF reading FOR VALUES FROM ('2000-01-01') TO ('2000-01-02');
	INSERT INTO reading_due SELECT '2000-01-01'::timestamptz + i * interval '1 day' / rows, i % 1000, i
		FROM generate_series(0, rows - 1) AS i;
END $$;
