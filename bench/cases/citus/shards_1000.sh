# shellcheck shell=bash
# shellcheck disable=SC2034 # for make_many
heading="1000 shards"
shards=1000
contenders="shard table"
prepare() { make_many; }
measure() { measure_many "$1"; }
