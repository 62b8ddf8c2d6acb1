# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_event
heading="2 workers"
nodes=2
