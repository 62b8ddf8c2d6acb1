# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
. "$top/bench/cases/expire/snapshot.sh"
heading="An old snapshot is open, memory touched"
group=touched
about=''
data=ordered
contenders="monitor/3 plain/3 ctid_1000/1"
