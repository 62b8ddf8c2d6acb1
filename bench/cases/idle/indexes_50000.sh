# shellcheck shell=bash disable=SC2034
heading="$(number "$count") TTL indexes of one owner"
contenders="pass views"
passes=3
prepare() { make_indexes "$case_name" 1 "$count"; }
