# shellcheck shell=bash
# No case: what "dropping a partition" in ordered.sh is given, the same rows in two partitions.
make_data() {
	copy_data ordered <<-END
		ALTER TABLE event RENAME TO whole;
		CREATE TABLE event (LIKE whole) PARTITION BY RANGE (ts);
		CREATE TABLE event_due PARTITION OF event FOR VALUES FROM (MINVALUE) TO ('2100-01-01 00:00Z');
		CREATE TABLE event_live PARTITION OF event FOR VALUES FROM ('2100-01-01 00:00Z') TO (MAXVALUE);
		INSERT INTO event SELECT * FROM whole;
		DROP TABLE whole;
		ALTER TABLE event_due ADD PRIMARY KEY (id);
		ALTER TABLE event_live ADD PRIMARY KEY (id);
		CREATE INDEX ON event (ts);
	END
}
