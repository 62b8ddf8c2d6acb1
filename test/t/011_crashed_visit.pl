# Copyright (c) 2026, ttl_index contributors

# An index whose visit crashed the worker twice is put aside; one at which the worker
# merely was when something else ended the server is not, nor is it in a copy.

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
ttl_index.batch_timeout = '30min'
}, init => [ allows_streaming => 1 ]);

# The trigger keeps the worker in its visit.
$node->safe_psql('postgres', 'CREATE TABLE deadly (at timestamptz)');
$node->slow_down('postgres', 'deadly', 3600);
$node->safe_psql(
	'postgres', q{
CREATE INDEX deadly_ttl ON deadly (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO deadly VALUES ('2000-01-01');
CREATE TABLE harmless (at timestamptz);
CREATE INDEX harmless_ttl ON harmless (at) WHERE ttl_index.expire_after_seconds(0);
});

# The pid of the worker in its visit to the deadly index.
sub worker_at_index
{
	my ($why) = @_;
	my $pid = $node->pid_of('worker', "wait_event = 'PgSleep'");

	ok($pid, $why);
	return $pid;
}

sub kill_process
{
	my ($pid) = @_;
	my $offset = -s $node->logfile;

	kill 'KILL', $pid;
	$node->wait_for_log(qr/database system is ready to accept connections/,
		$offset);
	$node->wait_until_accepting;
	return;
}

# All processes at once, as a machine that loses power or a container that is killed.
sub cut_power
{
	my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my @children = split ' ', `ps -o pid= --ppid $postmaster`;

	# the postmaster first, or it would see its children die
	kill 'KILL', $postmaster, @children;
	$node->start_after_kill;
	return;
}

sub state_of_index
{
	my ($server) = @_;

	$server = $node unless defined $server;
	# after a start the launcher may come a moment later
	$server->poll_query_until('postgres',
		"SELECT status = 'monitor' FROM ttl_index.monitor_status()")
	  or die 'there is no monitor';
	return $server->safe_psql('postgres',
		"SELECT state FROM ttl_index.indexes WHERE indexrelid = 'deadly_ttl'::regclass"
	);
}

#
# Somebody else crashes, or the server is stopped: not the fault of the index
#

foreach my $i (1 .. 2)
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	worker_at_index("the worker comes to the index ($i)");
	kill_process($pid);
	eval { $session->quit };
}
worker_at_index('after the second crash of another process it comes again');
$node->stop('immediate');
$node->start;
worker_at_index('and after an immediate shutdown');
my $worker = worker_at_index('which is no crash either');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
worker_at_index('nor is a worker that an administrator ends');
$node->restart;
worker_at_index('nor a restart');
foreach my $i (1 .. 2)
{
	cut_power();
	worker_at_index("nor a loss of power ($i)");
}
unlike(slurp_file($node->logfile),
	qr/the server crashed during a visit/, 'none of this is the fault of the index');
is(state_of_index(), 'failing', 'which is not put aside');

#
# The worker itself crashes
#

my $errors = $node->safe_psql('postgres', 'SELECT errors FROM ttl_index.stats');
foreach my $i (1 .. 2)
{
	my $offset = -s $node->logfile;
	my $passes = $node->safe_psql('postgres', 'SELECT passes FROM ttl_index.stats');

	kill_process(worker_at_index("before crash $i of the worker it is visited"));
	ok( $node->wait_for_log(
			qr/WARNING:  the server crashed during a visit to the TTL index with OID \d+ of the database with OID \d+/,
			$offset),
		"crash $i of the worker is the fault of the index");
	$errors++;
	ok( $node->poll_query_until(
			'postgres', qq{
SELECT errors = $errors AND last_error_sqlstate = '57P02'
	AND last_error = 'the server crashed while the worker was at this index'
FROM ttl_index.index_stats WHERE indexrelname = 'deadly_ttl'}),
		'it is counted and shown as an error');

	# what is counted does not wait for the disk; this does, and for all before
	$node->safe_psql('postgres', 'CREATE TABLE flushed(); DROP TABLE flushed');
	next if $i > 1;

	# A copy that is taken in the next visit has the mark of it, and crash 1.
	worker_at_index('after the first crash the index is visited again');
	is($node->safe_psql('postgres', 'SELECT passes FROM ttl_index.stats'),
		$passes, 'in the pass that counts the crash');
	$node->backup('in_a_visit');
}

my $put_aside =
  qr/WARNING:  TTL index "deadly_ttl" of table "postgres\.public\.deadly" is skipped: the server crashed in 2 visits to it, the last of which began at /;
ok($node->wait_for_log($put_aside), 'after the second crash it is put aside');
ok($node->log_contains(qr/HINT:  Find the cause, then SELECT ttl_index\.resume\(\)/),
	'and the log says how it comes back');
my $log_end = -s $node->logfile;
$node->wait_for_passes(3);
unlike(slurp_file($node->logfile, $log_end),
	$put_aside, 'but not again in each pass');
is(state_of_index(), 'crashed_server', 'the view indexes says so');
like(
	$node->safe_psql('postgres',
		"SELECT reason FROM ttl_index.indexes WHERE indexrelid = 'deadly_ttl'::regclass"
	),
	qr/^the server crashed in 2 visits to it/,
	'and why');
