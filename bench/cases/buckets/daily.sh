# Daily partitions, of which the oldest are due.
# shellcheck shell=bash
heading="${option[days]} partitions of ${option[rows]} rows, with two indexes and a DEFAULT partition; ${option[expired]} of them are due"
contenders="drop detach archive rows delete"

first_day="current_date - ${option[days]} + 1"
cutoff="$first_day + ${option[expired]}"

declare -gA title=(
	[drop]="ttl_index, \`drop_expired_partitions()\`"
	[detach]="ttl_index, \`detach_expired_partitions()\`"
	[archive]="ttl_index, \`drop_expired_partitions()\` and \`archive_to()\`"
	[rows]="ttl_index, row by row"
	[delete]="one \`DELETE\`"
	[partman]="pg_partman's retention")
partman=$("$PG_CONFIG" --sharedir)/extension/pg_partman.control
[ ! -e "$partman" ] || contenders+=" partman"

make_days() { # FIRST LAST
	sql -c "CALL make_days($first_day, $1, $2, ${option[rows]})"
}

# pg_partman takes over a table whose partitions have the names that it gives.
make_partman() {
	local kind="p_type := 'native', p_interval := 'daily'"
	grep -q "default_version *= *'4" "$partman" || kind="p_interval := '1 day'"
	# it makes a DEFAULT partition of the same name
	sql -c 'DROP TABLE measurement_default' -c 'CREATE SCHEMA partman' -c 'CREATE EXTENSION pg_partman SCHEMA partman' \
		-c "SELECT partman.create_parent(p_parent_table := 'public.measurement', p_control := 'taken', $kind,
				p_premake := 1, p_start_partition := current_date::text)" \
		-c "UPDATE partman.part_config SET retention = '$((option[days] - option[expired] - 1)) days', retention_keep_table = false" >/dev/null
}

prepare() {
	say "making ${option[days]} partitions of ${option[rows]} rows"
	sql -f - <"$case_dir/daily.sql"
	make_days 0 $((option[days] - 1))
	sql -c "SELECT ttl_index.create_index('measurement', 'taken', 2147483647)" -c 'VACUUM ANALYZE' >/dev/null
	[ ! -e "$partman" ] || make_partman
	# a constant, as a driver sends it: the planner leaves out all other partitions
	echo "SELECT count(*) FROM measurement WHERE sensor = 1 AND taken >= '$(query -c 'SELECT current_date')';" |
		as_user tee query.sql >/dev/null
}

make_due() { # CONTENDER
	local seconds="extract(epoch FROM now() - ($cutoff))::int" drop=false detach=false archive=-
	make_days 0 $((option[expired] - 1))
	case $1 in
		drop) drop=true ;;
		detach) detach=true ;;
		archive) drop=true archive=archive ;;
		rows) ;;
		*) seconds=2147483647 ;;
	esac
	sql -c "SELECT ttl_index.coll_mod('measurement', 'taken', $seconds, drop_expired_partitions => $drop,
		detach_expired_partitions => $detach, archive_to => '$archive')" >/dev/null 2>&1
}

statement() { # CONTENDER
	case $1 in
		drop | detach | archive | rows) echo 'CALL ttl_index.run_pass()' ;;
		delete) echo "DELETE FROM measurement WHERE taken < $cutoff" ;;
		partman) echo "SELECT partman.run_maintenance('public.measurement')" ;;
	esac
}

check() { # CONTENDER
	[ "$(query -c "SELECT count(*) FROM measurement WHERE taken < $cutoff")" = 0 ] || die "$1 left rows that are due"
}
