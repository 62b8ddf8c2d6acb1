# shellcheck shell=bash
heading="A drain by the monitor"
due=$((option[rows] * 3))
live=$((option[rows] * 3))
contenders="ttl monitor plain plain_read"

make_data() {
	make_events
}

measure() { # CONTENDER
	local began ended
	if [ "$1" != monitor ]; then
		measure_delete "$1"
		return
	fi
	fresh_copy "$1"
	get_ready
	drain_by_monitor
	check_result "$1"
	record monitor.ms monitor "$(calculate %.3f "($ended - $began) * 1000")"
	say "monitor, monitor: $(last monitor.ms monitor) ms"
}

show() {
	local name
	cat <<-END
		### $heading

		$(of_rows), key order. The monitor is measured from the survey that begins its pass to the one that ends it. A process
		that reads a block of shared memory for the first time pays for that; a session that has read the rows has paid before.

		| | × ttl_index | in single rounds | seconds | rows a second | rounds |
		| --- | --- | --- | --- | --- | --- |
	END
	for name in $contenders; do
		printf '| %s | %s | %s | %s | %s | %s |\n' "${title[$name]}" "$(ratio monitor.ms "$name" ttl)" \
			"$(spread monitor.ms "$name" ttl)" "$(calculate %.3f "$(median monitor.ms "$name") / 1000")" \
			"$(number "$(calculate %.0f "$due / $(median monitor.ms "$name") * 1000")")" "$(count_of monitor.ms "$name")"
	done
	echo
}
