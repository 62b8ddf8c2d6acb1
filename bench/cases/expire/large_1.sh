# shellcheck shell=bash
group=main
due=$((option[rows]))
live=$((option[rows] / 20))
heading="$(number "$due") rows"
contenders="monitor plain"

make_data() {
	make_events
}
