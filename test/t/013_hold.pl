# Copyright (c) 2026, ttl_index contributors

# A clock that jumps ahead does not empty the tables, nor does a server that was down
# for long where that is asked for.  Without these
# protections the rows do go: each is also tried with its setting off.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Faults;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $faults = Faults->new;
my $node = TtlNode->configured(
	q{
autovacuum = off
ttl_index.batch_timeout = 0
}, init => [ allows_streaming => 1 ], faults => $faults);

my $held = qr/WARNING:  ttl_index deletes nothing on this server/;

sub insert
{
	$node->safe_psql('postgres', "INSERT INTO events VALUES ('$_-01-01')")
	  foreach @_;
	return;
}

sub years
{
	return $node->safe_psql('postgres',
		"SELECT string_agg(extract(year FROM at)::text, ' ' ORDER BY at) FROM events"
	);
}

sub years_become
{
	my ($years, $name) = @_;

	ok( $node->poll_query_until(
			'postgres',
			"SELECT coalesce(string_agg(extract(year FROM at)::text, ' ' ORDER BY at), '') = '$years' FROM events"
		),
		$name);
	return;
}

# A due row goes, and no other: so a pass has ended that saw the clock.
sub monitor_works
{
	my ($name) = @_;
	my $before = years();

	insert(2001);
	years_become($before, $name);
	return;
}

sub messages
{
	my ($sql) = @_;
	my $stderr;

	$node->psql('postgres', $sql, stderr => \$stderr);
	return $stderr;
}

sub is_held
{
	my ($why, $offset) = @_;

	ok($node->wait_for_log($held, $offset), "deletion is held: $why");
	return;
}

$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
CREATE ROLE operator LOGIN;
});
$node->safe_psql('postgres', 'CREATE DATABASE quiet');
$node->safe_psql(
	'quiet', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
});
insert(2060, 2110, 2160, 2210, 2400);
monitor_works('the monitor works');

#
# The clock jumps ahead by 50 years
#

my $offset = -s $node->logfile;
$faults->clock_ahead(50);
is_held('the clock has jumped', $offset);
is(years(), '2060 2110 2160 2210 2400', 'nothing is gone');
is( $node->safe_psql(
		'postgres',
		"SELECT state, reason ~ '^the clock jumped ahead from 20.* to 20' FROM ttl_index.indexes"
	),
	'held|t',
	'the view indexes says so');
is( $node->safe_psql(
		'postgres',
		"SELECT status, reason ~ '^the clock jumped ahead', hint ~ 'resume' FROM ttl_index.monitor_status()"
	),
	'held|t|t',
	'so does monitor_status()');
like(
	messages('BEGIN; CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(1); ROLLBACK'),
	qr/due at once\nDETAIL:  No pass will delete it: the clock jumped ahead .*\nHINT:  .*ttl_index\.resume\(\)/,
	'and who declares is told');
is( $node->safe_psql(
		'postgres', "SELECT ttl_index.due_count('events_ttl')"),
	1,
	'due_count() tells what would go');
my ($status, $stdout, $stderr) =
  $node->psql('postgres', 'CALL ttl_index.run_pass()');
like(
	$stderr,
	qr/ERROR:  ttl_index deletes nothing on this server\nDETAIL:  .*jumped.*\nHINT:  .*ttl_index\.resume\(\)/,
	'run_pass() refuses, and says what to do');

# Neither a crash nor a restart lifts it.
$offset = -s $node->logfile;
$node->stop('immediate');
$node->start;
is_held('after a crash and a restart', $offset);

# A copy of the server is held as well: see Limits in README.md.
$node->backup('held');

($status, $stdout, $stderr) =
  $node->psql('postgres', 'SET ROLE operator; SELECT ttl_index.resume()');
like($stderr, qr/permission denied for function resume/,
	'resume() is not for everybody');
is(years(), '2060 2110 2160 2210 2400', 'still nothing is gone');
$node->safe_psql('postgres',
	'GRANT EXECUTE ON FUNCTION ttl_index.resume() TO operator');
$node->safe_psql('postgres', 'SET ROLE operator; SELECT ttl_index.resume()');
years_become('2110 2160 2210 2400', 'resume() takes the clock as it is');
is($node->safe_psql('postgres', 'SELECT state FROM ttl_index.indexes'),
	'active', 'and the index is active again');

#
# Jumps back are harmless: what is due then goes, and nothing else
#

$offset = -s $node->logfile;
$faults->clock_ahead(50, -10);
monitor_works('the monitor does not sleep until a clock that was set back catches up');
ok( $node->poll_query_until(
		'postgres',
		q{SELECT last_pass_end <= clock_timestamp() AND last_cutoff <= clock_timestamp() FROM ttl_index.stats}
	),
	'nor is the end of its last pass in the future');
