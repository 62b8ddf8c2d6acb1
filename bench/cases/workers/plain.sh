# shellcheck shell=bash disable=SC2034
heading="Two owners"
