# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_event
heading="1 worker"
nodes=1
