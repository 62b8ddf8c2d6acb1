# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_event
heading="3 workers"
nodes=3
