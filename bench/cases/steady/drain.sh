# shellcheck shell=bash
heading="A drain of $(number "${option[backlog]}") rows beside the stream"
contenders="none ttl rate_1000000 rate_500000 rate_200000 cron plain alone"

prepare() {
	make_table drain "${option[backlog]}"
}

# Sets when it began and ended, in seconds.
drain() { # CONTENDER
	began=$EPOCHREALTIME
	case $1 in
		none) sleep $((option[seconds] / 5 + 1)) ;;
		ttl | alone) drain_by_monitor "${option[backlog]}" ;;
		rate_*) drain_by_monitor "${option[backlog]}" "ttl_index.delete_rate_limit = ${1#rate_}" ;;
		*)
			expire "$1"
			ended=$EPOCHREALTIME ;;
	esac
	[ "$1" != none ] || ended=$EPOCHREALTIME
}

measure() { # CONTENDER
	local pgbench stream_began began ended peak
	fresh_copy drain
	if [ "$1" = alone ]; then
		drain alone
	else
		begin_stream 3600
		sleep "$lead"
		drain "$1"
		end_stream
		sleep 2 # the monitor's processes end
		check_rows "$1" $((option[backlog] + $(rows_written)))
		record_latencies "$1" "$began" "$ended"
	fi
	record "$case_name.seconds" "$1" "$(calculate %.3f "$ended - $began")"
	say "$case_name, $1: $(last "$case_name.seconds" "$1") s"
}

show() {
	local name
	echo "## $heading"
	echo
	show_latencies inserts "Inserts during the drain"
	show_latencies reads "Point reads during the drain"
	cat <<-END
		### The drain

		| | seconds | rows a second |
		| --- | --- | --- |
		$(for name in $contenders; do
			[ "$name" = none ] || printf '| %s | %s | %s |\n' "${title[$name]}" "$(median "$case_name.seconds" "$name")" \
				"$(number "$(calculate %.0f "${option[backlog]} / $(median "$case_name.seconds" "$name" %.3f)")")"
		done)

	END
}
