# shellcheck shell=bash disable=SC2034
heading="WAL"
contenders="wal/1"
minutes=2
sleep=60
prepare() { :; }

# Prints for each database how many bytes of WAL its transactions wrote, and how many there
# were; and, as "-", what else was written.  A record of no transaction that belongs to no
# relation is the server's own.
sum_wal() { # FROM TO
	as_user "$bindir/pg_waldump" -p data/pg_wal -s "$1" -e "$2" 2>/dev/null | awk '
		{ match($0, /len \(rec\/tot\): *[0-9]+\/ *[0-9]+/); split(substr($0, RSTART, RLENGTH), size, "/")
		  match($0, /tx: *[0-9]+/); split(substr($0, RSTART, RLENGTH), tx, " ")
		  database = ""
		  if (match($0, /rel [0-9]+\/[0-9]+/)) { split(substr($0, RSTART, RLENGTH), rel, "/"); database = rel[2] } }
		tx[2] > 0 { bytes[tx[2]] += size[3]; if (database > 0) of[tx[2]] = database; committed[tx[2]] += /desc: COMMIT/ }
		tx[2] == 0 && database != "" { other += size[3] }
		END { for (x in bytes) { b[of[x]] += bytes[x]; n[of[x]] += committed[x] }
		      for (d in b) print d, b[d], n[d]
		      print "-", other + 0, 0 }'
}

# In the first round only: a rate takes no turns.
measure_wal() {
	local before first from to
	begin_passes '(databases|owners|indexes)'
	ask 'SELECT pg_current_wal_insert_lsn()'
	from=$answer
	# no third pass
	read -r -t $((minutes * 60 + 10)) -u "$never" || true
	ask 'SELECT pg_current_wal_insert_lsn()'
	to=$answer
	# all of it is on the disk; the next segment may not be there
	ask 'SELECT pg_switch_wal()'
	end_passes
	sum_wal "$from" "$to" >wal
	query -F ' ' -d postgres -c 'SELECT oid, datname FROM pg_database' >databases
	record wal other "$(awk '$1 == "-" { print $2 }' wal)"
	record wal transactions "$(awk -v minutes=$minutes '$1 != "-" { n = $3 / minutes; if (n > most) most = n } END { print most + 0 }' wal)"
	cat wal
}

show_wal() {
	use_case wal
	cat <<-END

		WAL in $minutes minutes with all of these databases:

		| database | kB an hour | transactions an hour |
		| --- | --- | --- |
		$(awk -v minutes=$minutes '
			NR == FNR { name[$1] = $2; next }
			$1 != "-" { printf "| %s | %.1f | %d |\n", name[$1], $2 / 1024 * 60 / minutes, $3 * 60 / minutes }' databases wal | sort)
	END
}
