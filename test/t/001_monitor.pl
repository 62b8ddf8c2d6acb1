# Copyright (c) 2026, ttl_index contributors

# The monitor by itself: which databases and indexes it finds, what it shows of
# itself, which passes it counts, and what it leaves alone.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

# Without autovacuum nobody but the monitor works in the background.
my $node = TtlNode->configured(
	q{
autovacuum = off
ttl_index.batch_timeout = '5min'
});
$node->start;

my $pass = $TtlNode::pass;

sub make_events
{
	my ($db) = @_;

	$node->safe_psql(
		$db, q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2000-01-01'), ('2001-01-01'), ('2100-01-01');
});
	return;
}

sub events_left
{
	my ($db) = @_;

	return $node->safe_psql($db, 'SELECT count(*) FROM events');
}

#
# The launcher
#

ok( $node->poll_query_until(
		'postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'ttl_index launcher'"
	),
	'there is one launcher, with a backend_type of its own');
$node->wait_for_log(qr/ttl_index launcher started/);

#
# Nothing is written where there is nothing to do.  No other database has the
# extension, so no transaction ID is used up.
#

$node->safe_psql('postgres', 'CREATE EXTENSION ttl_index');
$node->wait_for_passes(1);
my $next_xid = $node->safe_psql('postgres',
	'SELECT pg_snapshot_xmax(pg_current_snapshot())');
$node->wait_for_passes(2);
is( $node->safe_psql(
		'postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())'),
	$next_xid,
	'rule 24: passes over databases without TTL indexes write nothing');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM ttl_index.counters'),
	0, 'rule 24: a database without TTL indexes counts nothing');
is( $node->safe_psql(
		'template1',
		"SELECT count(*) FROM pg_extension WHERE extname = 'ttl_index'"),
	0,
	'the monitor installs nothing');
$node->safe_psql('postgres', 'DROP EXTENSION ttl_index');

#
# Which databases
#

# These two are made ready while they are off limits.
foreach my $db ('template_db', 'closed_db')
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql('postgres',
		"ALTER DATABASE $db SET ttl_index.monitor_enabled = off");
	make_events($db);
}
$node->safe_psql(
	'postgres', q{
ALTER DATABASE template_db IS_TEMPLATE true;
ALTER DATABASE closed_db ALLOW_CONNECTIONS false;
ALTER DATABASE template_db RESET ttl_index.monitor_enabled;
ALTER DATABASE closed_db RESET ttl_index.monitor_enabled;
});

