# Copyright (c) 2026, ttl_index contributors

# The settings of the monitor: a reload takes effect at once, one database can
# have its own, and nonsense is refused.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->configured(
	q{
ttl_index.monitor_sleep = '1h'
ttl_index.batch_timeout = '5min'
});
$node->start;

$node->wait_for_log(qr/ttl_index launcher started/);
$node->safe_psql('postgres', 'CREATE DATABASE other');
foreach my $db ('postgres', 'other')
{
	$node->safe_psql(
		$db, q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2000-01-01'), ('2100-01-01');
});
}

#
# The length of the sleep, during a sleep
#

is($node->safe_psql('postgres', 'SELECT count(*) FROM events'),
	2, 'nothing expires while the monitor sleeps');
$node->set('monitor_sleep', 1);
$node->becomes('postgres', 'SELECT count(*) = 1 FROM events',
	'rule 25: a shorter monitor_sleep ends a long sleep at once');
$node->becomes('other', 'SELECT count(*) = 1 FROM events',
	'rule 25: in every database');

#
# One database of its own manners
#

$node->safe_psql('postgres',
	'ALTER DATABASE other SET ttl_index.monitor_enabled = off');
$node->wait_for_passes(1);
my $passes =
  $node->safe_psql('other', 'SELECT passes FROM ttl_index.stats');
$node->safe_psql($_, "INSERT INTO events VALUES ('2000-01-01')")
  foreach 'other', 'postgres';
$node->wait_for_passes(1);
is($node->safe_psql('postgres', 'SELECT count(*) FROM events'),
	1, 'rule 25: a database without the setting goes on');
is($node->safe_psql('other', 'SELECT count(*) FROM events'),
	2, 'rule 25: ALTER DATABASE SET monitor_enabled = off keeps the monitor out');
is($node->safe_psql('other', 'SELECT passes FROM ttl_index.stats'),
	$passes, 'rule 24: passes are not counted while the monitor is disabled');
$node->safe_psql('postgres',
	'ALTER DATABASE other RESET ttl_index.monitor_enabled');
$node->becomes('other', 'SELECT count(*) = 1 FROM events',
	'rule 25: ALTER DATABASE RESET lets it in again');

$node->safe_psql('postgres',
	"ALTER DATABASE other SET ttl_index.index_delete_target_docs = 2");
$node->safe_psql('other',
	"INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 5)");
ok( $node->poll_query_until(
		'other',
		"SELECT visits = 5 FROM ttl_index.index_stats WHERE deleted_documents = 7"),
	'a limit that is set for a database holds for its worker')
  or diag $node->safe_psql('other',
	'SELECT visits, deleted_documents FROM ttl_index.index_stats');

# Nor can the owner of a database say as whom the monitor is there: it acts for all owners.
$node->safe_psql(
	'postgres', q{
CREATE ROLE owner;
CREATE ROLE another;
CREATE DATABASE owned OWNER owner});
$node->safe_psql(
	'owned', q{
CREATE EXTENSION ttl_index;
CREATE TABLE parts (at timestamptz) PARTITION BY RANGE (at);
ALTER TABLE parts OWNER TO another;
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.drop_expired_partitions();
});
foreach my $setting ('role', 'session_authorization')
{
	$node->safe_psql(
		'owned', qq{
BEGIN;
CREATE TABLE part PARTITION OF parts FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
ALTER TABLE part OWNER TO another;
ALTER DATABASE owned SET $setting = 'owner';
COMMIT});
	$node->becomes('owned', "SELECT to_regclass('part') IS NULL",
		"ALTER DATABASE SET $setting keeps no partition of others");
	$node->safe_psql('postgres', "ALTER DATABASE owned RESET $setting");
}
$node->safe_psql('postgres', 'DROP DATABASE owned WITH (FORCE)');

#
# Off by reload, in the middle of a backlog: a gate holds the worker in the
# first of five batches.
#

$node->safe_psql(
	'postgres', q{
CREATE TABLE gated (at timestamptz);
CREATE INDEX gated_ttl ON gated (at) WHERE ttl_index.expire_after_seconds(0);
});
$node->add_gate('gated');
$node->set('batch_target_docs', 1);
$node->wait_for_passes(1);
my $keeper = $node->close_gate;
$node->safe_psql('postgres',
	"INSERT INTO gated SELECT '2000-01-01' FROM generate_series(1, 5)");
