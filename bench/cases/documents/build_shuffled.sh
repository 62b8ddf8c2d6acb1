# shellcheck shell=bash
# shellcheck source=bench/cases/documents/build_ordered.sh
. "$case_dir/build_ordered.sh"
heading="CREATE INDEX, ${option[rows]} rows, shuffled"
