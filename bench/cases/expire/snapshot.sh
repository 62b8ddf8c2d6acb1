# shellcheck shell=bash
group=main
heading="An old snapshot is open"
about="As the first, while another session sits in a REPEATABLE READ transaction, so that no dead entry of the index can be given up."
contenders="monitor/3 plain/3 ctid_1000/1"
data=ordered

get_ready() {
	warm_up
	sql -c CHECKPOINT
	PGAPPNAME=holder query -c 'BEGIN ISOLATION LEVEL REPEATABLE READ' -c 'SELECT count(*), pg_sleep(3600) FROM pg_class' \
		>/dev/null 2>&1 &
	while [ "$(query -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holder' AND wait_event = 'PgSleep'")" = 0 ]; do
		sleep 0.1
	done
}

let_go() {
	[ "$(query -c "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'holder'")" = 1 ] ||
		die "the old snapshot was gone"
}
