# shellcheck shell=bash
group=main
due=$((option[rows] * 10))
live=$((option[rows] / 2))
heading="$(number "$due") rows"
contenders="ttl plain"

make_data() {
	make_events
}
