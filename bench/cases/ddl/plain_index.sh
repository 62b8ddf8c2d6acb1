# shellcheck shell=bash disable=SC2034
heading="${option[indexes]} indexes on empty tables, nothing to do with TTL"
most=1.05
contenders+=" listing"

before() { tables_of_indexes; }

commands() {
	seq "${option[indexes]}" | sed 's/.*/CREATE INDEX ON t& (at);/'
}
