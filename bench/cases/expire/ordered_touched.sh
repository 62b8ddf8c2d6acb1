# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$top/bench/cases/expire/ordered.sh"
heading="Heap in the order of the key, memory touched"
group=touched
about=''
data=ordered
contenders="monitor/3 plain/3 floor/3 ctid_1000/2"

data_of() { echo ordered; }
