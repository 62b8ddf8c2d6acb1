# shellcheck shell=bash
heading="with a primary key"
# shellcheck disable=SC2034 # for make_events
attach='ALTER TABLE archive ADD PRIMARY KEY (id);'
