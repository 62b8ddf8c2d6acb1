# shellcheck shell=bash
heading="CREATE INDEX, ${option[rows]} rows, ordered"
order=${case_name#*_} # the table, here and in build_shuffled.sh
contenders="date_two text_two date_one text_one"
pairs="date_two/text_two date_one/text_one date_two/text_one"
bar='≤ 1.5'

measure() { # CONTENDER
	sql -c CHECKPOINT
	record "$case_name" "$1" "$(timed "CREATE INDEX measured ON $order ${index[$1]}")"
	sql -c 'DROP INDEX measured'
}
