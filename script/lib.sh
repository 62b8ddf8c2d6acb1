# script/lib.sh: what the scripts beside it share; sourced by bash with
# "set -euo pipefail".  Needs nothing but an essential Debian system, because
# the scripts start on machines where not even make is installed.
#
# Settings, from the environment:
#   PG_CONFIG  the pg_config of a server of one's own; no server is installed
#   PG_MAJOR   the major version to take from Debian; else its default one
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
installed_packages=()
make=()
bindir=

# Neither the tests nor psql may be led elsewhere by what the caller has set,
# nor a make of ours by the make that called us.
for variable in "${!PG@}"; do
	case $variable in
		PG_CONFIG | PG_MAJOR) ;;
		*) unset "$variable" ;;
	esac
done
unset MAKEFLAGS MAKELEVEL MFLAGS
export LC_ALL=C.UTF-8

say() {
	printf '## %s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# say_alive LOG SECONDS: while the script runs, prints a line after each SECONDS in which
# nothing was written to LOG.  sleep must not keep the output of the script open.
say_alive() {
	local size=0 now
	while sleep "$2" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
		now=$(stat -c %s "$1")
		[ "$now" != "$size" ] || say "running for $((SECONDS / 60)) min $((SECONDS % 60)) s"
		size=$now
	done
}

# skips_in LOG: prints what a suite skipped, as lines of test, tab, reason.
skips_in() {
	awk '
		/test\/[^ ]*\.pl \.\./ {
			file = $0
			sub(/\.pl \.\..*/, "", file)
			sub(/.*\//, "", file)
		}
		sub(/^.*\.pl \.+ skipped: /, "") || (/^ok [0-9]+ / && sub(/^.* # [Ss][Kk][Ii][Pp] /, "")) {
			print file "\t" $0
		}' "$1"
}

# say_skipped: reads such lines and prints them by reason: the three most frequent ones,
# and all others in a fourth line.
say_skipped() {
	awk -F '\t' '
		NF == 0 { next }
		!seen[$2, $1]++ { names[$2] = names[$2] (count[$2] ? ", " : "") $1 }
		{ count[$2]++ }
		END { for (reason in count) printf "%d\t%s (%s)\n", count[reason], reason, names[reason] }' |
		sort -k1,1nr -k2 | awk -F '\t' '
		NR < 4 { print "## skipped " $1 ": " $2 }
		NR > 3 { others += $1; list = list (NR > 4 ? "; " : "") $2 }
		END { if (NR > 3) print "## skipped " others ": " list }'
}

# as USER COMMAND...: runs the command as that user.  setpriv rather than
# runuser or su, because it neither forks nor starts a session: what Ctrl-C
# reaches is the command itself.
as() {
	local user=$1
	shift
	if [ "$user" = "$(id -un)" ]; then
		"$@"
	elif [ "$(id -u)" = 0 ]; then
		setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups -- \
			env HOME="$(getent passwd "$user" | cut -d: -f6)" USER="$user" LOGNAME="$user" "$@"
	else
		sudo -u "$user" -- "$@"
	fi
}

root_do() {
	as root "$@"
}

# The ordinary user whom the server and the tests belong to: initdb refuses
# root.  The user "postgres" comes with Debian's packages.
test_user() {
	if [ "$(id -u)" != 0 ]; then
		id -un
	elif id postgres >/dev/null 2>&1; then
		echo postgres
	else
		echo nobody
	fi
}

as_user() {
	as "$(test_user)" "$@"
}

#
# Packages
#

apt_get() {
	root_do env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
	local package
	for package; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
			echo "$package"
	done
}

# with_dots COMMAND...: runs it and prints a dot for each package that comes, is
# unpacked or set up, so that a person sees it live; its own lines are kept in
# $output, for where it fails.
with_dots() {
	local line status=0
	output=$("$@" 2>&1 | while IFS= read -r line; do
		case $line in
			Get:* | Unpacking\ * | "Setting up "*) printf . >&2 ;;
		esac
		printf '%s\n' "$line"
	done) || status=1
	echo >&2
	return $status
}

# apt_install PACKAGE...: apt's many lines are shown only where it fails.
apt_install() {
	local codename output=''
	with_dots apt_get install -y --no-install-recommends "$@" && return
	# The index of a security suite can name files that the mirror does not
	# have (404): then the release's own version.
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	say "apt-get failed; once more with the packages of \"$codename\" itself"
	with_dots apt_get install -y --no-install-recommends -t "$codename" "$@" && return
	printf '%s\n' "$output" >&2
	return 1
}

# A newly installed server would get a cluster of its own that starts at once,
# now and at every boot.  Nobody asked for one; but later installations shall
# find the machine's own setting again.  Runs the command in a subshell.
without_main_cluster() (
	dropin=/etc/postgresql-common/createcluster.d/ttl_index.conf
	trap 'root_do rm -f "$dropin"; root_do rmdir --ignore-fail-on-non-empty "${dropin%/*}"' EXIT
	root_do mkdir -p "${dropin%/*}"
	echo 'create_main_cluster = false' | root_do tee "$dropin" >/dev/null
	"$@"
)

# need_packages PACKAGE...: installs those that are missing.
need_packages() {
	local missing

	if ! command -v dpkg-query >/dev/null; then
		say "no Debian system: taking for granted what the packages $* hold"
		return
	fi
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing ${missing[*]}"
	# A mirror that is partly down may still have what we want.
	apt_get update >/dev/null 2>&1 || say "apt-get update failed; going on with the lists that are there"
	case " ${missing[*]}" in
		*" postgresql-"[0-9]*) without_main_cluster apt_install "${missing[@]}" ;;
		*) apt_install "${missing[@]}" ;;
	esac || die "could not install ${missing[*]}"
	installed_packages+=("${missing[@]}")
}