my $worker = $node->pid_at_gate;
$node->set('monitor_enabled', 'off');

# The postmaster passes the signal on in its own time; this one is there now.
kill 'HUP', $worker;
$keeper->query_safe('SELECT pg_advisory_unlock(42)');
$keeper->quit;
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker")
  or die 'the worker stays';
is($node->safe_psql('postgres', 'SELECT count(*) FROM gated'),
	4, 'rule 25: monitor_enabled = off by reload stops at the next batch');
is( $node->safe_psql(
		'postgres',
		"SELECT deleted_documents FROM ttl_index.index_stats WHERE indexrelname = 'gated_ttl'"
	),
	1,
	'rule 27: the batch that was under way is counted');
$passes = $node->safe_psql('postgres', 'SELECT passes FROM ttl_index.stats');

$node->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is( $node->safe_psql(
		'postgres',
		'SELECT (SELECT count(*) FROM gated), (SELECT count(*) FROM events)'),
	'0|1',
	'run_pass() works while the monitor is disabled');
is( $node->safe_psql('postgres', 'SELECT passes FROM ttl_index.stats'),
	$passes + 1,
	'rule 24: and is the only pass that counts');

$node->safe_psql('postgres',
	"INSERT INTO gated SELECT '2000-01-01' FROM generate_series(1, 5)");
$node->set('monitor_enabled', 'on');
ok( $node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gated'),
	'rule 25: monitor_enabled = on by reload starts it again');

#
# The log
#

unlike(slurp_file($node->logfile),
	qr/LOG: .*rows deleted|LOG: .*deleted \d+ rows/,
	'log_min_duration is off by default');
my $offset = -s $node->logfile;
$node->set('log_min_duration', 0);
$node->safe_psql('postgres',
	"INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 3)");
ok( $node->wait_for_log(
		qr/LOG: .*TTL index .*events_ttl.* deleted 3 rows/, $offset),
	'log_min_duration = 0 logs a visit');

#
# What is accepted, and what is refused
#

sub refused
{
	my ($sql, $message, $name) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $sql);

	isnt($status, 0, "$name: fails");
	like($stderr, $message, $name);
	return;
}

refused("ALTER SYSTEM SET ttl_index.$_->[0] = $_->[1]",
	qr/ERROR: .*(outside the valid range|invalid value for parameter|requires a Boolean value)/,
	"rule 25: $_->[0] = $_->[1] is refused")
  foreach ['monitor_sleep', '0'], ['monitor_sleep', "'soon'"],
  ['monitor_sleep', "'-1s'"], ['monitor_enabled', "'perhaps'"],
  ['sub_pass_target_time', '-1'], ['index_delete_target_docs', '-1'],
  ['index_delete_target_time', '-1'], ['batch_target_docs', '0'],
  ['batch_target_docs', '50001'], ['batch_target_time', '0'],
  ['batch_timeout', '-1'], ['batch_timeout', "'10 parsecs'"],
  ['log_min_duration', '-2'];

refused('SET ttl_index.monitor_slep = 1',
	qr/(invalid configuration parameter name|unrecognized configuration parameter)/,
	'a setting that does not exist is refused');
refused('SET ttl_index.monitor_sleep = 1',
	qr/cannot be changed now/, 'monitor_sleep is not for a session');
$node->safe_psql('postgres', 'CREATE ROLE somebody');
refused(
	"SET ROLE somebody; SET ttl_index.$_->[0] = $_->[1]",
	qr/permission denied to set parameter/,
	"$_->[0] is not for everybody")
  foreach ['monitor_enabled', 'off'], ['batch_timeout', '0'];

