# shellcheck shell=bash
# How others fare while a backlog is deleted: pgbench runs on the rows that stay.
group=main
heading="Latency of others, 99th percentile"
contenders="none ttl ctid_10000 skip_1000"
due=$((option[rows] * 3))
rate=500 # transactions per second

make_data() {
	make_events
	in_template foreground <<<"CREATE SEQUENCE event_id START $((due + live + 1));"
}

# Deletes the backlog; sets when that began and ended, in seconds.
drain() { # CONTENDER
	case $1 in
		none)
			began=$EPOCHREALTIME
			sleep 5 ;;
		ttl)
			drain_by_monitor ;;
		*)
			began=$EPOCHREALTIME
			sql -c 'SET synchronous_commit = off' -c "$(command_of "$1")" ;;
	esac
	ended=$EPOCHREALTIME
}

# Records the latencies of pgbench while the backlog is deleted.
measure() { # CONTENDER
	local began ended pgbench
	fresh_copy "$1"
	get_ready
	as_user tee foreground.sql >/dev/null <<-END
		\set id random($due + 1, $due + $live)
		\set device random(0, 9999)
		BEGIN;
		SELECT payload FROM event WHERE id = :id;
		UPDATE event SET device = :device WHERE id = :id;
		INSERT INTO event SELECT nextval('event_id'), '2120-01-01', :device, 'new', 'payload';
		COMMIT;
	END
	rm -f latency.*
	as_user "$bindir/pgbench" -n -M prepared -c 2 -R $rate -T 3600 -l --log-prefix=latency -f foreground.sql \
		bench >pgbench.out 2>&1 &
	pgbench=$!
	sleep 2
	drain "$1"
	# pgbench finishes its files only where it ends by itself: take its sessions away
	sql -o /dev/null -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgbench'"
	wait $pgbench || true
	[ "$1" = none ] || check_result "$1"

	awk -v began="$began" -v ended="$ended" '{ at = $5 + $6 / 1e6 } at >= began && at <= ended { print $3 / 1000 }' \
		latency.* >latencies
	[ -s latencies ] || die "pgbench did nothing: $(cat pgbench.out)"
	record foreground.ms "$1" "$(awk -v a="$began" -v b="$ended" 'BEGIN { print (b - a) * 1000 }')"
	record foreground.p50 "$1" "$(percentile 50 <latencies)"
	record foreground.p99 "$1" "$(percentile 99 <latencies)"
	record foreground.transactions "$1" "$(wc -l <latencies)"
	say "foreground, $1: $(last foreground.ms "$1") ms, p50 $(last foreground.p50 "$1") ms, p99 $(last foreground.p99 "$1") ms, \
$(last foreground.transactions "$1") transactions"
}

show() {
	local name
	cat <<-END
		### $heading

		pgbench reads, updates and inserts rows of the same table, $rate transactions a second by two clients, while
		the backlog is deleted: $(of_rows). ttl_index is its monitor here, with the default settings. The latency
		includes the time that a transaction had to wait for its turn.

		| | × undisturbed | median latency, ms | 99th percentile, ms | deleted in, s | transactions meanwhile | rounds |
		| --- | --- | --- | --- | --- | --- | --- |
	END
	for name in $contenders; do
		printf '| %s | %s | %s | %s | %s | %s | %s |\n' "${title[$name]}" "$(ratio foreground.p99 "$name" none)" \
			"$(median foreground.p50 "$name" %.2f)" "$(median foreground.p99 "$name" %.2f)" \
			"$(calculate %.1f "$(median foreground.ms "$name") / 1000")" \
			"$(calculate %.0f "$(median foreground.transactions "$name")")" "$(count_of foreground.ms "$name")"
	done
	echo
}
