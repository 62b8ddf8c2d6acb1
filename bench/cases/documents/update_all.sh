# The tables are those of update.sh.
# shellcheck shell=bash
# shellcheck source=bench/cases/documents/update.sh
. "$case_dir/update.sh"
heading="UPDATE of $update_rows rows"
list_heading="update of all rows"
unit=ms

if is_chosen update; then
	prepare() { :; }
fi

measure() { # CONTENDER
	sql -c "VACUUM update_$1" -c CHECKPOINT
	record update_all "$1" "$(timed "UPDATE update_$1 SET n = n + 1")"
}
