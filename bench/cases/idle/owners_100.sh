# shellcheck shell=bash disable=SC2034
heading="$(number "$count") owners with a TTL index each"
contenders="pass"
