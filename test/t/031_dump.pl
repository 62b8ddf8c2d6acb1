# Copyright (c) 2026, ttl_index contributors

# The option is part of the index: every kind of dump carries it, and a restore
# deletes nothing that is not due.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->configured(
	q{
ttl_index.monitor_enabled = off
});
$node->start;

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->monitor_in('source', 'off');
$node->safe_psql('source', slurp_file('test/data/ttl_indexes.sql'));

# What the extension says of the indexes (but who visits them, which is up to the server), what PostgreSQL says, and psql's \d.
my $indexes = q{
SELECT indexrelid, relid, parent_indexrelid, key, expire_after_seconds, time_zone,
	partial_filter_expression, document_ttl, drop_expired_partitions,
	replace(state, 'no_monitor', 'active'), CASE WHEN state <> 'no_monitor' THEN reason END
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
		"SELECT count(*), count(*) FILTER (WHERE state = 'no_monitor') FROM ttl_index.indexes"
	),
	'18|18',
	'and nothing but the absence of the monitor keeps them from being active');
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

# In a transaction of its own, over what is there already.
$node->command_ok(
	[
		'pg_dump', '-Fc', '-f', "$dir/custom", '-d', $node->connstr('source')
	],
	'pg_dump -Fc');
$node->safe_psql('postgres', 'CREATE DATABASE from_custom');
$node->command_ok(
	[
		'pg_restore', '-1', '-d', $node->connstr('from_custom'),
		"$dir/custom"
	],
	'pg_restore --single-transaction');
check_same('from_custom', 'custom archive');
$node->command_ok(
	[
		'pg_restore', '--clean', '--if-exists', '-1', '-d',
		$node->connstr('from_custom'), "$dir/custom"
	],
	'pg_restore --clean over the copy');
check_same('from_custom', 'custom archive over a copy');

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

# The restore has saved the options (option rule 9).
$node->safe_psql('as_text', 'REINDEX DATABASE CONCURRENTLY as_text');
$node->safe_psql('as_text', 'CALL ttl_index.run_pass()');
is( $node->safe_psql('as_text', $indexes),
	$node->safe_psql('source', $indexes),
	'REINDEX DATABASE CONCURRENTLY right after a restore loses no option');

# The indexes of a pair still know each other, whatever coercions were written out.
foreach my $main ('coll__ts_ttl', 'coerced_at_ttl', 'coerced_doc_at_ttl')
{
	my $paused = q{SELECT count(*) FROM ttl_index.indexes WHERE state = 'paused'};

	$node->safe_psql('as_text', "SELECT ttl_index.pause_index('$main')");
	is($node->safe_psql('as_text', $paused),
		'2', "$main is paused with the other index of its pair");
	$node->safe_psql('as_text', "SELECT ttl_index.unpause_index('$main')");
	is($node->safe_psql('as_text', $paused), '0', "and unpaused with it");
}

#
# The schema is a member of the extension, so a dump leaves it to CREATE EXTENSION.
# An ordinary user restores into a database in which a superuser has installed that.
#

unlike(
	slurp_file("$dir/all.sql"),
	qr/SCHEMA ttl_index|COMMENT ON EXTENSION/,
	'a dump has nothing that makes or describes the schema');
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN CREATEDB');
foreach my $db ('app', 'app_from_text', 'app_from_archive')
{
	$node->safe_psql('postgres', "CREATE DATABASE $db OWNER app");
	$node->safe_psql($db, 'CREATE EXTENSION ttl_index');
}
$node->safe_psql(
	'app', q{
SET ROLE app;
CREATE TABLE session (at timestamptz);
CREATE INDEX session_ttl ON session (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE TABLE coll (doc jsonb);
SELECT ttl_index.track_last_modified('coll');
SELECT ttl_index.create_index('coll', '_ts', 1000, document_ttl_field => 'doc.ttl');
});
foreach my $format ('p', 'c')
{
	$node->command_ok(
		[
			'pg_dump', "-F$format", '-f', "$dir/app.$format", '-U', 'app',
			'-d', $node->connstr('app')
		],
		"pg_dump -F$format as an ordinary user");
}
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', 'app', '-d',
		$node->connstr('app_from_text'), '-f', "$dir/app.p"
	],
	'restore from text as an ordinary user');
