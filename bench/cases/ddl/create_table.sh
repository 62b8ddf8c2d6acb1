# shellcheck shell=bash disable=SC2034
heading="${option[tables]} tables with a primary key, nothing to do with TTL"
most=1.05
contenders+=" listing"

commands() {
	seq "${option[tables]}" | sed 's/.*/CREATE TABLE t& (id int PRIMARY KEY, at timestamptz);/'
}