$node->safe_psql('postgres', "INSERT INTO harmless VALUES ('2000-01-01')");
$node->empties('postgres', 'harmless', 'other indexes go on');

my ($status, $stdout, $stderr) =
  $node->psql('postgres', 'CALL ttl_index.run_pass()');
like($stderr, $put_aside, 'run_pass() leaves it alone too');
is($node->safe_psql('postgres', 'SELECT count(*) FROM deadly'),
	1, 'its row stays');

my $copy = TtlNode->copy_of($node, 'in_a_visit', 'copy');
$copy->start;
ok( $copy->pid_of('worker', "wait_event = 'PgSleep'"),
	'a copy that was taken in a visit visits the index');
unlike(slurp_file($copy->logfile), qr/the server crashed during a visit/,
	'which did not crash it');
is(state_of_index($copy), 'failing', 'nor is the index put aside there');
$copy->stop;

# What happened to another postmaster does not count: it may have been mended.
$node->restart;
is(state_of_index(), 'failing', 'after a restart it is tried again');
foreach my $i (1 .. 2)
{
	is(state_of_index(), 'failing', "twice ($i)");
	kill_process(worker_at_index("and visited ($i)"));
}
is(state_of_index(), 'crashed_server', 'before it is put aside again');

# Another index on the same key is another index.
$node->safe_psql('postgres', 'CREATE TABLE beside (at timestamptz)');
$node->slow_down('postgres', 'beside', 3600);
$node->safe_psql(
	'postgres', q{
INSERT INTO beside VALUES ('2000-01-01');
BEGIN;
CREATE INDEX again_ttl ON deadly (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX beside_ttl ON beside (at) WHERE ttl_index.expire_after_seconds(0);
COMMIT;
});
$worker = worker_at_index('an index that is made anew is visited');

# resume() makes a new file, to which a worker writes that has begun before.
my $failed = $node->safe_psql('postgres', 'SELECT sum(errors) FROM ttl_index.stats');
my $before_crash = -s $node->logfile;
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($worker)");
$node->becomes('postgres', "SELECT sum(errors) > $failed FROM ttl_index.stats",
	'the visit ends');
is(worker_at_index('its worker goes on'), $worker, 'to the next one');
kill_process($worker);
ok( $node->wait_for_log(qr/the server crashed during a visit/, $before_crash),
	'of which a crash is the fault');
$node->safe_psql('postgres', 'DROP INDEX again_ttl; DROP TABLE beside');

$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
is(state_of_index(), 'failing', 'resume() lets it be visited');

# Where as many others as the file has room for crashed the server earlier, the oldest of
# these is forgotten.  They are known by their numbers; each of them has crashed it twice.
my $state_file = $node->data_dir . '/pg_stat/ttl_index.state';
my $many = 128;

sub crashes
{
	return map { join ':', (unpack('q L L q q', $_))[ 2, 3 ] }
	  unpack('(a32)*', substr(slurp_file($state_file), -32 * $many));
}

my $start = $node->safe_psql('postgres',
	'SELECT round((extract(epoch FROM pg_postmaster_start_time()) - 946684800) * 1000000)');
open my $file, '+<:raw', $state_file or die "could not open $state_file: $!";
seek $file, -32 * $many, 2;
print $file map { pack('q L L q q', $start, 1, $_, 2, $start + $_) } 1 .. $many;
close $file or die "could not write $state_file: $!";
my $deadly = $node->safe_psql('postgres', "SELECT 'deadly_ttl'::regclass::oid");
kill_process(worker_at_index("one more is visited ($_)")) foreach 1 .. 2;
is(state_of_index(), 'crashed_server', 'before it is put aside');
is_deeply(
	[ crashes() ],
	[ "$deadly:2", map { "$_:2" } 2 .. $many ],
	'and the oldest one is forgotten for that');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
$worker = worker_at_index('and it is visited again');
$node->safe_psql('postgres',
	"SELECT pg_terminate_backend($worker); DROP TRIGGER slow ON deadly");
$node->empties('postgres', 'deadly', 'its row goes once it can');
$node->becomes('postgres', "SELECT bool_and(state = 'active') FROM ttl_index.indexes",
	'and the index is active after its first good visit');

# A process that is ended by exit(), and not by the server, has crashed.
my $library = TtlNode::rights_library();
SKIP:
{
	skip 'make test/perl/rights.so was not run', 1 unless $library;
	my $offset = -s $node->logfile;

	$node->safe_psql(
		'postgres', qq{
CREATE FUNCTION exits() RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.exits(); RETURN OLD; END';
CREATE TRIGGER ends BEFORE DELETE ON harmless FOR EACH ROW EXECUTE FUNCTION ends();
INSERT INTO harmless VALUES ('2000-01-01');
});
	ok( $node->wait_for_log(
			qr/TTL index "harmless_ttl" .* is skipped: the server crashed in 2 visits/,
			$offset),
		'nor does a function that ends the process go on to do so');
}

$node->stop;
done_testing();
