# shellcheck shell=bash
heading="A foreign key that cascades"
about="Each row has one in another table that goes with it by ON DELETE CASCADE: ttl_index deletes through SQL."
contenders="ttl plain ctid_1000 ctid_10000 skip_1000"
due=$((option[rows] / 10))
live=$((option[rows] / 10))

make_item() {
	echo 'CREATE TABLE item (event bigint REFERENCES event ON DELETE CASCADE, n int);'
}

make_data() {
	make_events
	{
		make_item
		cat <<-END
			INSERT INTO item SELECT id, 1 FROM event;
			CREATE INDEX ON item (event);
			VACUUM ANALYZE item;
		END
	} | in_template "$case_name"
}

check_more() {
	local result
	result=$(query -c 'SELECT count(*) FROM item')
	[ "$result" = "$live" ] || die "$case_name, $1: $result rows of the other table are left"
}
