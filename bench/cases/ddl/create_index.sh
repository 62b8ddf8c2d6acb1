# shellcheck shell=bash
heading="${option[indexes]} TTL indexes on empty tables"

before() { tables_of_indexes; }

commands() {
	seq "${option[indexes]}" | sed "s/.*/CREATE INDEX ON t& (at) $ttl;/"
}
