# shellcheck shell=bash
heading="A foreign key with NO ACTION and an index"

attach() {
	echo 'CREATE TABLE item (event bigint REFERENCES event, n int); CREATE INDEX ON item (event);'
}