$node->set('monitor_sleep', '2min');
is( $node->safe_psql(
		'postgres', q{
SELECT string_agg(name || ' ' || coalesce(unit, vartype), ', ' ORDER BY name)
FROM pg_settings WHERE name LIKE 'ttl_index.%'}),
	join(', ',
		'ttl_index.batch_target_docs integer',
		'ttl_index.batch_target_time ms',
		'ttl_index.batch_timeout ms',
		'ttl_index.bucket_lock_timeout ms',
		'ttl_index.count_dropped_documents bool',
		'ttl_index.delete_rate_limit integer',
		'ttl_index.expiring string',
		'ttl_index.history_retention s',
		'ttl_index.hold_after_downtime s',
		'ttl_index.index_delete_target_docs integer',
		'ttl_index.index_delete_target_time ms',
		'ttl_index.log_min_duration ms',
		'ttl_index.logical_messages bool',
		'ttl_index.max_clock_jump s',
		'ttl_index.max_due_fraction real',
		'ttl_index.max_lag_pause s',
		'ttl_index.max_replication_lag ms',
		'ttl_index.max_retained_wal MB',
		'ttl_index.max_workers integer',
		'ttl_index.monitor_enabled bool',
		'ttl_index.monitor_sleep s',
		'ttl_index.sub_pass_target_time s'),
	'the settings have units');
is( $node->safe_psql(
		'postgres', q{
SET ttl_index.batch_timeout = '2min';
SET ttl_index.batch_target_time = '0.2 s';
SELECT current_setting('ttl_index.monitor_sleep'), setting, current_setting('ttl_index.batch_target_time')
FROM pg_settings WHERE name = 'ttl_index.batch_timeout'}),
	'2min|120000|200ms',
	'and take values in other units');

# Behind a longer transaction a partition is not dropped, unless its table may wait.
$node->safe_psql(
	'postgres', q{
ALTER SYSTEM SET ttl_index.monitor_enabled = off;
SELECT pg_reload_conf();
CREATE TABLE parts (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT ttl_index.create_index('parts', 'at', 0, drop_expired_partitions => true);
});
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM parts');
my $buckets = q{SELECT count(*) FROM pg_inherits WHERE inhparent = 'parts'::regclass};
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', $buckets),
	1, 'a long transaction keeps a bucket');
my $waiter = $node->background_psql('postgres');
$waiter->query_safe(
	"SET ttl_index.bucket_lock_timeout = '1min'; SET application_name = 'waiter'");
$waiter->query_until(qr//, "CALL ttl_index.run_pass();\n");
my $waits =
  "SELECT clock_timestamp() - query_start > '500 ms' FROM pg_stat_activity WHERE application_name = 'waiter' AND state = 'active'";
$node->poll_query_until('postgres', $waits)
  or die 'run_pass() does not wait for the transaction';
is($node->safe_psql('postgres', 'SELECT 1 FROM parts'),
	'', 'while it watches the others, it is in nobody\'s way');
$reader->query_safe('COMMIT');
ok($node->poll_query_until('postgres', "SELECT 0 = ($buckets)"),
	'once that has ended, the bucket goes');

# A bucket that gets meanwhile an owner as whom the session may not act is left to the monitor.
$node->safe_psql(
	'postgres', q{
CREATE ROLE giver;
CREATE TABLE given (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE given_old PARTITION OF given FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
SELECT ttl_index.create_index('given', 'at', 0, drop_expired_partitions => true);
ALTER TABLE given OWNER TO giver;
ALTER TABLE given_old OWNER TO giver;
});
my $given = q{SELECT count(*) FROM pg_inherits WHERE inhparent = 'given'::regclass};
$reader->query_safe('BEGIN; LOCK TABLE ONLY given IN ACCESS SHARE MODE');
$waiter->quit;
$waiter = $node->background_psql('postgres');
$waiter->query_safe(
	"SET ttl_index.bucket_lock_timeout = '1min'; SET application_name = 'giver'; SET ROLE giver");
$waiter->query_until(qr//, "CALL ttl_index.run_pass();\n");
$node->poll_query_until('postgres', $waits =~ s/'waiter'/'giver'/r)
  or die 'run_pass() does not wait for the lock';
$node->safe_psql('postgres', 'ALTER TABLE given_old OWNER TO CURRENT_USER');
$reader->query_safe('COMMIT');
$node->poll_query_until('postgres',
	"SELECT state = 'idle' FROM pg_stat_activity WHERE application_name = 'giver'")
  or die 'run_pass() does not end';
is($node->safe_psql('postgres', $given), 1, 'a bucket that is given away meanwhile stays');
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', $given), 0, 'until one comes who may act as its new owner');
$reader->quit;
$waiter->quit;

$node->stop;
done_testing();
