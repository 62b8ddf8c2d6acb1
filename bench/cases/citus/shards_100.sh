# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_many
heading="100 shards"
shards=100
contenders="shard table"
prepare() { make_many; }
measure() { measure_many "$1"; }
