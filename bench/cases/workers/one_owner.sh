# shellcheck shell=bash disable=SC2034
heading="One owner"
owners="a a a a"
