# shellcheck shell=bash
heading="${option[partitions]} partitions with their index, attached one by one"

before() {
	echo "CREATE TABLE p (id int, at timestamptz) PARTITION BY LIST (id); CREATE INDEX p_at ON p (at) $ttl;"
	seq "${option[partitions]}" | sed 's/.*/CREATE TABLE p& (id int, at timestamptz);/'
	seq "${option[partitions]}" | sed "s/.*/CREATE INDEX ON p& (at) $ttl;/"
}

commands() {
	seq "${option[partitions]}" | sed 's/.*/ALTER TABLE p ATTACH PARTITION p& FOR VALUES IN (&);/'
}
