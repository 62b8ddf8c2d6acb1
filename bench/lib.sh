# bench/lib.sh: the runner of the benchmarks beside it; sourced by bash with
# "set -euo pipefail".
#
# A benchmark says what it takes (settings, option, cases) and calls
# run_benchmark "$@", which starts a private server, measures the cases in rounds, and
# calls report(), whose output are the results, as Markdown.  What is going on goes
# to the standard error.
#
# A case is a file, cases/BENCHMARK/CASE.sh, which is sourced each time that its turn
# comes.  It sets $contenders and replaces functions; what a case may say and need
# not is in no_case(), and in the function "defaults" of its benchmark.
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "${BASH_SOURCE[0]%/*}/../script/lib.sh"

benchmark=${0##*/}
case_dir=$top/bench/cases/$benchmark
settings=()                    # lines of postgresql.conf
declare -A option=([rounds]=5) # --NAME NUMBER, with its default
cases=()                       # those that are measured where none is named
first_round=1                  # 0: with one that does not count
command="bench/$benchmark"     # as it was given
revision=''                    # of the engine
work=''                        # the directory of the server
more_servers=()                # the directories of others
load_before='' load_after=''

#
# What a benchmark may replace
#

# Called before the server is copied.
more_packages() { :; }

# Starts the server, and makes it the one that clients find.
start_servers() {
	start_server "$work" "${settings[@]}"
}

# Called once the server runs.
set_up() { :; }

# Called once it has ended.
clean_up() { :; }

all_rounds() {
	run_rounds "${cases[@]}"
}

#
# Options
#

usage() {
	# the comment at the head of the benchmark
	sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
	echo
	echo "Usage: bench/$benchmark$(printf ' [--%s N]' "${!option[@]}") [CASE...]"
	echo "Cases: $(cd "$case_dir" && grep -l '^heading=' -- *.sh | sed 's/\.sh$//' | paste -sd' ')"
}

read_options() {
	local named=()
	command+=${*:+ $*}
	while [ $# -gt 0 ]; do
		case $1 in
			-h | --help)
				usage
				exit 0 ;;
			--*)
				[ -n "${option[${1#--}]:-}" ] || die "there is no option $1 (see --help)"
				[[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "$1 takes a number"
				option[${1#--}]=$2
				shift ;;
			*)
				grep -qs '^heading=' "$case_dir/$1.sh" || die "there is no case $1 (see --help)"
				named+=("$1") ;;
		esac
		shift
	done
	[ ${#named[@]} = 0 ] || cases=("${named[@]}")
}

is_chosen() { # CASE
	[[ " ${cases[*]} " == *" $1 "* ]]
}

#
# The server
#

finish() {
	local status=$? dir
	trap '' INT TERM
	if [ -n "$work" ]; then
		for dir in "$work" "${more_servers[@]}"; do
			stop_server "$dir" || status=1
		done
		rm -rf "$work"
	fi
	clean_up
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sql() { # PSQL-ARGUMENT...
	as_user "$bindir/psql" -X -q -v ON_ERROR_STOP=1 -d bench "$@"
}

query() { # PSQL-ARGUMENT...: a value, or rows of them
	sql -A -t "$@"
}

# The last commit that changed the engine; nothing without git.
engine_revision() {
	{
		git -C "$top" log -1 --format=%h -- src sql &&
			{ git -C "$top" diff --quiet HEAD -- src sql || echo 'and changes'; }
	} 2>/dev/null | paste -sd' ' || true
}

need_own_server() {
	need_server
	more_packages
	work=$(new_directory)
	build "$work/src"
	# the checkout can change meanwhile
	case_dir=$work/src/bench/cases/$benchmark
	revision=$(engine_revision)
	install_from "$work/src"
	cd "$work" || exit
	start_servers
}

#
# Cases and rounds
#

# What holds for a case that says nothing else.
no_case() {
	# shellcheck disable=SC2034 # what cases are asked for
	heading=''       # of its results
	contenders=''    # NAME/2: takes part in the first two rounds only
	prepare() { :; } # once, before the first round
}

defaults() { :; }

# use_case CASE: makes it the one that the functions and variables are of.
use_case() {
	# shellcheck disable=SC2034
	case_name=$1
	no_case
	defaults
	# shellcheck source=/dev/null
	. "$case_dir/$1.sh"
}

# The contenders of the round, from last to first in each second one.
taking_part() {
	local name names=()
	for name in $contenders; do
		case $name in
			*/*) [ "$round" -gt "${name#*/}" ] || names+=("${name%/*}") ;;
			*) names+=("$name") ;;
		esac
	done
	if [ $((round % 2)) = 1 ]; then
		printf '%s\n' "${names[@]}"
	else
		printf '%s\n' "${names[@]}" | tac
	fi
}

# run_rounds CASE...: measures those of them that are chosen, contenders by turns;
# measure() is the benchmark's, or the case's.
run_rounds() {
	local name contender chosen=()
	for name; do
		! is_chosen "$name" || chosen+=("$name")
	done
	for name in "${chosen[@]}"; do
		use_case "$name"
		prepare
	done
	[ ${#chosen[@]} -gt 0 ] || return 0
	for ((round = first_round; round <= option[rounds]; round++)); do
		say "round $round of ${option[rounds]}: ${chosen[*]}"
		for name in "${chosen[@]}"; do
			use_case "$name"
			for contender in $(taking_part); do
				measure "$contender"
			done
		done
	done
}

# run_benchmark ARGUMENT...
run_benchmark() {
	read_options "$@"
	{
		need_own_server
		set_up
		load_before=$(load)
		all_rounds
		load_after=$(load)
	} >&2
	report
}

#
# Numbers
#

declare -A measured # by WHAT.KIND: those of all rounds

# record WHAT KIND NUMBER
record() {
	[ -n "$3" ] || die "nothing was measured: $1 $2"
	[ "$round" = 0 ] || measured[$1.$2]+="$3 "
}

median() { # WHAT KIND [FORMAT]
	# shellcheck disable=SC2086
	printf '%s\n' ${measured[$1.$2]} | sort -g |
		awk -v format="${3:-%.1f}" '
			{ v[NR] = $1 }
			END { printf format, (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# spread WHAT OURS OTHER: the lowest and the highest ratio of a round.
spread() {
	# shellcheck disable=SC2086
	paste -d' ' <(printf '%s\n' ${measured[$1.$2]}) <(printf '%s\n' ${measured[$1.$3]}) |
		awk 'NF == 2 { printf "%.2f\n", $1 / $2 }' | sort -g | sed -n '1p;$p' | paste -sd'/' | sed 's,/, to ,'
}

ratio() { # WHAT KIND OTHER [FORMAT]
	local ours other
	ours=$(median "$1" "$2" %.6f)
	other=$(median "$1" "$3" %.6f)
	[ -z "$ours" ] || [ -z "$other" ] || calculate "${4:-%.2f}" "$ours / $other"
}

# range_of WHAT KIND [FORMAT]: the lowest and the highest of all rounds.
range_of() {
	# shellcheck disable=SC2086
	printf '%s\n' ${measured[$1.$2]} | sort -g | sed -n '1p;$p' |
		awk -v format="${3:-%.2f}" '{ printf (NR > 1 ? " to " : "") format, $1 }'
}

# whole WHAT KIND: the numbers of all rounds, rounded.
whole() {
	# shellcheck disable=SC2086
	printf '%.0f\n' ${measured[$1.$2]} | paste -sd' '
}

highest() { # WHAT KIND
	# shellcheck disable=SC2086
	printf '%s\n' ${measured[$1.$2]} | sort -g | tail -n 1
}

last() { # WHAT KIND: the number recorded last
	echo "${measured[$1.$2]}" | awk '{ print $NF }'
}

count_of() { # WHAT KIND: how often it was measured
	wc -w <<<"${measured[$1.$2]}"
}

# timed COMMAND: prints the milliseconds that the command took.
timed() {
	sql -c '\timing on' -c "$1" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

percentile() { # PERCENT... <NUMBERS
	sort -g | awk -v percents="$*" '
		{ v[NR] = $1 }
		END {
			n = split(percents, p, " ")
			for (k = 1; k <= n; k++) {
				i = int(NR * p[k] / 100)
				print v[i < NR * p[k] / 100 ? i + 1 : i]
			}
		}'
}

calculate() { # FORMAT EXPRESSION
	awk "BEGIN { printf \"$1\", $2 }"
}

number() { # NUMBER: with thousands separated
	sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta' <<<"$1"
}

#
# Results
#

load() {
	cut -d' ' -f1-3 /proc/loadavg
}

# begin_report LOAD [SETTING...]: what was run, where, and how busy the machine was;
# LOAD says how busy the benchmark itself makes it.
begin_report() {
	local own=$1
	shift
	cat <<END
# bench/$benchmark

What the command printed, unchanged. Only ratios mean anything elsewhere, and only where the load shows that the machine
had little else to do.

- Machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, \
$(awk '/^MemTotal/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo) GiB; $(uname -sr)
- Server: $(query -d postgres -c 'SHOW server_version'), debug_assertions $(query -d postgres -c 'SHOW debug_assertions'); \
$(printf '%s' "fsync $(query -d postgres -c 'SHOW fsync')"; printf ', %s' "${@//\'/}" "${settings[@]//\'/}")
- Command: \`$command\`, rounds: ${option[rounds]}, medians; $(date -u +%F), $(((SECONDS + 30) / 60)) minutes; revision ${revision:-unknown}
- Load (1, 5, 15 minutes): $load_before before, $load_after after; $own
END
}

# bar CASE TEXT <=|>= LIMIT COMMAND...: a line, where the case was measured, about the
# number that the command prints.
bar() {
	local text=$2 relation=$3 limit=$4 sign='≤' value
	is_chosen "$1" || return 0
	shift 4
	value=$("$@")
	[ "$relation" = '<=' ] || sign='≥'
	if [ -z "$value" ]; then
		echo "| $text | $sign $limit | – | not measured |"
		return
	fi
	echo "| $text | $sign $limit | $value | $(calculate %s "($value $relation $limit) ? \"met\" : \"**not met**\"") |"
}
