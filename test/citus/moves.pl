# Copyright (c) 2026, ttl_index contributors

# While Citus moves, splits and rebalances shards, the monitors of all nodes delete what
# is due, and sessions refresh rows just before that: what was refreshed stays, everything
# else goes, and no row is left without the one that it references.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use CitusCluster;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $conf = "fsync = off\nautovacuum = off\n";
my $cluster = CitusCluster->running(2, $conf);
my $coordinator = $cluster->coordinator;
my $batches = $ENV{CITUS_BATCHES} || 12;
my $rows = 200;
my $last_id = 0;
my %refreshed;

$cluster->sql(
	q{
CREATE TABLE session (id int PRIMARY KEY, at timestamptz NOT NULL, n int);
CREATE TABLE event (session int REFERENCES session ON DELETE CASCADE, n int, PRIMARY KEY (session, n));
SELECT create_distributed_table('session', 'id', shard_count => 4);
SELECT create_distributed_table('event', 'session', colocate_with => 'session');
CREATE INDEX session_ttl ON session (at) WHERE ttl_index.expire_after_seconds(3600);
});

# The statements of a session: rows that are due from the beginning, with others that
# reference them, each of which is refreshed later if it is still there.
sub statements
{
	my $sql = '';

	foreach (1 .. $batches)
	{
		my ($first, $last) = ($last_id + 1, $last_id + $rows);

		$sql .= qq{
BEGIN;
INSERT INTO session SELECT g, '2001-01-01', 0 FROM generate_series($first, $last) AS g;
INSERT INTO event SELECT g, n FROM generate_series($first, $last) AS g, generate_series(1, 2) AS n;
COMMIT;
};
		$sql .= "UPDATE session SET at = '2100-01-01' WHERE id = $_ RETURNING id;\n"
		  foreach $first .. $last;
		$last_id = $last;
	}
	return $sql;
}

sub start_writer
{
	my ($out, $err) = ('', '');
	my $file = PostgreSQL::Test::Utils::tempdir() . '/statements';
	append_to_file($file, statements());
	my $run = IPC::Run::start(
		[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $coordinator->connstr('postgres'), '-f', $file ],
		'<', \undef, '>', \$out, '2>', \$err);

	return { run => $run, out => \$out, err => \$err };
}

# Does something again and again while two sessions write, and looks at what is left.  The
# work is told how often it was called, which is between two numbers.
sub under_load
{
	my ($name, $least, $most, $work) = @_;
	my @writers = (start_writer(), start_writer());
	my $done = 0;
	my $failed = 0;

	while (!$failed
		&& ($done < $least || ($done < $most && grep { $_->{run}->pumpable } @writers)))
	{
		my $error = $cluster->error($work->($done++));

		if ($error =~ /ERROR|FATAL/)
		{
			diag($error);
			$failed++;
		}
		foreach my $writer (grep { $_->{run}->pumpable } @writers)
		{
			$writer->{run}->pump_nb;
		}
	}
	foreach my $writer (@writers)
	{
		ok($writer->{run}->finish, "$name: all is written") or diag(${ $writer->{err} });
		$refreshed{$_} = 1 foreach split /\n/, ${ $writer->{out} };
	}
	is($failed, 0, "$name: nothing fails");
	look($name);
	note("$name: $done times, " . keys(%refreshed) . " of $last_id rows were refreshed");
	return;
}

sub look
{
	my ($name) = @_;

	$coordinator->empties('postgres', q{session WHERE at < '2100-01-01'},
		"$name: what was not refreshed expires");
	my %there = map { $_ => 1 } split /\n/, $cluster->sql('SELECT id FROM session');
	is(scalar(grep { !$there{$_} } keys %refreshed),
		0, "$name: nothing that was refreshed is lost");
	is( $cluster->sql(
			'SELECT count(*) FROM event LEFT JOIN session ON id = event.session WHERE id IS NULL'),
		'0',
		"$name: nothing is left without what it references");
	is( $cluster->sql('SELECT count(*) FROM event'),
		2 * keys(%refreshed),
		"$name: nothing else that references it is lost");
	return;
}

# The shards of a table, each with its node and with the other worker.
sub shards_of
{
	my ($table) = @_;
	my %workers = map { $_->port => $_ } $cluster->workers;

	return map {
		my ($shard, $port) = split /\|/;
		{
			id => $shard,
			from => $workers{$port},
			to => (grep { $_->port != $port } $cluster->workers)[0]
		}
	} split /\n/, $cluster->sql(
		qq{SELECT shardid, nodeport FROM citus_shards WHERE table_name = '$table'::regclass ORDER BY shardid});
}

