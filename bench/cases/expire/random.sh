# shellcheck shell=bash
group=main
heading="Heap in random order"
about="The same rows in an order of their own."
contenders="ttl plain plain_seq ctid_1000/1 ctid_10000/1 skip_1000 skip_10000/1 in_1000/1"

make_data() {
	make_events 'ORDER BY random()'
}
