# shellcheck shell=bash
heading="A foreign key that cascades"
about="Each row has one in another table that goes with it by ON DELETE CASCADE: ttl_index deletes through SQL."
contenders="ttl plain ctid_1000 ctid_10000 skip_1000"
due=$((option[rows] / 10))
live=$((option[rows] / 10))

make_data() {
	make_events
	in_template cascade <<-END
		CREATE TABLE item (event bigint REFERENCES event ON DELETE CASCADE, n int);
		INSERT INTO item SELECT id, 1 FROM event;
		CREATE INDEX ON item (event);
		VACUUM ANALYZE item;
	END
}

check_more() {
	local result
	result=$(query -c 'SELECT count(*) FROM item')
	[ "$result" = "$live" ] || die "cascade, $1: $result rows of the other table are left"
}
