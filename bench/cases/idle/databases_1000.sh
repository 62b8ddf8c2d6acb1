# shellcheck shell=bash disable=SC2034
heading="$(number "$count") databases without the extension, and two with a TTL index"
passes=3
sleep=$((1 + count / 30))

prepare() {
	local i
	say "making $count databases"
	for ((i = 1; i <= count; i++)); do
		echo "CREATE DATABASE ${case_name}_$i TEMPLATE template0 STRATEGY file_copy;"
	done | sql -d postgres -f -
	make_indexes "${case_name}_a" 1 1
	make_indexes "${case_name}_b" 1 1
}