$node->poll_query_until(
	'postgres', q{
SELECT last_deleted <= clock_timestamp() FROM ttl_index.index_stats
WHERE indexrelname = 'events_ttl'})
  or fail('nor the last deletion');
ok( $node->poll_query_until(
		'quiet', 'SELECT last_pass_end <= clock_timestamp() FROM ttl_index.stats'),
	'nor are passes that delete nothing unwritten for as long');

# nor does a pass last for as long, in which a trigger writes the rows again
$node->safe_psql(
	'quiet', q{
ALTER DATABASE quiet SET ttl_index.index_delete_target_docs = 10;
CREATE TABLE again (at timestamptz);
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); INSERT INTO public.again VALUES (OLD.at + interval '1 s'); RETURN NULL; END $$;
CREATE TRIGGER again AFTER DELETE ON again FOR EACH ROW EXECUTE FUNCTION again();
CREATE INDEX again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(0);
});
my $gate = $node->background_psql('quiet');
$gate->query_safe('SELECT pg_advisory_lock(42)');
$node->safe_psql('quiet',
	q{INSERT INTO again SELECT '2000-01-01' FROM generate_series(1, 20)});
$node->pid_at_gate;
my $passes =
  $node->safe_psql('quiet', 'SELECT passes FROM ttl_index.stats');
$faults->clock_ahead(50, -20);
$gate->query_safe('SELECT pg_advisory_unlock(42)');
ok( $node->poll_query_until(
		'quiet', "SELECT passes > $passes + 1 FROM ttl_index.stats"),
	'a pass ends in which the clock was set back');
$gate->quit;
$node->safe_psql('quiet', 'DROP TABLE again');

$faults->clock_ahead(50);
monitor_works('a jump that takes back another is none');
unlike(slurp_file($node->logfile, $offset), $held, 'nothing is held by them');

#
# Off: the same jump does delete
#

$node->set('max_clock_jump', 0);
$faults->clock_ahead(100);
years_become('2160 2210 2400', 'with max_clock_jump = 0 the rows go');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
$node->set('max_clock_jump', 86400);

#
# In the middle of a pass, between two of its sub-passes
#

$node->set('monitor_enabled', 'off');
$node->safe_psql(
	'postgres', q{
ALTER DATABASE postgres SET ttl_index.index_delete_target_docs = 1;
});
insert(2002, 2003);
$node->add_gate('events');
my $keeper = $node->close_gate;
$node->set('monitor_enabled', 'on');
$node->pid_at_gate;
$offset = -s $node->logfile;
$faults->clock_ahead(150);
$keeper->query_safe('SELECT pg_advisory_unlock(42)');
is_held('the clock has jumped in the middle of a pass', $offset);
is(years(), '2003 2160 2210 2400', 'what the pass had begun is done, and no more');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
years_become('2210 2400', 'the pass goes on after resume()');
$keeper->quit;

#
# A session finds a jump by itself
#

$node->set('monitor_enabled', 'off');
$faults->clock_ahead(200);
($status, $stdout, $stderr) =
  $node->psql('postgres', 'CALL ttl_index.run_pass()');
like($stderr, qr/ttl_index deletes nothing on this server/,
	'run_pass() compares the clocks without the monitor');
is(years(), '2210 2400', 'and deletes nothing');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');

#
# A state file that is damaged says that something was there
#

my $state = $node->data_dir . '/pg_stat/ttl_index.state';
truncate($state, 10) or die "could not truncate $state: $!";
is( $node->safe_psql(
		'postgres', 'SELECT state, reason FROM ttl_index.indexes'),
	'held|file "pg_stat/ttl_index.state" is damaged',
	'a damaged state file holds deletion');
($status, $stdout, $stderr) =
  $node->psql('postgres', 'CALL ttl_index.run_pass()');
like($stderr, qr/is damaged/, 'also by hand');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
pass('resume() writes a new one');

#
# A server that was down for long.  Only that: how long ago the last pass over one
# database was says nothing, and it is not for a database to say.
#

