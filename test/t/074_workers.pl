# Copyright (c) 2026, ttl_index contributors

# How many processes a pass has: never more than ttl_index.max_workers, and as many where
# there is work for them.  And what becomes of them when the session that has started
# them ends, or cannot start them.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
ttl_index.batch_timeout = 0
ttl_index.batch_target_docs = 10
max_worker_processes = 16
});
my @owners = map { "owner_$_" } 1 .. 5;

# Each batch notes how many processes of passes there are.
$node->safe_psql(
	'postgres', q{
CREATE TABLE seen (processes int);
CREATE FUNCTION see() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS
	$$ BEGIN
		INSERT INTO public.seen SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('ttl_index worker', 'ttl_index survey');
		RETURN NULL;
	END $$;
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END $$;
});

# With a gate in front of the first row, and more rows than a batch takes.
sub make_table
{
	my ($owner, $name) = @_;

	$node->safe_psql(
		'postgres', qq{
CREATE TABLE $name (at timestamptz);
ALTER TABLE $name OWNER TO $owner;
INSERT INTO $name SELECT '2000-01-01' FROM generate_series(1, 50);
CREATE TRIGGER gate BEFORE DELETE ON $name EXECUTE FUNCTION gate();
CREATE TRIGGER see AFTER DELETE ON $name EXECUTE FUNCTION see();
CREATE INDEX ${name}_ttl ON $name (at) WHERE ttl_index.expire_after_seconds(0);
});
	return;
}

my $at_gate = q{FROM pg_stat_activity WHERE backend_type = 'ttl_index worker' AND wait_event = 'advisory'};

sub wait_at_gate
{
	my ($count, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $node->becomes('postgres', "SELECT count(*) = $count AND count(DISTINCT usename) = $count $at_gate", $name);
}

sub open_gate
{
	my ($keeper, $max, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$keeper->query_safe('SELECT pg_advisory_unlock(42)');
	$keeper->quit;
	$node->empties('postgres', $_, "rows of $_ are deleted") foreach @owners;
	is($node->safe_psql('postgres', 'SELECT max(processes) FROM seen'), $max, $name);
	$node->safe_psql('postgres', 'TRUNCATE seen');
	return;
}

sub fill
{
	$node->safe_psql('postgres',
		'BEGIN; ' . join('; ', map { "INSERT INTO $_ SELECT '2000-01-01' FROM generate_series(1, 50)" } @owners) . '; COMMIT');
	return;
}

$node->set('monitor_enabled', 'off');
foreach my $owner (@owners)
{
	$node->safe_psql('postgres', "CREATE ROLE $owner NOLOGIN");
	make_table($owner, $owner);
}
my $keeper = $node->close_gate;
$node->set('monitor_enabled', 'on');
wait_at_gate(1, 'by default there is one worker at a time');
open_gate($keeper, 1, 'also while all owners are served');

$keeper = $node->close_gate;
fill();
wait_at_gate(1, 'one worker waits');
$node->set('max_workers', 4);
wait_at_gate(4, 'a reload adds others during the pass, each for another owner');
open_gate($keeper, 4, 'there are never more than four of them');

# An owner with several tables has all workers if nobody else waits.
make_table('owner_1', 'second');
make_table('owner_1', 'third');
$node->empties('postgres', $_, "rows of $_ are deleted") foreach 'second', 'third';
$node->safe_psql('postgres', 'TRUNCATE seen');
$node->set('max_workers', 2);
$keeper = $node->close_gate;
$node->safe_psql('postgres',
	q{BEGIN; INSERT INTO owner_1 VALUES ('2000-01-01'); INSERT INTO second VALUES ('2000-01-01'); INSERT INTO third VALUES ('2000-01-01'); COMMIT});
$node->becomes('postgres', "SELECT count(*) = 2 AND count(DISTINCT usename) = 1 AND count(DISTINCT query) = 2 $at_gate",
	'two workers share the tables of one owner');
$node->safe_psql('postgres', q{INSERT INTO owner_2 VALUES ('2000-01-01')});
open_gate($keeper, 2, 'there are never more than two of them');
$node->empties('postgres', $_, "rows of $_ are deleted") foreach 'second', 'third';
is( $node->safe_psql('postgres', q{SELECT sum(deleted_documents) FROM ttl_index.index_stats}),
	2 * 5 * 50 + 2 * 50 + 4,
	'each row is counted once');

# run_pass() keeps to it as well.  A session that ends takes its processes with it.
$node->set('monitor_enabled', 'off');
$node->wait_for_no_worker;
foreach my $end ('pg_cancel_backend', 'pg_terminate_backend')
{
	$keeper = $node->close_gate;
	fill();
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begins/, "\\echo begins\nCALL ttl_index.run_pass();\n");
	wait_at_gate(2, 'a session has as many');
	$node->safe_psql('postgres', "SELECT $end(pid) FROM pg_stat_activity WHERE query ~ '^CALL'");
	$node->wait_for_no_worker;
	pass("behind $end() there is no worker");
	$keeper->quit;
	eval { $session->quit };
	is($node->safe_psql('postgres', 'SELECT count(*) FROM seen'), 0, 'no batch was committed');
	$node->safe_psql('postgres', join('; ', map { "TRUNCATE $_" } @owners));
}
$node->stop;

# Without a slot, and without preload
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\nmax_worker_processes = 0\n");
$node->start;
my ($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nCALL ttl_index.run_pass()", on_error_stop => 0);
like($stderr, qr/ERROR:  53000: no background worker slot is free for ttl_index\nHINT:  .*max_worker_processes/,
	'without a slot run_pass() raises an error, whose hint names the setting');
$node->stop;

# One slot is enough, also where two processes may run, and one takes longer than slots are waited for.
$node->append_conf('postgresql.conf', "max_worker_processes = 1\nmax_logical_replication_workers = 0\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(11); RETURN NULL; END';
CREATE TRIGGER slow BEFORE DELETE ON owner_1 EXECUTE FUNCTION slow()});
$node->safe_psql('postgres', "INSERT INTO $_ VALUES ('2000-01-01')") foreach @owners;
(undef, undef, $stderr) = $node->psql('postgres', 'CALL ttl_index.run_pass()');
like($stderr, qr/^psql:<stdin>:1: NOTICE:  \d+ TTL indexes visited, 5 rows deleted$/, 'one slot is enough, without preload');
$node->stop;
done_testing();