my $odd = q{it's "an" odd näme};
make_events('postgres');
$node->safe_psql('postgres',
	q{CREATE DATABASE "it's ""an"" odd näme" ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0}
);
make_events($odd);
$node->drains('postgres', 'events', 'a database is found by itself');
$node->drains($odd, 'events', 'a database is found whatever its name');

# The first pass of a database is written at once, also where nothing is due.
$node->safe_psql('postgres', 'CREATE DATABASE idle');
$node->safe_psql(
	'idle', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->becomes('idle', 'SELECT passes > 0 FROM ttl_index.stats',
	'the first pass of a database is written');
is( $node->safe_psql(
		'idle', 'SELECT passes, last_pass_end IS NOT NULL FROM ttl_index.stats'
	),
	'1|t',
	'at once');

# it begins soon, as it says to who declares a TTL by which most of a table goes
my $declared;
$node->psql(
	'idle',
	q{BEGIN; CREATE TABLE big AS SELECT timestamptz '2001-01-01' AS at FROM generate_series(1, 10001);
CREATE INDEX ON big (at) WHERE ttl_index.expire_after_seconds(0); ROLLBACK},
	stderr => \$declared);
like($declared, qr/WARNING:  100 % of table "big" \(about 10001 rows\) will be deleted within a minute/,
	'a declaration that empties a table says when');
$node->safe_psql('postgres', 'DROP DATABASE idle');

$node->safe_psql('postgres', 'CREATE DATABASE later');
make_events('later');
$node->drains('later', 'events', 'a database that is created later is found by itself');

$node->wait_for_passes(1);
is(events_left('template_db'), 3, 'a template is left alone');
$node->safe_psql(
	'postgres', q{
ALTER DATABASE closed_db SET ttl_index.monitor_enabled = off;
ALTER DATABASE closed_db ALLOW_CONNECTIONS true;
});
is(events_left('closed_db'),
	3, 'a database that allows no connections is left alone');
$node->safe_psql('postgres', 'ALTER DATABASE template_db IS_TEMPLATE false');
$node->drains('template_db', 'events', 'a database that is no template any more is found');

# One with a table of ours and without the extension has no worker that fails.
$node->safe_psql('later', 'DROP EXTENSION ttl_index CASCADE');
$node->safe_psql('later', "INSERT INTO events VALUES ('2000-01-01')");
my $log_end = -s $node->logfile;
$node->wait_for_passes(1);
is(events_left('later'), 2,
	'a database without the extension is left alone');
unlike(
	slurp_file($node->logfile, $log_end),
	qr/(WARNING|ERROR|FATAL|PANIC|TRAP)/,
	'and nothing is logged about it');

#
# Passes are counted when they end, also idle ones.  The launcher numbers its passes, the
# database counts them.
#

my $counted =
  $node->safe_psql('postgres', 'SELECT passes FROM ttl_index.stats');
$node->wait_for_passes(3);
ok( $node->poll_query_until(
		'postgres',
		"SELECT passes >= $counted + 2 FROM ttl_index.stats"),
	'rule 24: idle passes count');
is( $node->safe_psql(
		'postgres', q{
SELECT passes <= sub_passes, last_pass_start <= last_cutoff, last_cutoff <= last_pass_end,
	last_pass_end <= now(), deleted_documents
FROM ttl_index.stats}),
	't|t|t|t|2',
	'rule 24: stats tells of the last pass');
my ($passes, $launched) = split /\|/, $node->safe_psql(
	'postgres', qq{
SELECT passes, $pass FROM ttl_index.stats, pg_stat_activity
WHERE backend_type = 'ttl_index launcher'});
cmp_ok($passes, '<=', $launched,
	'rule 24: no more passes are counted than the launcher made');

#
# A worker at work.  The gate keeps it in its batch.
#

$node->safe_psql(
	'postgres', q{
CREATE SCHEMA "Odd";
CREATE TABLE "Odd"."Gated" (at timestamptz);
CREATE INDEX "Gated ttl" ON "Odd"."Gated" (at) WHERE ttl_index.expire_after_seconds(0);
});
$node->add_gate('"Odd"."Gated"');
my $keeper = $node->close_gate;
$node->safe_psql('postgres',
	q{INSERT INTO "Odd"."Gated" VALUES ('2000-01-01'), ('2100-01-01')});
ok( $node->poll_query_until(
		'postgres', q{
SELECT count(*) = 1 FROM pg_stat_activity
WHERE backend_type = 'ttl_index worker' AND datname = 'postgres'
	AND state = 'active' AND wait_event = 'advisory'
	AND query LIKE '%"Odd"."Gated"%"Gated ttl"%'}),
	'pg_stat_activity names the worker by its backend_type, and the index at work');
is( $node->safe_psql(
		'postgres', q{
SELECT datname, operation, relid::regclass, indexrelid::regclass, pass_start <= op_start, index_deleted, wait_event
FROM ttl_index.current_op}),
	'postgres|visit|"Odd"."Gated"|"Odd"."Gated ttl"|t|0|advisory',
	'current_op shows the worker');
my $passes_before =
  $node->safe_psql('postgres', 'SELECT passes FROM ttl_index.stats');
$keeper->query_safe('SELECT pg_advisory_unlock(42)');
$keeper->quit;
ok( $node->poll_query_until(
		'postgres', q{SELECT count(*) = 1 FROM "Odd"."Gated"}),
	'the batch goes on');
ok( $node->poll_query_until(
		'postgres',
		"SELECT passes > $passes_before FROM ttl_index.stats"),
	'rule 24: a pass is counted when it is over');
ok( $node->poll_query_until(
		'postgres', 'SELECT count(*) = 0 FROM ttl_index.current_op'),
	'current_op is empty between passes');

#
# Only valid indexes.  An old snapshot keeps the build from its end.
#

$node->safe_psql(
	'postgres', q{
CREATE TABLE built (at timestamptz);
INSERT INTO built VALUES ('2000-01-01'), ('2100-01-01');
});
my $old = $node->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM built');
my $builder = $node->background_psql('postgres', wait => 0);
$builder->query_until(
	qr/started/, q{
\echo started
CREATE INDEX CONCURRENTLY built_ttl ON built (at) WHERE ttl_index.expire_after_seconds(0);
\echo done
});
$node->poll_query_until('postgres',
	"SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass('built_ttl')"
) or die 'the build does not begin';
$node->wait_for_passes(1);
is( $node->safe_psql('postgres', 'SELECT count(*) FROM built'),
	2, 'rule 16: an index that is being built deletes nothing');
is( $node->safe_psql(
		'postgres',
		"SELECT state FROM ttl_index.indexes WHERE indexrelid = to_regclass('built_ttl')"
	),
	'not_valid',
	'rule 16: and is shown as such');
$old->query_safe('COMMIT');
$old->quit;
$builder->query_until(qr/done/, "\n");
$builder->quit;
$node->drains('postgres', 'built',
	'rule 16: deleting starts once the index is valid');

$node->stop;
done_testing();
