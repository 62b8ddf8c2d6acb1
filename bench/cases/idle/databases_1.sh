# shellcheck shell=bash disable=SC2034
heading="1 database without the extension"

prepare() {
	as_user "$bindir/createdb" -T template0 --strategy=file_copy "$case_name"
}
