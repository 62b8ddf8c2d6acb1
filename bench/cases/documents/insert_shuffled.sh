# shellcheck shell=bash
# shellcheck source=bench/cases/documents/insert_ordered.sh
. "$case_dir/insert_ordered.sh"
heading="INSERT, ${option[inserts]} rows, shuffled"
