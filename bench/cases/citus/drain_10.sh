# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_many
heading="10 shards, many rows"
shards=10
rows_due=${option[many]}
contenders="shard table"
prepare() { make_many; }
measure() { measure_many "$1"; }
