# shellcheck shell=bash
heading="Five more indexes"
about="As the first, with five more indexes."
contenders="ttl/3 plain/3 skip_1000/3"

make_data() {
	copy_data indexes_2 <<-END
		CREATE INDEX ON event (payload);
		CREATE INDEX ON event (device, id);
		CREATE INDEX ON event (kind, device);
	END
}
