# shellcheck shell=bash
group=sql
heading="A foreign key with NO ACTION"
about="Another table references rows that are not due, once each, and has an index on the reference."
contenders="monitor/3 plain/3 ctid_10000/3"
due=$((option[rows] / 5))
live=$((option[rows] / 5))

make_data() {
	make_events
	in_template "$case_name" <<-END
		CREATE TABLE item (event bigint REFERENCES event, n int);
		INSERT INTO item SELECT id, 1 FROM event WHERE id > $due;
		CREATE INDEX ON item (event);
		VACUUM ANALYZE item;
	END
}

check_more() {
	local result
	result=$(query -c 'SELECT count(*) FROM item')
	[ "$result" = "$live" ] || die "$case_name, $1: $result rows of the other table are left"
}
