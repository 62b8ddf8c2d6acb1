# shellcheck shell=bash
heading="${option[tables]} tables with a primary key, nothing to do with TTL"

commands() {
	seq "${option[tables]}" | sed 's/.*/CREATE TABLE t& (id int PRIMARY KEY, at timestamptz);/'
}
