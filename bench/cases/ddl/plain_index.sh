# shellcheck shell=bash disable=SC2034
heading="${option[indexes]} indexes on empty tables, nothing to do with TTL"
most=1.05

before() {
	seq "${option[indexes]}" | sed 's/.*/CREATE TABLE t& (at timestamptz);/'
}

commands() {
	seq "${option[indexes]}" | sed 's/.*/CREATE INDEX ON t& (at);/'
}
