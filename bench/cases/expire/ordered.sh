# shellcheck shell=bash
group=main
heading="Heap in the order of the key"
about="As a log has it: the oldest rows come first. The index of the key and the primary key are the only ones."
contenders="monitor ttl plain plain_read/3 floor floor_read/3 plain_seq/3 drop/2 ctid_1000 ctid_10000 skip_1000/2"

make_data() {
	make_events
}

data_of() {
	case $1 in
		drop) echo partitioned ;;
		*) echo ordered ;;
	esac
}
