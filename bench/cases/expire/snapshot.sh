# shellcheck shell=bash
group=main
heading="An old snapshot is open"
about="As the first, while another session sits in a REPEATABLE READ transaction, so that no dead entry of the index can be given up."
contenders="ttl plain ctid_1000/1 skip_1000"
data=ordered

get_ready() {
	warm_up
	sql -c CHECKPOINT
	open_session
	ask 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class'
}

let_go() {
	close_session
}
