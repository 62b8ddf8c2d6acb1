# shellcheck shell=bash
group=sql
heading="A foreign key that cascades"
about="Each row has ten in another table that go with it by ON DELETE CASCADE."
contenders="monitor/3 plain/3 ctid_10000/3"
due=$((option[rows] / 10))
live=$((option[rows] / 10))

make_data() {
	make_events
	in_template "$case_name" <<-END
		CREATE TABLE item (event bigint REFERENCES event ON DELETE CASCADE, n int);
		INSERT INTO item SELECT id, n FROM event, generate_series(1, 10) AS n ORDER BY id, n;
		CREATE INDEX ON item (event);
		VACUUM ANALYZE item;
	END
}

check_more() {
	local result
	result=$(query -c 'SELECT count(*) FROM item')
	[ "$result" = $((live * 10)) ] || die "$case_name, $1: $result rows of the other table are left"
}
