# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$top/bench/cases/expire/random.sh"
heading="Heap in random order, memory touched"
group=touched
about=''
data=random
contenders="monitor/3 plain/3 ctid_1000/1"
