# shellcheck shell=bash
heading="UPDATE by pgbench, 4 clients, ${option[seconds]} s"
list_heading=pgbench
contenders="plain tracked"
pairs=tracked/plain
unit=tps

update_rows=100000

prepare() {
	local kind
	for kind in $contenders; do
		sql -c "CREATE TABLE update_$kind (id int PRIMARY KEY, n int, note text, _ts timestamptz)
				WITH (fillfactor = 50)" \
			-c "INSERT INTO update_$kind SELECT i, 0, repeat('x', 100), now() FROM generate_series(1, $update_rows) AS i"
		printf '%s\n' "\\set id random(1, $update_rows)" \
			"UPDATE update_$kind SET n = n + 1 WHERE id = :id;" | as_user tee "update_$kind.sql" >/dev/null
	done
	sql -c "SELECT ttl_index.track_last_modified('update_tracked')" >/dev/null
}

# Prints the transactions per second; four clients are enough that no processor is idle.
update_rate() { # KIND SECONDS
	as_user "$bindir/pgbench" -n -M prepared -c 4 -j 2 -T "$2" -f "update_$1.sql" bench 2>&1 |
		sed -n 's/^tps = \([0-9.]*\) (without.*/\1/p'
}

measure() { # CONTENDER
	sql -c "VACUUM ANALYZE update_$1" -c CHECKPOINT
	# the first seconds are slower, whichever table comes first
	[ "$round" != 1 ] || update_rate "$1" 2 >/dev/null
	record update "$1" "$(update_rate "$1" "${option[seconds]}")"
}
