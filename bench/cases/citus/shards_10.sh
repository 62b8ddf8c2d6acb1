# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_many
heading="10 shards"
shards=10
contenders="shard table"
prepare() { make_many; }
measure() { measure_many "$1"; }
