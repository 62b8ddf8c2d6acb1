# shellcheck shell=bash
heading="A foreign key that cascades to partitions"
about="The other table has 200 partitions, each of which core looks at where it plans for a key."
contenders="ttl plain ctid_1000 ctid_10000 skip_1000"
due=$((option[rows] / 10))
live=$((option[rows] / 10))

make_data() {
	make_events
	in_template cascade_partitions <<-END
		CREATE TABLE item (event bigint REFERENCES event ON DELETE CASCADE, n int) PARTITION BY HASH (event);
		SELECT format('CREATE TABLE item_%s PARTITION OF item FOR VALUES WITH (MODULUS 200, REMAINDER %s)', i, i)
		FROM generate_series(0, 199) AS i \gexec
		INSERT INTO item SELECT id, 1 FROM event;
		CREATE INDEX ON item (event);
		VACUUM ANALYZE item;
	END
}

check_more() {
	local result
	result=$(query -c 'SELECT count(*) FROM item')
	[ "$result" = "$live" ] || die "cascade_partitions, $1: $result rows of the other table are left"
}
