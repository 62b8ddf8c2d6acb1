# shellcheck shell=bash
[[ " ${cases[*]} " != *" large_1 "* ]] || group=main
due=$((option[rows] * 10))
live=$((option[rows] / 2))
heading="$(number "$due") rows"
contenders="monitor/2 plain/1"

make_data() {
	make_events
}
