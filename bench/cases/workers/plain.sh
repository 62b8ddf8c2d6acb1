# shellcheck shell=bash disable=SC2034
heading="Four owners"
