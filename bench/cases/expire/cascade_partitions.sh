# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$top/bench/cases/expire/cascade.sh"
heading="A foreign key that cascades to partitions"
about="As above, but the other table has 200 partitions, each of which core looks at where it plans for a key."

make_item() {
	cat <<-'END'
		CREATE TABLE item (event bigint REFERENCES event ON DELETE CASCADE, n int) PARTITION BY HASH (event);
		SELECT format('CREATE TABLE item_%s PARTITION OF item FOR VALUES WITH (MODULUS 200, REMAINDER %s)', i, i)
		FROM generate_series(0, 199) AS i \gexec
	END
}
