# Copyright (c) 2026, ttl_index contributors

# The option is part of the index: every kind of dump carries it, and a restore
# deletes nothing that is not due.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'ttl_index'
ttl_index.monitor_sleep = 1
ttl_index.monitor_enabled = off
});
$node->start;

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql(
	'source', q{
CREATE EXTENSION ttl_index;
CREATE SCHEMA "Odd";
CREATE TABLE events (at timestamptz, sensor text);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX events_short ON events (at DESC)
	WHERE sensor = 'MDB''s' AND ttl_index.expire_after_seconds(60 * 10);
CREATE TABLE "Odd"."Local times" ("At" timestamp, day date);
CREATE INDEX "At ttl" ON "Odd"."Local times" ("At")
	WHERE ttl_index.time_zone('Europe/Berlin') AND ttl_index.expire_after_seconds(0);
CREATE INDEX day_ttl ON "Odd"."Local times" (day)
	WHERE ttl_index.time_zone('America/New_York') AND ttl_index.expire_after_seconds(2147483647);
CREATE TABLE dates (dates timestamptz[]);
CREATE INDEX dates_ttl ON dates (ttl_index.earliest(dates)) WHERE ttl_index.expire_after_seconds(5);
CREATE TABLE parts (at timestamptz, n int) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('2050-01-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2050-01-01') TO (MAXVALUE);
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(7200);
CREATE INDEX parts_1_n ON parts_1 (at) INCLUDE (n) WHERE n > 5 AND ttl_index.expire_after_seconds(30);
CREATE TABLE changed (at timestamptz);
CREATE INDEX changed_ttl ON changed (at);
SELECT ttl_index.coll_mod('changed', 'at', 77);
CREATE TABLE plain (at timestamptz);
CREATE INDEX plain_at ON plain (at) WHERE ttl_index.expire_after_seconds(1);
SELECT ttl_index.remove_ttl('plain_at');

-- three that are due, the others not before a while
INSERT INTO events VALUES ('2000-01-01', NULL), ('2100-01-01', NULL), ('2100-01-01', 'MDB''s');
INSERT INTO "Odd"."Local times" VALUES ('2100-01-01', '2020-01-01'), (NULL, '2100-01-01');
INSERT INTO dates VALUES ('{2100-01-01,2000-01-01}'), ('{2100-01-01,NULL}'), ('{}');
INSERT INTO parts VALUES ('2000-01-01', 1), ('2100-01-01', 9);
INSERT INTO changed VALUES ('2100-01-01');
INSERT INTO plain VALUES ('2000-01-01');
});

# What the extension says of the indexes, what PostgreSQL says, and psql's \d.
my $indexes = q{
SELECT indexrelid, relid, parent_indexrelid, key, expire_after_seconds, time_zone,
	partial_filter_expression, document_ttl, drop_expired_partitions, state, reason
FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C"};
my $definitions = q{
SELECT indexdef FROM pg_indexes
WHERE schemaname IN ('public', 'Odd') ORDER BY indexdef COLLATE "C"};
my $described = '\d public.*
\d "Odd".*';

# psql as a user has it: with the footers, where the indexes are
sub describe
{
	my ($db, $commands) = @_;
	my ($stdout, $stderr) = ('', '');

	$node->psql(
		$db, $commands,
		stdout => \$stdout,
		stderr => \$stderr,
		extra_params => [ '--no-align', '--pset=tuples_only=off' ]);
	is($stderr, '', "$commands in database $db");
	return $stdout;
}

sub check_same
{
	my ($db, $how) = @_;

	is(describe($db, $described),
		describe('source', $described),
		"$how: \\d shows the same");
	foreach my $what ([ 'view indexes', $indexes ],
		[ 'pg_get_indexdef()', $definitions ])
	{
		my ($name, $sql) = @$what;

		is( $node->safe_psql($db, $sql),
			$node->safe_psql('source', $sql),
			"$how: $name shows the same");
	}
	return;
}

like(
	$node->safe_psql('source', $indexes),
	qr/events_short\|events\|\|at\|600\|\|.*MDB''s.*\|active/,
	'the indexes of the source are shown as they were made');
is( $node->safe_psql('source',
		"SELECT count(*) FROM ttl_index.indexes WHERE state = 'active'"),
	10,
	'and all are active');
like(
	describe('source', '\d events'),
	qr/"events_ttl" btree \(at\) WHERE ttl_index\.expire_after_seconds\(3600\)/,
	'\d shows the option');

my $dir = PostgreSQL::Test::Utils::tempdir;

# All of it, as text and in an archive.
$node->safe_psql('postgres', 'CREATE DATABASE as_text');
$node->command_ok(
	[
		'pg_dump', '-f', "$dir/all.sql", '-d', $node->connstr('source')
	],
	'pg_dump');
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d',
		$node->connstr('as_text'), '-f', "$dir/all.sql"
	],
	'restore from text');
