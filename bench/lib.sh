# bench/lib.sh: what the benchmarks beside it share; sourced by bash with
# "set -euo pipefail".
#
# A benchmark measures several contenders by turns: record() collects the numbers
# of all rounds, median() and spread() sum them up.  It sets $work to its
# directory, which goes away at the end together with the server in it.
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "${BASH_SOURCE[0]%/*}/../script/lib.sh"

work=''
declare -A measured

finish() {
	local status=$?
	trap '' INT TERM
	if [ -n "$work" ]; then
		stop_server "$work" || status=1
		rm -rf "$work"
	fi
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sql() { # PSQL-ARGUMENT...
	as_user "$bindir/psql" -X -q -v ON_ERROR_STOP=1 -d bench "$@"
}

# record WHAT KIND NUMBER
record() {
	[ -n "$3" ] || die "nothing was measured: $1 $2"
	measured[$1.$2]+="$3 "
}

# in_order ROUND NAME...: the names, from last to first in each second round.
in_order() {
	local round=$1 i
	shift
	if [ $((round % 2)) = 1 ]; then
		echo "$@"
	else
		for ((i = $#; i > 0; i--)); do
			printf '%s ' "${!i}"
		done
	fi
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

load() {
	cut -d' ' -f1-3 /proc/loadavg
}

# circumstances [SETTING...]: the machine and the server, as lines of Markdown.
circumstances() {
	cat <<END
- Machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, \
$(awk '/^MemTotal/ { printf "%.1f", $2 / 1048576 }' /proc/meminfo) GiB; $(uname -sr)
- Server: $(sql -d postgres -A -t -c 'SHOW server_version'), debug_assertions $(sql -d postgres -A -t -c 'SHOW debug_assertions'); \
fsync off$(printf ', %s' "${@//\'/}")
END
}