# The statement that moves a shard, and those that go with it, to the other worker.
sub move
{
	my ($mode, $shard) = @_;

	return sprintf q{SELECT citus_move_shard_placement(%d, '%s', %d, '%s', %d, '%s')},
	  $shard->{id}, (map { $_->host, $_->port } $shard->{from}, $shard->{to}), $mode;
}

my $moves = $ENV{CITUS_MOVES} || 6;
foreach my $mode ('force_logical', 'block_writes')
{
	under_load(
		$mode, $moves, 100,
		sub {
			my @shards = shards_of('session');
			return move($mode, $shards[ $_[0] % @shards ]);
		});
}

# Each split makes two of the widest shard, on both workers.  Without writes being blocked
# Citus 13.2 cannot split a table that is updated, with or without a TTL index.
sub split_shard
{
	my ($shard, $middle) = split /\|/, $cluster->sql(
		q{
SELECT shardid, (shardminvalue::bigint + shardmaxvalue::bigint) / 2 FROM pg_dist_shard
WHERE logicalrelid = 'session'::regclass ORDER BY shardmaxvalue::bigint - shardminvalue::bigint DESC, shardid LIMIT 1});

	return qq{
SELECT citus_split_shard_by_split_points($shard, ARRAY['$middle'],
	(SELECT array_agg(nodeid ORDER BY nodeid) FROM pg_dist_node WHERE groupid > 0), 'block_writes')};
}

under_load('split', 2, 2, \&split_shard);

# A worker more, and then one less.
my $third = $cluster->add_server('worker3', $conf);
my ($host, $port) = ($third->host, $third->port);
under_load(
	'a node comes and goes',
	2, 2,
	sub {
		return $_[0] % 2 == 0
		  ? "SELECT citus_add_node('$host', $port); SELECT rebalance_table_shards('session', shard_transfer_mode => 'force_logical')"
		  : "SELECT citus_drain_node('$host', $port, shard_transfer_mode => 'force_logical'); SELECT citus_remove_node('$host', $port)";
	});

# A move copies one table after the other.  Between two of them nothing may go, or the rows
# of the first would be there on the other node without those that reference them.
$_->set('monitor_enabled', 'off') foreach $cluster->nodes;
$_->wait_for_no_worker foreach $cluster->nodes;
$cluster->sql(
	q{
CREATE TABLE parent (id int PRIMARY KEY, at timestamptz NOT NULL);
CREATE TABLE gate (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY REFERENCES parent ON DELETE CASCADE);
SELECT create_distributed_table('parent', 'id', shard_count => 1, colocate_with => 'none');
SELECT create_distributed_table('gate', 'id', colocate_with => 'parent');
SELECT create_distributed_table('child', 'id', colocate_with => 'parent');
CREATE INDEX parent_ttl ON parent (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO parent SELECT g, '2001-01-01' FROM generate_series(1, 100) AS g;
INSERT INTO child SELECT g FROM generate_series(1, 100) AS g;
});
my ($parent, $gate, $child) = map { (shards_of($_))[0] } 'parent', 'gate', 'child';
my $holder = $gate->{from}->background_psql('postgres');
$holder->query_safe("BEGIN; SET LOCAL citus.enable_manual_changes_to_shards = on; LOCK TABLE gate_$gate->{id}");
my $mover = $coordinator->background_psql('postgres');
$mover->query_until(
	qr/begun/, q{
SET citus.max_adaptive_executor_pool_size = 1;
SET citus.check_available_space_before_move = off;
\echo begun
} . move('block_writes', $parent) . ";\n");
$gate->{from}->poll_query_until('postgres',
	"SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'gate_$gate->{id}'::regclass AND NOT granted)")
  or die 'the move does not come to the second table';
is( $cluster->on_node(
		$parent->{to},
		"SELECT (SELECT count(*) FROM parent_$parent->{id}), (SELECT count(*) FROM child_$child->{id})"),
	'100|0',
	'a move has copied the first of three tables');
$parent->{from}->safe_psql('postgres', 'CALL ttl_index.run_pass()');
$holder->query_safe('COMMIT');
$holder->quit;
$mover->quit;
is((shards_of('parent'))[0]->{from}->port, $parent->{to}->port, 'it comes to its end');
is( $cluster->sql('SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM child)'),
	'100|100',
	'a pass meanwhile takes nothing');
$parent->{to}->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is($cluster->sql('SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM child)'),
	'0|0', 'one behind it does');

is( join(' ',
		map { $_->safe_psql('postgres', 'SELECT errors FROM ttl_index.stats') } $cluster->nodes),
	'0 0 0 0',
	'no node has met an error');
$_->has_not_crashed($_->name . ' has not crashed') foreach $cluster->nodes;

done_testing();
