# shellcheck shell=bash disable=SC2034
heading="1 owner with a TTL index"
contenders="pass"
