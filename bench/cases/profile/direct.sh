# shellcheck shell=bash
heading="Rows that are deleted directly"
due=${option[rows]}