$node->command_ok(
	[
		'pg_restore', '-e', '-U', 'app', '-d',
		$node->connstr('app_from_archive'), "$dir/app.c"
	],
	'pg_restore -e as an ordinary user');
foreach my $db ('app_from_text', 'app_from_archive')
{
	is($node->safe_psql($db, $indexes),
		$node->safe_psql('app', $indexes),
		"$db has the same TTL indexes");
}

# A list of schemas that is restored before the extension, as Rails has it
$node->safe_psql('postgres', 'CREATE DATABASE rails');
$node->safe_psql(
	'rails', q{
CREATE SCHEMA "ttl_index";
CREATE EXTENSION IF NOT EXISTS "ttl_index" SCHEMA "pg_catalog" CASCADE});
is( $node->safe_psql('rails', 'DROP EXTENSION ttl_index; SELECT to_regnamespace($$ttl_index$$)'),
	'',
	'a schema that was restored before the extension goes with it');

#
# A backup that one wants to look at is restored into a database of which the
# monitor keeps out, while it works in the others.
#

$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->monitor_in('restored', 'off');
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE TABLE clock (at timestamptz);
CREATE INDEX clock_ttl ON clock (at) WHERE ttl_index.expire_after_seconds(0);
});
$node->set('monitor_enabled', 'on');
$node->command_ok(
	[
		'pg_restore', '-j', '2', '-e', '-d', $node->connstr('restored'),
		"$dir/archive"
	],
	'restore with the monitor at work elsewhere');

# Waits until the monitor has been in every database.
sub wait_for_round
{
	my ($server) = @_;

	foreach my $turn (1 .. 2)
	{
		$server->safe_psql('postgres',
			"INSERT INTO clock VALUES ('2000-01-01')");
		$server->poll_query_until('postgres',
			'SELECT count(*) = 0 FROM clock')
		  or die 'the monitor does not come';
	}
	return;
}

my $rows = q{
SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM "Odd"."Local times"),
	(SELECT count(*) FROM dates), (SELECT count(*) FROM parts),
	(SELECT count(*) FROM changed), (SELECT count(*) FROM plain),
	(SELECT count(*) FROM documents), (SELECT count(*) FROM coll)};
my ($all, $not_due) = ('3|2|3|2|1|1|2|3', '2|2|2|1|1|1|1|2');

wait_for_round($node);
is($node->safe_psql('restored', $rows),
	$all, 'the monitor keeps out of a database that was set so');
is( $node->safe_psql(
		'restored', "SELECT ttl_index.due_count('public.events_ttl')"),
	1,
	'so one can look at what would go');

# The monitor sets to work where it may.
foreach my $db ('as_text', 'from_archive', 'from_custom')
{
	ok( $node->poll_query_until(
			$db, 'SELECT passes > 0 FROM ttl_index.stats'),
		"the monitor finds the copy $db");
	is($node->safe_psql($db, $rows),
		$not_due, "rule 1: what is due goes from $db and nothing else");
	is( $node->safe_psql($db,
			'SELECT deleted_documents FROM ttl_index.stats'),
		5,
		'rule 27: and is counted');
}

# A setting of the database goes with pg_dump --create, before the data.
$node->command_ok(
	[
		'pg_dump', '-Fc', '--create', '-f', "$dir/create", '-d',
		$node->connstr('source')
	],
	'pg_dump --create');
$node->safe_psql('postgres', 'ALTER DATABASE source RENAME TO original');
$node->command_ok(
	[
		'pg_restore', '--create', '-d', $node->connstr('postgres'),
		"$dir/create"
	],
	'pg_restore --create');
wait_for_round($node);
is($node->safe_psql('source', $rows),
	$all, 'the monitor keeps out of what pg_restore --create has made');

# Likewise with pg_dumpall, here into another server.
$node->command_ok(
	[
		'pg_dumpall', '-f', "$dir/cluster.sql", '-d',
		$node->connstr('postgres')
	],
	'pg_dumpall');