$node->set('hold_after_downtime', 365 * 86400);
$node->set('max_clock_jump', 0);
$node->safe_psql('postgres', 'DROP TRIGGER gate ON events');
$node->safe_psql('postgres', 'CREATE DATABASE idle');
$node->safe_psql(
	'idle', q{
ALTER DATABASE idle SET ttl_index.monitor_enabled = off;
CREATE EXTENSION ttl_index;
CREATE TABLE mine (at timestamptz);
CREATE INDEX mine_ttl ON mine (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO mine VALUES ('2000-01-01');
CALL ttl_index.run_pass();
GRANT CREATE ON SCHEMA public TO operator;
});
$node->set('monitor_enabled', 'on');
insert(2260, 2310);
monitor_works('the monitor works before the downtime');
$node->backup('before');
$faults->clock_ahead(210);
monitor_works('and 10 years later');
$node->stop;
$node->start;
$node->psql('idle', 'SET ROLE operator; CALL ttl_index.run_pass()');
$node->becomes('postgres', "SELECT state = 'active' FROM ttl_index.indexes",
	'a pass over a database whose last one was 10 years ago holds nothing');

my $standby = TtlNode->copy_of($node, 'before', 'standby', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$standby->promote;
ok( $standby->poll_query_until(
		'postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'ttl_index launcher' AND state = 'idle'"
	),
	'a standby is promoted');
is($standby->safe_psql('postgres', 'SELECT state FROM ttl_index.indexes'),
	'active', 'whose primary was at work until then');
$standby->stop;

$node->stop;
$faults->clock_ahead(250);
$offset = -s $node->logfile;
$node->start;
is_held('the server was down for 40 years', $offset);
is( $node->safe_psql(
		'postgres',
		q{SELECT state, reason ~ '^the server was down from 22[0-9]+-.* to 22' FROM ttl_index.indexes}
	),
	'held|t',
	'the view indexes says so');
is(years(), '2260 2310 2400', 'nothing is gone');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
years_become('2310 2400', 'until resume()');

# A copy was down since it was made, and so was a standby without a primary.
foreach my $streaming (0, 1)
{
	my $name = $streaming ? 'orphan' : 'rescue';
	my $copy = TtlNode->copy_of($node, 'before', $name,
		has_streaming => $streaming);

	$copy->append_conf('postgresql.conf', "primary_conninfo = ''");
	$copy->start;
	$copy->promote if $streaming;
	ok($copy->wait_for_log($held), "the server \"$name\" is held");
	is( $copy->safe_psql('postgres', 'SELECT count(*) FROM events'),
		3, 'and has all that it had');
	$copy->stop;
}

$node->stop;
$faults->clock_ahead(300);
$node->adjust_conf('postgresql.auto.conf', 'ttl_index.hold_after_downtime',
	'0');
$node->start;
years_become('2400',
	'with hold_after_downtime = 0, the default, the rows go at once');

#
# A file that cannot be written, or read
#

foreach my $mode (0400, 0)
{
	my $reason = 'file "pg_stat/ttl_index.state" cannot be read and written: Permission denied';

	$node->stop;
	chmod $mode, $state;
	$offset = -s $node->logfile;
	$node->start;
	ok( $node->wait_for_log(
			qr/WARNING:  ttl_index deletes nothing on this server\n.*DETAIL:  It is held: \Q$reason\E.\n.*HINT:  Let the server/,
			$offset),
		sprintf('a file of mode %04o is told', $mode));
	insert(2001);
	is( $node->safe_psql('postgres', 'SELECT DISTINCT state, reason FROM ttl_index.indexes'),
		"held|$reason",
		'and seen in the view of indexes');
	is( $node->safe_psql('postgres', 'SELECT status, reason, hint FROM ttl_index.monitor_status()'),
		"held|$reason|Let the server read and write that file again, and deletion goes on.",
		'and in monitor_status()');
	is($node->safe_psql('postgres', 'SELECT datname FROM ttl_index.databases'),
		'', 'nothing was visited');
	($status, $stdout, $stderr) = $node->psql('postgres', 'CALL ttl_index.run_pass()');
	like($stderr, qr/ERROR: .*deletes nothing.*\Q$reason\E/s, 'also by hand');
	is(years(), '2001 2400', 'nothing has gone');
	chmod 0600, $state;
	years_become('2400', 'when it can be read and written, deletion goes on');
	my $log = slurp_file($node->logfile, $offset);
	my $told = () = $log =~ /WARNING:  ttl_index deletes nothing/g;
	is($told, 1, 'that was told once');
	unlike($log, qr/"ttl_index launcher".* exited with exit code/, 'and the launcher has stayed');
}

#
# The recipe for a copy that is started to rescue what has expired
#

my $copy = TtlNode->copy_of($node, 'held', 'copy');
$copy->append_conf('postgresql.conf', 'ttl_index.monitor_enabled = off');
$copy->start;
is( $copy->safe_psql('postgres', 'SELECT state FROM ttl_index.indexes'),
	'held', 'a copy of a server that is held is held');
$copy->safe_psql('postgres', 'SELECT ttl_index.resume()');
$copy->poll_query_until('postgres',
	q{SELECT clock_timestamp() > pg_postmaster_start_time() + '3 s'});
is( $copy->safe_psql('postgres', 'SELECT count(*) FROM events'),
	5, 'with monitor_enabled = off nothing expires in a restored copy');
$copy->set('monitor_enabled', 'on');
$copy->becomes('postgres', 'SELECT count(*) = 1 FROM events',
	'as it does otherwise');

$copy->stop;
$node->stop;
done_testing();
