# shellcheck shell=bash
heading="A stream of rows that live for $lifetime seconds"
contenders="none ttl cron plain drop"

prepare() {
	make_table stream 0
	make_table partitioned 0 partitioned
}

# Expires once in each period, until there is a file "stop".
expire_regularly() { # CONTENDER
	local next=$SECONDS
	while [ ! -e stop ]; do
		if [ $SECONDS -ge $next ]; then
			expire "$1"
			next=$((next + option[period]))
		fi
		sleep 0.2
	done
}

# What has to be known at the beginning, and again at the end: the position of the WAL, and the bytes
# of the table and of its indexes.
look() {
	query -F ' ' -c "SELECT pg_current_wal_insert_lsn() - '0/0', sum(pg_table_size(oid)), sum(pg_indexes_size(oid))
		FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
}

# Samples the lag until the stream ends.
watch_lag() {
	local lag
	most_lag=0
	open_session
	while kill -0 "$pgbench" 2>/dev/null; do
		read -r -t 1 -u "$never" || true
		ask "SELECT coalesce(sum(n_tup_ins - n_tup_del), 0) FROM pg_stat_user_tables WHERE schemaname = 'public'"
		lag=$((answer / option[inserts] - lifetime))
		[ "$lag" -le "$most_lag" ] || most_lag=$lag
	done
	close_session
	wait "$pgbench" || die "pgbench failed: $(cat pgbench.out)"
}

# Prints how many vacuums of the table the lines of the log tell of, and what they and analyses took, in s.
autovacuum_work() { # <LOG
	awk '
		/automatic vacuum of table "bench\.public\./ { vacuums++ }
		/automatic (vacuum|analyze) of table/ { ours = /"bench\.public\./ }
		ours && /CPU: user:/ {
			match($0, /user: [0-9.]+/); spent += substr($0, RSTART + 6, RLENGTH - 6)
			match($0, /system: [0-9.]+/); spent += substr($0, RSTART + 8, RLENGTH - 8)
		}
		END { print vacuums + 0, spent + 0 }'
}

measure() { # CONTENDER
	local pgbench stream_began job='' logged most_lag written vacuums spent wal table indexes wal_end table_end indexes_end
	if [ "$1" = drop ]; then
		fresh_copy partitioned
		make_partitions
	else
		fresh_copy stream
	fi
	rm -f stop
	logged=$(wc -l <server.log)
	read -r wal table indexes < <(look)
	case $1 in
		none) ;;
		ttl) configure "ttl_index.monitor_sleep = '${option[period]}s'" 'ttl_index.monitor_enabled = on' ;;
		*)
			expire_regularly "$1" &
			job=$! ;;
	esac
	begin_stream $((lead + option[seconds]))
	watch_lag
	read -r wal_end table_end indexes_end < <(look)
	touch stop
	[ -z "$job" ] || wait "$job" || die "$1 failed"
	[ "$1" != ttl ] || { reset_configuration && sleep 2; }
	written=$(rows_written)
	check_rows "$1" "$written"

	record_latencies "$1" "$(calculate %.6f "$stream_began + $lead")" "$(calculate %.6f "$stream_began + $lead + ${option[seconds]}")"
	read -r vacuums spent < <(tail -n +$((logged + 1)) server.log | autovacuum_work)
	record stream.wal "$1" "$(calculate %.3f "($wal_end - $wal) / $written")"
	record stream.table "$1" "$(calculate %.3f "($table_end - $table) / 1048576")"
	record stream.indexes "$1" "$(calculate %.3f "($indexes_end - $indexes) / 1048576")"
	record stream.vacuums "$1" "$vacuums"
	record stream.spent "$1" "$spent"
	record stream.lag "$1" "$most_lag"
	say "stream, $1: $(last stream.wal "$1") bytes of WAL a row, table $(last stream.table "$1") MB and indexes \
$(last stream.indexes "$1") MB larger, $vacuums vacuums, $spent s of autovacuum, lag $most_lag s"
}

show() {
	local name
	echo "## $heading"
	echo
	show_latencies inserts "Inserts in the stream"
	show_latencies reads "Point reads in the stream"
	cat <<-END
		### What the stream costs

		Of WAL, all that was written is divided by the rows that were inserted. Table and indexes are compared with what they were at the beginning, when
		no row was dead.

		| | WAL bytes a row | table, MB larger | indexes, MB larger | vacuums | processor time of autovacuum, s | greatest lag, s |
		| --- | --- | --- | --- | --- | --- | --- |
		$(for name in $contenders; do
			printf '| %s | %s | %s | %s | %.0f | %s | %s |\n' "${title[$name]}" "$(median stream.wal "$name")" \
				"$(median stream.table "$name")" "$(median stream.indexes "$name")" "$(median stream.vacuums "$name")" \
				"$(median stream.spent "$name")" "$(if [ "$name" = none ]; then echo –; else median stream.lag "$name" %.0f; fi)"
		done)

	END
}
