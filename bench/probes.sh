# bench/probes.sh: how benchmarks look at sessions and at the monitor from outside; sourced
# after bench/lib.sh.
# shellcheck shell=bash disable=SC2034,SC2154

# A file without an end, to wait a moment without another process.
exec {never}<> <(:)

# note_memory PID: raises $peak to the kilobytes of memory of its own that the process has.
note_memory() {
	local key value
	while read -r key value _; do
		if [ "$key" = RssAnon: ] && [ "$value" -gt "$peak" ]; then
			peak=$value
		fi
	done 2>/dev/null <"/proc/$1/status" || true
}

# watch_memory CLIENT: waits for the process, and prints the most kilobytes of
# memory of its own that the backend whose pid is in the file "backend" had meanwhile.
watch_memory() {
	local client=$1 pid='' peak=0
	while kill -0 "$client" 2>/dev/null; do
		[ -n "$pid" ] || { read -r pid <backend; } 2>/dev/null || true
		[ -z "$pid" ] || note_memory "$pid"
		read -r -t 0.02 -u "$never" || true
	done
	echo "$peak"
}

# Prints how long the transactions between two places in the WAL took, in ms.
# One session works without a pause, so that is from one commit to the next.
transaction_times() { # BEGUN FROM TO
	{ TZ=UTC as_user "$bindir/pg_waldump" -p data/pg_wal -r Transaction -s "$2" -e "$3" 2>/dev/null || true; } |
		awk -v last="$1" '
			/desc: COMMIT / {
				match($0, /[0-9][0-9]:[0-9][0-9]:[0-9.]+/)
				split(substr($0, RSTART, RLENGTH), t, ":")
				now = t[1] * 3600 + t[2] * 60 + t[3]
				if (now < last - 43200)	# midnight
					last -= 86400
				printf "%.3f\n", (now - last) * 1000
				last = now
			}'
}

# A session beside those that are measured: one at a time.
# shellcheck disable=SC2120 # bench/idle gives arguments
open_session() { # PSQL-ARGUMENT...
	coproc session { query "$@"; }
}

ask() { # COMMAND: with a single row as its result, which goes to $answer
	echo "$1;" >&"${session[1]}"
	read -r answer <&"${session[0]}"
}

close_session() {
	local pid=$session_PID fd=${session[1]}
	exec {fd}>&-
	wait "$pid"
}

# configure LINE...: adds to the configuration, until reset_configuration.
configure() {
	local line commands=()
	for line; do
		commands+=(-c "ALTER SYSTEM SET $line")
	done
	sql -d postgres -o /dev/null "${commands[@]}" -c 'SELECT pg_reload_conf()'
}

reset_configuration() {
	sql -d postgres -o /dev/null -c 'ALTER SYSTEM RESET ALL' -c 'SELECT pg_reload_conf()'
}

look_every=0.01 # seconds, at the counters

# drain_by_monitor ROWS [SETTING...]: lets the monitor delete so many rows of the database
# "bench"; sets when it was turned on and when its counters had the last row, in seconds, and
# the most memory of its own that a worker had, in kilobytes.
drain_by_monitor() {
	local rows=$1 deadline=$((SECONDS + 1800)) deleted=0 line pid
	shift
	for line in "ttl_index.monitor_sleep = '1s'" 'ttl_index.monitor_enabled = on' "$@"; do
		sql -d postgres -c "ALTER SYSTEM SET $line"
	done
	# shellcheck disable=SC2119
	open_session
	# its last pass is to be longer ago than monitor_sleep
	read -r -t 1 -u "$never" || true
	peak=0
	ask "SELECT extract(epoch FROM clock_timestamp()) FROM pg_reload_conf()"
	began=$answer
	while [ "$deleted" -lt "$rows" ]; do
		[ $SECONDS -lt $deadline ] || die "the monitor has not deleted $rows rows within half an hour, but $deleted"
		read -r -t $look_every -u "$never" || true
		ask "SELECT deleted_documents || ' ' || extract(epoch FROM clock_timestamp()) || ' ' || coalesce((SELECT max(pid)
			FROM pg_stat_activity WHERE backend_type = 'ttl_index worker' AND datname = current_database()), 0) FROM ttl_index.stats"
		read -r deleted ended pid <<<"$answer"
		[ "$pid" = 0 ] || note_memory "$pid"
	done
	# its counters are complete when its pass ends
	while ask 'SELECT passes FROM ttl_index.stats'; [ "$answer" = 0 ]; do
		[ $SECONDS -lt $deadline ] || die "the monitor's pass has not ended within half an hour"
		read -r -t 0.1 -u "$never" || true
	done
	close_session
	reset_configuration
}

# Caches

warm_up() {
	sql -o /dev/null -c "SELECT pg_prewarm(oid) FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"
}

if [ -w /proc/sys/vm/drop_caches ]; then
	cold_note="The cache of the operating system was emptied too."
else
	cold_note="The cache of the operating system could not be emptied (no permission), so only the server's own was cold."
fi

cool_down() {
	as_user "$bindir/pg_ctl" -D "$work/data" -m fast -w -s stop
	if [ -w /proc/sys/vm/drop_caches ]; then
		sync
		echo 1 >/proc/sys/vm/drop_caches
	fi
	as_user "$bindir/pg_ctl" -D "$work/data" -l "$work/server.log" -w -s start
}
