# Copyright (c) 2026, ttl_index contributors

# The monitor pauses while a standby is behind, shows that, and goes on when it
# has caught up.  What only receives, and what it waited for in vain, does not make
# it pause.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Faults;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $faults = Faults->new;
my $primary = TtlNode->running(
	q{
autovacuum = off
ttl_index.max_replication_lag = 200ms
}, name => 'primary', init => [ allows_streaming => 1 ], faults => $faults);
$primary->backup('backup');
my $standby = TtlNode->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'wal_receiver_status_interval = 1');
$standby->start;

$primary->safe_psql(
	'postgres', q{
CREATE TABLE events (at timestamptz);
CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2000-01-01');
});
ok( $primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM events'),
	'rows expire while the standby follows');

sub fall_behind
{
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	# the lag is known when there is something to replay
	$primary->poll_query_until('postgres',
		q{SELECT replay_lag > '500 ms' FROM pg_stat_replication, pg_current_xact_id()}
	) or die 'the standby does not fall behind';
	# a worker comes for a row that is due
	$primary->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
	return;
}

sub monitor_pauses
{
	my ($name) = @_;

	ok( $primary->poll_query_until(
			'postgres',
			q{SELECT count(*) = 1 FROM ttl_index.current_op WHERE operation = 'wait for replication'}
		),
		$name);
	return;
}

fall_behind();
monitor_pauses('the monitor pauses, and the view shows it');
# between two waits it has no wait event
ok( $primary->poll_query_until(
		'postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'ttl_index worker'
AND query = 'ttl_index: waiting for replication to catch up' AND wait_event IN ('Extension', 'TtlIndexReplicationLag')}
	),
	'so does its activity');
# it looks five times a second
$primary->poll_query_until('postgres',
	q{SELECT now() - op_start > '1 s' FROM ttl_index.current_op})
  or die 'the pause does not last';
is($primary->safe_psql('postgres', 'SELECT count(*) FROM events'),
	1, 'nothing is deleted meanwhile');

$primary->safe_psql('postgres', 'CREATE DATABASE other');
$primary->safe_psql('postgres', 'DROP DATABASE other');
pass('a database can be dropped meanwhile');

# which ended one worker
my $worker_of_pause =
  q{SELECT pid FROM ttl_index.current_op WHERE operation = 'wait for replication'};
$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($worker_of_pause) AS w")
  or die 'the pause does not go on';
my $paused = $primary->safe_psql('postgres', $worker_of_pause);
$primary->safe_psql('postgres', "SELECT pg_cancel_backend($paused)");

$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
ok( $primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM events'),
	'it goes on when the standby has caught up');
ok( $primary->poll_query_until(
		'postgres', 'SELECT lag_pauses >= 1 FROM ttl_index.stats'),
	'the pause is counted');

unlike(slurp_file($primary->logfile), qr/canceling statement/,
	'a worker that waits has nothing to cancel');

#
# What receives WAL and applies none of it
#

sub row_goes
{
	my ($name) = @_;

	$primary->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
	ok( $primary->poll_query_until(
			'postgres', 'SELECT count(*) = 0 FROM events'),
		$name);
	return;
}

my $directory = PostgreSQL::Test::Utils::tempdir;
my $output = '';
my $receiver = IPC::Run::start(
	[
		$primary->installed_command('pg_receivewal'), '--no-loop',
		'--status-interval', '1', '-D', $directory, '-d',
		$primary->connstr('postgres')
	],
	'>&', \$output);
$primary->poll_query_until('postgres',
	q{SELECT replay_lag > '500 ms' FROM pg_stat_replication, pg_current_xact_id() WHERE replay_lsn IS NULL}
) or die 'pg_receivewal does not report a lag';
row_goes('pg_receivewal replays nothing, so it is never behind');
$receiver->kill_kill;

#
# After a pause in vain, what it was for is no longer awaited; all else is
#

sub abandon_slot
{
	my ($name) = @_;

	# it begins at the last checkpoint
	$primary->safe_psql(
		'postgres', qq{
CHECKPOINT;
SELECT pg_create_physical_replication_slot('$name', true);
SELECT count(pg_logical_emit_message(false, 'ttl', repeat('x', 1000000))) FROM generate_series(1, 3);
});
	return;
}

my $goes_on =
  qr/WARNING:  ttl_index goes on deleting although replication is behind/;

$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$primary->set('max_lag_pause', '1s');
$primary->set('max_retained_wal', '1MB');
abandon_slot('abandoned');
row_goes('deletion goes on after max_lag_pause');
like(slurp_file($primary->logfile), $goes_on, 'with a WARNING');
$primary->set('max_lag_pause', '10min');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
row_goes('a slot that was awaited in vain is awaited no more');

fall_behind();
monitor_pauses('while a standby that falls behind is');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
row_goes('until it has caught up');

#
# The clock is set back in a pause
#

my $offset = -s $primary->logfile;
abandon_slot('another');
$primary->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
monitor_pauses('another slot is');
$faults->clock_ahead(0, -1);
$primary->set('max_lag_pause', '1s');
ok($primary->wait_for_log($goes_on, $offset),
	'a clock that is set back makes no pause longer');
$faults->clock_ahead(0);
$primary->safe_psql('postgres',
	'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
$primary->set('max_retained_wal', '0');
row_goes('and the row goes');

$standby->stop;
$primary->stop;
done_testing();
