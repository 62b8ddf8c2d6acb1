# shellcheck shell=bash
group=main
due=$((option[rows] * 50))
live=$((option[rows] * 5 / 2))
heading="$(number "$due") rows"
contenders="monitor plain"

make_data() {
	make_events
}
