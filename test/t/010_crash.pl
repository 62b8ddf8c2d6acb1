# Copyright (c) 2026, ttl_index contributors

# Killed workers and launchers, crashes and shutdowns in the middle of a drain:
# nothing is lost, nothing counted twice, and the monitor comes back.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
restart_after_crash = on
ttl_index.batch_target_docs = 20
ttl_index.batch_timeout = '5min'
});

# A drain that takes some seconds: each row costs a millisecond.
$node->safe_psql(
	'postgres', q{
CREATE TABLE drain (at timestamptz, pad text DEFAULT repeat('x', 100));
CREATE INDEX drain_ttl ON drain (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO drain SELECT '2100-01-01' FROM generate_series(1, 50);
});
$node->slow_down('postgres', 'drain', 0.001);
my $due = "drain WHERE at < '2050-01-01'";
my $added = 0;

sub fill
{
	my ($rows) = @_;

	$node->safe_psql('postgres',
		"INSERT INTO drain SELECT timestamptz '2000-01-01' + i * interval '1 min' FROM generate_series(1, $rows) i"
	);
	$added += $rows;
	return;
}

# Goes on until some moment between here and the end of the drain, and sees on
# the way that counters and rows fit together under every snapshot.
sub wait_for_some_moment
{
	my $left = $node->safe_psql('postgres',
		"SELECT count(*) FROM $due");
	my $moment = int($left * (0.3 + rand(0.6)));
	my $stderr;

	note "waiting until $moment of $left rows are left";
	$node->psql(
		'postgres', qq{
DO \$\$
DECLARE
	gone bigint;
	rows bigint;
BEGIN
	LOOP
		SELECT s.deleted_documents, (SELECT count(*) FROM drain WHERE at < '2050-01-01')
			INTO gone, rows
			FROM ttl_index.index_stats s WHERE indexrelname = 'drain_ttl';
		IF gone + rows <> $added THEN
			RAISE 'counted %, left %, of $added', gone, rows;
		END IF;
		EXIT WHEN rows <= $moment OR statement_timestamp() < clock_timestamp() - interval '60 s';
	END LOOP;
END \$\$},
		stderr => \$stderr);
	is($stderr, '',
		'rule 27: rows and counters change together all the while');
	return;
}

# One statement, so one snapshot: this must hold at any time.
sub check_counted
{
	my ($when) = @_;

	is( $node->safe_psql(
			'postgres', q{
SELECT s.deleted_documents + (SELECT count(*) FROM drain WHERE at < '2050-01-01'),
	i.deleted_documents = s.deleted_documents
		AND s.deleted_documents = (SELECT coalesce(sum(deleted_documents), 0) FROM ttl_index.history)
FROM ttl_index.stats s, ttl_index.index_stats i WHERE i.indexrelname = 'drain_ttl'}),
		"$added|t",
		"rule 27: after $when exactly the rows that are gone are counted");
	is( $node->safe_psql(
			'postgres', "SELECT count(*) FROM drain WHERE at > '2050-01-01'"),
		50,
		"rule 1: after $when no row is gone before its time");
	return;
}

#
# kill -9 in a batch: the server restarts all of its processes.
#

fill(2000);
foreach my $victim ('worker', 'worker', 'launcher')
{
	my $offset = -s $node->logfile;

	wait_for_some_moment();
	kill 'KILL', $node->pid_of($victim);
	$node->wait_for_log(qr/all server processes terminated; reinitializing/,
		$offset);
	$node->wait_until_accepting;
	check_counted("kill -9 of the $victim");

	# twice at the same index would put it aside: see 011_crashed_visit
	$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
}
$node->empties('postgres', $due,
	'a launcher and workers that were killed by signal 9 come back');
check_counted('three crashes and the end of the drain');

#
# A worker that an administrator ends in a batch: the gate holds it there.
#

$node->safe_psql(
	'postgres', q{
CREATE TABLE gated (at timestamptz);
CREATE INDEX gated_ttl ON gated (at) WHERE ttl_index.expire_after_seconds(0);
});
$node->add_gate('gated');
my $keeper = $node->close_gate;
$node->safe_psql('postgres',
	"INSERT INTO gated SELECT '2000-01-01' FROM generate_series(1, 3)");

my $launcher = $node->pid_of('launcher');
my $worker = $node->pid_at_gate;
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
ok( $node->poll_query_until(
		'postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $worker"),
	'pg_terminate_backend ends a worker in the middle of a batch');

my $counts = q{
SELECT (SELECT count(*) FROM gated), deleted_documents
FROM ttl_index.index_stats WHERE indexrelname = 'gated_ttl'};
is($node->safe_psql('postgres', $counts),
	'3|0', 'rule 27: the batch of a terminated worker is not counted');

#
# The next worker stands at the gate: end its launcher.
#

$worker = $node->pid_of('worker',
	"wait_event = 'advisory' AND pid <> $worker");
pass('another worker takes the place of a terminated one');

#
# What is canceled is the batch, and its index is left alone for a minute: another
# one is next at the gate.  The launcher has nothing to cancel.
#

$node->safe_psql('postgres', "SELECT pg_cancel_backend($launcher)");
$node->safe_psql('postgres', "SELECT pg_cancel_backend($worker)");
ok( $node->poll_query_until(
		'postgres', q{
SELECT errors = 2 AND skipped_failed = 0 AND last_error_sqlstate = '57014'
	AND last_error = 'canceling statement due to user request'
FROM ttl_index.index_stats WHERE indexrelname = 'gated_ttl'}),
	'a batch that somebody cancels is an error');
$node->safe_psql(
	'postgres', q{
CREATE TABLE next (at timestamptz);
CREATE TRIGGER gate BEFORE DELETE ON next FOR EACH ROW EXECUTE FUNCTION gate();
CREATE INDEX next_ttl ON next (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO next VALUES ('2000-01-01');
});
$worker = $node->pid_at_gate;
is($node->pid_of('launcher'),
	$launcher, 'the launcher outlives its worker');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($launcher)");
ok( $node->poll_query_until(
		'postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid IN ($launcher, $worker)"
	),
	'a launcher that is terminated takes its worker with it');
is($node->safe_psql('postgres', $counts),
	'3|0', 'rule 27: nothing of it is counted');
isnt($node->pid_of('launcher'),
	$launcher, 'a terminated launcher comes back');

$node->pid_at_gate;
is( $node->safe_psql(
		'postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_index worker'"
	),
	1,
	'and has one worker');
$keeper->query_safe('SELECT pg_advisory_unlock(42)');
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gated')
  or die 'the gated rows do not go';
$node->poll_query_until('postgres', "$counts", '0|3');
is($node->safe_psql('postgres', $counts),
	'0|3', 'rule 27: rows that several workers tried to delete count once');

#
# Fast shutdown, in a batch that waits and at some moment of a drain
#

sub stop_fast
{
	my ($when) = @_;

	$node->stops_fast("fast shutdown $when");
	$node->start;
	return;
}

$keeper->query_safe('SELECT pg_advisory_lock(42)');
$node->safe_psql('postgres', "INSERT INTO gated VALUES ('2000-01-01')");
$node->pid_at_gate;
stop_fast('while a trigger waits');
eval { $keeper->quit };

fill(1000);
foreach my $i (1 .. 2)
{
	wait_for_some_moment();
	stop_fast('while a backlog drains');
}
$node->empties('postgres', $due, 'the monitor goes on after a shutdown');
is( $node->safe_psql(
		'postgres',
		"SELECT deleted_documents FROM ttl_index.index_stats WHERE indexrelname = 'drain_ttl'"
	),
	$added,
	'rule 27: after two shutdowns and the end of the drain exactly the rows that are gone are counted'
);

$node->stop;
done_testing();