$node->monitor_in('restored', 'on');
ok( $node->poll_query_until(
		'restored', 'SELECT deleted_documents = 5 FROM ttl_index.stats'),
	'once it is set free, the monitor comes');
is($node->safe_psql('restored', $rows), $not_due, 'and deletes what is due');
my $expected = $node->safe_psql('restored', $indexes);

# A dump grants last, when the index is there already; and the archive comes before it.
$node->safe_psql('postgres', 'CREATE DATABASE archiving');
$node->monitor_in('archiving', 'off');
$node->safe_psql(
	'archiving', q{
CREATE EXTENSION ttl_index;
CREATE ROLE writer;
CREATE SCHEMA zz_cold;
CREATE TABLE zz_cold.rows (at timestamptz, arrived timestamptz DEFAULT now());
GRANT USAGE ON SCHEMA zz_cold TO writer;
GRANT INSERT ON zz_cold.rows TO writer;
CREATE TABLE aa_rows (at timestamptz);
ALTER TABLE aa_rows OWNER TO writer;
CREATE INDEX aa_ttl ON aa_rows (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('zz_cold.rows');
INSERT INTO aa_rows VALUES ('2001-01-01'), ('2999-01-01');
});
$node->command_ok([ 'pg_dump', '-f', "$dir/archiving.sql", '-d', $node->connstr('archiving') ], 'pg_dump of an archive');
$node->safe_psql('postgres', 'CREATE DATABASE archiving_too');
$node->monitor_in('archiving_too', 'off');
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d',
		$node->connstr('archiving_too'), '-f', "$dir/archiving.sql"
	],
	'restore of an archive');
is($node->safe_psql('archiving_too', 'SELECT indexrelid, archive_to, state FROM ttl_index.indexes'),
	'aa_ttl|zz_cold.rows|no_monitor', 'the index names its archive');
$node->safe_psql('archiving_too', 'CALL ttl_index.run_pass()');
is($node->safe_psql('archiving_too', 'SELECT (SELECT count(*) FROM aa_rows), (SELECT count(*) FROM zz_cold.rows)'),
	'1|1', 'and what is due moves there');

# One of the two alone: the index is not created, and the rows stay.
$node->command_ok([ 'pg_dump', '-n', 'public', '-f', "$dir/alone.sql", '-d', $node->connstr('archiving') ],
	'pg_dump of a schema without the archive');
$node->safe_psql('postgres', 'CREATE DATABASE alone');
$node->monitor_in('alone', 'off');
$node->safe_psql('alone', 'CREATE EXTENSION ttl_index');
$node->psql('alone', slurp_file("$dir/alone.sql"), on_error_stop => 0, stderr => \my $missing);
# core names the schema, and from 16 on the table
like($missing, qr/(?:schema "zz_cold"|relation "zz_cold\.rows") does not exist/, 'the archive is missed');
$node->safe_psql('alone', 'CALL ttl_index.run_pass()');
is($node->safe_psql('alone', 'SELECT (SELECT count(*) FROM aa_rows), (SELECT count(*) FROM ttl_index.indexes)'),
	'2|0', 'and nothing is deleted');

$node->stop;

my $other = TtlNode->configured('', name => 'other');
$other->start;
$other->command_ok(
	[
		'psql', '-X', '-q', '-d', $other->connstr('postgres'), '-f',
		"$dir/cluster.sql"
	],
	'restore of all databases');
wait_for_round($other);
foreach my $db ('restored', 'original', 'source')
{
	is($other->safe_psql($db, $rows),
		$all, "pg_dumpall: the monitor keeps out of database $db there too");
	is($other->safe_psql($db, $indexes),
		$expected, "pg_dumpall: the TTL indexes of $db are the same");
}
$other->monitor_in('restored', 'on');
ok( $other->poll_query_until(
		'restored', 'SELECT deleted_documents = 5 FROM ttl_index.stats'),
	'pg_dumpall: until it is set free');
is($other->safe_psql('restored', $rows), $not_due, 'and deletes what is due');

$other->stop;
done_testing();
