# shellcheck shell=bash
heading="without an index"
