# shellcheck shell=bash
heading="INSERT, ${option[inserts]} rows, ordered"
order=${case_name#*_} # the table, here and in insert_shuffled.sh
contenders="date_two text_two date_one text_one"
pairs="date_two/text_two date_one/text_one date_two/text_one"
bar='≤ 1.5'

prepare() {
	local kind
	sql -c "CREATE TABLE source_$order AS SELECT * FROM $order LIMIT ${option[inserts]}" -c "VACUUM ANALYZE source_$order"
	for kind in $contenders; do
		sql -c "CREATE TABLE IF NOT EXISTS insert_$kind (LIKE ordered)" \
			-c "CREATE INDEX IF NOT EXISTS insert_${kind}_measured ON insert_$kind ${index[$kind]}"
	done
}

measure() { # CONTENDER
	sql -c CHECKPOINT
	record "$case_name" "$1" "$(timed "INSERT INTO insert_$1 SELECT * FROM source_$order")"
	sql -c "TRUNCATE insert_$1"
}
