# One partition that is due, of three sizes: how long it locks the table.
# shellcheck shell=bash
heading="${option[days]} partitions, with an index and a DEFAULT partition; one of them is due"
sizes="$((option[rows] / 100)) ${option[rows]} $((option[rows] * 10))"
ways="drop detach archive hand"

contenders=''
for way in $ways; do
	for rows in $sizes; do
		contenders+=" ${way}_$rows"
	done
done

declare -gA title=(
	[drop]="ttl_index, \`drop_expired_partitions()\`"
	[detach]="ttl_index, \`detach_expired_partitions()\`"
	[archive]="ttl_index, \`drop_expired_partitions()\` and \`archive_to()\`"
	[hand]="\`DETACH PARTITION\` and \`ATTACH PARTITION\` in one transaction")

prepare() {
	say "making ${option[days]} partitions"
	sql -f - <"$case_dir/sizes.sql"
	sql -c "CALL make_readings($((option[days] - 1)))" \
		-c "SELECT ttl_index.create_index('reading', 'taken', 86400)" -c 'VACUUM ANALYZE' >/dev/null
}

statement() { # WAY
	case $1 in
		hand) echo "DO \$\$ BEGIN
			ALTER TABLE reading DETACH PARTITION reading_due;
			ALTER TABLE reading_due ADD COLUMN archived_at timestamptz DEFAULT now();
			ALTER TABLE reading_archive ATTACH PARTITION reading_due FOR VALUES FROM ('2000-01-01') TO ('2000-01-02');
		END \$\$" ;;
		*) echo 'CALL ttl_index.run_pass()' ;;
	esac
}

# The partition that is due, and what is to become of it.
make_due() { # WAY ROWS
	local drop=false detach=false archive=-
	case $1 in
		drop) drop=true ;;
		detach) detach=true ;;
		archive) drop=true archive=reading_archive ;;
	esac
	sql -c "SELECT ttl_index.coll_mod('reading', 'taken', 86400, drop_expired_partitions => $drop,
		detach_expired_partitions => $detach, archive_to => '$archive')" >/dev/null 2>&1
	sql -c "CALL make_due($2)" -c 'VACUUM ANALYZE reading_due' -c CHECKPOINT
}

check() { # WAY
	local expected
	case $1 in
		drop) expected='' ;;
		detach) expected=- ;;
		*) expected=reading_archive ;;
	esac
	[ "$(query -c "SELECT coalesce((SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid), '-')
		FROM pg_class AS c WHERE relname = 'reading_due'")" = "$expected" ] || die "$1 did something else"
}

# By hand the lock comes first, so it lasts for as long as the command does.
measure() { # WAY_ROWS
	local way=${1%_*} rows=${1#*_} time
	say "$way, $rows rows"
	make_due "$way" "$rows"
	time=$(sql -c 'SET client_min_messages = debug1' -c '\timing on' -c "$(statement "$way")" 2>locked | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p')
	[ "$way" = hand ] || time=$(sed -n 's/.* was locked for \([0-9.]*\) ms, .*/\1/p' locked)
	record locked "$1" "$time"
	check "$way"
}

show() {
	local way rows
	cat <<-END
		How long others wait for the table: from ACCESS EXCLUSIVE on the partitioned table, which is the first lock that keeps
		them out, to the moment after the commit in which all locks are released; the pass says so at \`client_min_messages = debug1\`.
		$heading. Medians in ms, and behind them the longest of all rounds.

		| rows of the partition |$(for rows in $sizes; do printf ' %s |' "$(number "$rows")"; done)
		| --- |$(for rows in $sizes; do printf ' --- |'; done)
		$(for way in $ways; do
			printf '| %s |' "${title[$way]}"
			for rows in $sizes; do
				printf ' %s (%.1f) |' "$(median locked "${way}_$rows")" "$(highest locked "${way}_$rows")"
			done
			echo
		done)
	END
}
