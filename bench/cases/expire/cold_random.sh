# shellcheck shell=bash
heading="Cold cache, heap in random order"
about="As the second, right after a restart of the server."
note=$cold_note
contenders="ttl/3 plain/3 plain_seq/3 skip_1000/1"
data=random

get_ready() {
	sql -c CHECKPOINT
	cool_down
}
