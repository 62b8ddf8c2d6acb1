# shellcheck shell=bash
heading="${option[indexes]} TTL indexes on empty tables"

before() {
	seq "${option[indexes]}" | sed 's/.*/CREATE TABLE t& (at timestamptz);/'
}

commands() {
	seq "${option[indexes]}" | sed "s/.*/CREATE INDEX ON t& (at) $ttl;/"
}
