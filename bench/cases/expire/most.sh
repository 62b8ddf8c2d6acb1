# shellcheck shell=bash
group=main
heading="Most is due, heap in random order"
about="Where the heap has to be read from end to end anyway, the floor is the sequential scan."
contenders="monitor/3 plain/1 plain_seq/3"
due=$((option[rows] * 19 / 10))
live=$((option[rows] / 10))

make_data() {
	make_events 'ORDER BY random()'
}
