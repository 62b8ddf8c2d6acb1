# shellcheck shell=bash
group=main
heading="Heap in random order"
about="The same rows in an order of their own."
contenders="monitor ttl/3 plain plain_seq/3 floor/3 ctid_1000/1 ctid_10000/1"

make_data() {
	make_events 'ORDER BY random()'
}