# want_packages PACKAGE...: the same for what not every suite has.
want_packages() {
	local package available=()
	for package; do
		# not by "grep -q", whose early end can make the pipe fail
		if [[ $(apt-cache policy "$package" 2>/dev/null) =~ Candidate:\ [0-9] ]]; then
			available+=("$package")
		fi
	done
	[ ${#available[@]} = 0 ] || need_packages "${available[@]}"
}

# The major version that the metapackage "postgresql" stands for.
default_major() {
	apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p'
}

#
# Server and extension
#

# need_server [PACKAGE...]: makes sure that there is a PostgreSQL to build for,
# what it takes to build, and the packages; sets PG_CONFIG, PG_MAJOR,
# bindir, and make, the command to make things of the extension with.
need_server() {
	set -- make gcc libc6-dev "$@"
	if [ -z "${PG_CONFIG:-}" ]; then
		PG_MAJOR=${PG_MAJOR:-$(default_major)}
		if [ -z "$PG_MAJOR" ]; then
			# a container image comes without the lists of packages
			apt_get update >/dev/null 2>&1 || true
			PG_MAJOR=$(default_major)
		fi
		[ -n "$PG_MAJOR" ] || die "could not find Debian's version of PostgreSQL; set PG_MAJOR or PG_CONFIG"
		set -- "postgresql-$PG_MAJOR" "postgresql-server-dev-$PG_MAJOR" "$@"
		PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config
	fi
	need_packages "$@"
	PG_CONFIG=$(command -v "$PG_CONFIG") || die "could not find pg_config"
	PG_MAJOR=$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
	bindir=$("$PG_CONFIG" --bindir)
	# bitcode would need clang, and is of no use here
	make=(make -s PG_CONFIG="$PG_CONFIG" with_llvm=no)
	say "$("$PG_CONFIG" --version)"
}

# build DIR [VARIABLE=VALUE...]: copies the sources to DIR and builds them there
# as the ordinary user: a checkout may belong to another user, and stays clean.
build() {
	local dir=$1
	shift
	say "building"
	as_user mkdir "$dir"
	# whoever installs must be able to read them
	tar -C "$top" --mode=a+rX,u+w --exclude-vcs --exclude='*.o' --exclude='*.so' --exclude='*.bc' \
		--exclude=./results --exclude=./tmp_check --exclude=./output_iso -cf - . |
		as_user tar -C "$dir" -xf - --no-same-owner
	as_user "${make[@]}" -C "$dir" -j"$(nproc)" "$@"
}

# copy_server DIR: copies the server to DIR, and makes PG_CONFIG and bindir those
# of the copy.  The installed server is left alone: another cluster may preload the
# library that an installation there would replace.  A copy works because the
# programs look for all else relative to where they are.
copy_server() {
	local dir=$1 common path paths=()
	for path in bindir pkglibdir sharedir includedir-server; do
		paths+=("$("$PG_CONFIG" "--$path")")
	done
	common=${paths[0]}
	for path in "${paths[@]}"; do
		while [[ $path/ != "$common"/* ]]; do
			common=${common%/*}
		done
	done
	for path in "${paths[@]}"; do
		as_user mkdir -p "$dir${path#"$common"}"
		as_user cp -R -p --no-preserve=ownership "$path/." "$dir${path#"$common"}"
	done
	bindir=$dir${paths[0]#"$common"}
	PG_CONFIG=$bindir/pg_config
	[ "$("$PG_CONFIG" --pkglibdir)" = "$dir${paths[1]#"$common"}" ] ||
		die "this server works only where it is installed; take another, by PG_CONFIG or PG_MAJOR"
	make=(make -s PG_CONFIG="$PG_CONFIG" with_llvm=no)
}

# install_from DIR: installs the extension into a copy of the server beside DIR.
install_from() {
	say "installing the extension into a private copy of the server"
	copy_server "$1.server"
	as_user "${make[@]}" -C "$1" install
}

# unpack_monitoring DIR: what the tests of test/monitoring use, 26 MB that become 120 MB: unpacked, because an
# installation would start a Prometheus and exporters as services of this machine.  Those
# that are installed are taken as they are; where one is not to be had, tests are skipped.
unpack_monitoring() {
	local dir=$1 package
	command -v dpkg >/dev/null || return 0
	as_user mkdir "$dir"
	export PATH=$PATH:$dir/usr/bin
	# promtool is part of prometheus up to Debian 12
	for package in prometheus promtool prometheus-postgres-exporter prometheus-sql-exporter check-postgres; do
		! command -v "${package/check-postgres/check_postgres}" >/dev/null || continue
		say "fetching $package"
		if (cd "$dir" && as_user timeout 180 apt-get -q=2 download "$package") &&
			as_user dpkg -x "$dir/$package"_*.deb "$dir"; then
			rm -f "$dir/$package"_*.deb
		else
			say "$package is not to be had: tests of it are skipped"
		fi
	done
}

# new_directory: prints a new directory of the ordinary user that all may read.
# In /tmp, because the path of a socket must not be longer than 107 bytes.
new_directory() {
	local dir
	dir=$(as_user mktemp -d /tmp/ttl_index.XXXXXX)
	as_user chmod 755 "$dir"
	echo "$dir"
}

# start_server DIR [LINE...]: makes a cluster in DIR, with the lines added to
# its configuration, starts it on a socket in DIR, and leads clients there.
start_server() {
	local dir=$1 output
	shift
	say "starting a server in $dir"
	output=$(as_user "$bindir/initdb" -D "$dir/data" -A trust -N --locale=C.UTF-8 -E UTF8 2>&1) ||
		die "initdb failed:"$'\n'"$output"
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$dir'" "fsync = off" "$@" |
		as_user tee -a "$dir/data/postgresql.conf" >/dev/null
	as_user "$bindir/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -s start || {
		tail -n 20 "$dir/server.log" >&2
		die "the server does not start"
	}
	export PGHOST=$dir PGPORT=5432
}

# stop_server DIR: stops the server of DIR if there is one.
stop_server() {
	[ -f "$1/data/postmaster.pid" ] || return 0
	as_user "$bindir/pg_ctl" -D "$1/data" -m fast -w -s stop ||
		as_user "$bindir/pg_ctl" -D "$1/data" -m immediate -w -s stop
}
