# Copyright (c) 2026, ttl_index contributors

# script/demo in a terminal of 80 columns and 24 rows: it ends by itself, starts no pager,
# its tables fit, and it says how to go on.

use strict;
use warnings;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

# util-linux has the program that gives a command a terminal
plan skip_all => 'there is no script of util-linux'
  unless `script --version 2>/dev/null` =~ /util-linux/;
my $missing = `bash -c 'set -euo pipefail; . script/lib.sh
	! command -v dpkg-query >/dev/null || missing_packages make gcc libc6-dev'`;
plan skip_all => 'the demo would install ' . join(' ', split ' ', $missing) if $missing ne '';

my $dir = PostgreSQL::Test::Utils::tempdir;
my $seen = "$dir/seen_by_pager";
my $out = '';

# a Debian machine without any cluster
foreach my $name ('pg_createcluster', 'pg_lsclusters')
{
	append_to_file("$dir/$name", "#!/bin/sh\n");
	chmod 0755, "$dir/$name";
}
$ENV{PATH} = "$dir:$ENV{PATH}";

# the server of the tests; the demo uses a copy of it
$ENV{PG_CONFIG} = 'pg_config';
$ENV{PSQL_PAGER} = "tee $seen";
# its standard input stays open, and nobody types anything
my $demo = IPC::Run::start(
	[ 'script', '-qec', 'stty rows 24 cols 80; exec script/demo', '/dev/null' ],
	'<', \my $in, '>', \$out, '2>&1', IPC::Run::timeout(300));
ok(eval { $demo->pump until $out =~ /README\.md/; $demo->finish },
	'the demo ends by itself')
  or $demo->kill_kill;
$out =~ s/\r//g;
note($out);
like($out, qr/^## they are equal\n.*are removed\.$/ms, 'and has shown all');
SKIP:
{
	my ($major) = $out =~ /^## PostgreSQL (\d+)/m;

	skip "Debian's PostgreSQL $major is not installed", 1 unless -d "/usr/lib/postgresql/$major/bin";
	like($out, qr/"Install" in README\.md.*^##   sudo pg_createcluster $major main --start\n\z/ms,
		'it ends with how to go on');
}
ok(!-e $seen, 'no pager was started');

# those of psql, and the one with a row every three seconds
my @rows = grep { /\||^ *(?:time|\d\d:\d\d:\d\d) / } split /\n/, $out;

cmp_ok(scalar(grep { /ttl_index worker/ } @rows), '>', 0, 'a worker is shown');
cmp_ok(scalar(grep { /^ *\d\d:/ } @rows), '>', 5, 'so are the numbers of rows');
is_deeply([ grep { length > 80 } @rows ], [], 'no row of a table is wider than the terminal');

done_testing();