check_same('as_text', 'dump as text');
unlike(slurp_file("$dir/all.sql"),
	qr/COPY ttl_index\./, 'the counters are not part of a dump');

$node->safe_psql('postgres', 'CREATE DATABASE from_archive');
$node->command_ok(
	[
		'pg_dump', '-Fd', '-f', "$dir/archive", '-d',
		$node->connstr('source')
	],
	'pg_dump -Fd');
$node->command_ok(
	[
		'pg_restore', '-j', '2', '-e', '-d', $node->connstr('from_archive'),
		"$dir/archive"
	],
	'pg_restore -j 2');
check_same('from_archive', 'dump as archive');

# Only the schema.
$node->safe_psql('postgres', 'CREATE DATABASE only_schema');
$node->command_ok(
	[
		'pg_dump', '--schema-only', '-f', "$dir/schema.sql", '-d',
		$node->connstr('source')
	],
	'pg_dump --schema-only');
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d',
		$node->connstr('only_schema'), '-f', "$dir/schema.sql"
	],
	'restore the schema');
check_same('only_schema', 'dump of the schema');

# One table, into a database that has the extension.
$node->safe_psql('postgres', 'CREATE DATABASE one_table');
$node->safe_psql('one_table', 'CREATE EXTENSION ttl_index');
$node->command_ok(
	[
		'pg_dump', '-t', 'events', '-f', "$dir/table.sql", '-d',
		$node->connstr('source')
	],
	'pg_dump -t');
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d',
		$node->connstr('one_table'), '-f', "$dir/table.sql"
	],
	'restore a table');
is( describe('one_table', '\d events'),
	describe('source', '\d events'),
	'dump of a table: \d shows the same');
is( $node->safe_psql(
		'one_table',
		'SELECT indexrelid, expire_after_seconds, partial_filter_expression, state FROM ttl_index.indexes ORDER BY indexrelid::text'
	),
	$node->safe_psql(
		'source',
		"SELECT indexrelid, expire_after_seconds, partial_filter_expression, state FROM ttl_index.indexes WHERE relid = 'events'::regclass ORDER BY indexrelid::text"
	),
	'dump of a table: the options are the same');

# What was dumped again is what was dumped.
$node->command_ok(
	[
		'pg_dump', '-f', "$dir/again.sql", '-d', $node->connstr('as_text')
	],
	'pg_dump of the copy');

# Newer servers put a random key there.
sub without_key
{
	my ($text) = @_;

	$text =~ s/^\\(un)?restrict .*$//mg;
	return $text;
}
is( without_key(slurp_file("$dir/again.sql")),
	without_key(slurp_file("$dir/all.sql")),
	'a dump of the copy is the same');

#
# The monitor sets to work on the copies
#

my $rows = q{
SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM "Odd"."Local times"),
	(SELECT count(*) FROM dates), (SELECT count(*) FROM parts),
	(SELECT count(*) FROM changed), (SELECT count(*) FROM plain)};
is($node->safe_psql('as_text', $rows),
	'3|2|3|2|1|1', 'rows are there after the restore');
$node->safe_psql('postgres',
	'ALTER SYSTEM SET ttl_index.monitor_enabled = on');
$node->reload;
foreach my $db ('as_text', 'from_archive')
{
	ok( $node->poll_query_until(
			$db, 'SELECT passes > 0 FROM ttl_index.stats'),
		'the monitor finds the copy');
	is($node->safe_psql($db, $rows),
		'2|2|2|1|1|1', 'rule 1: what is due goes and nothing else');
	is( $node->safe_psql($db,
			'SELECT deleted_documents FROM ttl_index.stats'),
		3,
		'rule 27: and is counted');
}

$node->stop;
done_testing();
