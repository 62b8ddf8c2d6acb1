# shellcheck shell=bash
heading="Cold cache"
about="As the first, right after a restart of the server."
note=$cold_note
contenders="monitor/3 plain/3 plain_seq/3 ctid_1000/3"
data=ordered

get_ready() {
	sql -c CHECKPOINT
	cool_down
}
