# shellcheck shell=bash
heading="Two more indexes"
about="As the first, with two more indexes. A DELETE does not touch them; vacuum will."
contenders="ttl/3 plain/3 skip_1000/3"

make_data() {
	copy_data ordered <<-END
		CREATE INDEX ON event (device);
		CREATE INDEX ON event (kind, ts);
	END
}
