# Copyright (c) 2026, ttl_index contributors

# The partitions of a distributed table are dropped and made at the coordinator, and
# nowhere behind the back of Citus; whoever reads a shard keeps its partition, but not those
# who use the table.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use CitusCluster;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $cluster = CitusCluster->running(2, "fsync = off\n");
my $coordinator = $cluster->coordinator;
my ($worker1, $worker2) = $cluster->workers;

$cluster->sql(
	q{
CREATE TABLE reading (at timestamptz NOT NULL, device int, n int) PARTITION BY RANGE (at);
SELECT create_distributed_table('reading', 'device', shard_count => 4);
SELECT ttl_index.create_time_series('reading', 'at', 'device', 'minutes', 86400);
});

# A partition of a day that was due long ago, with rows in all shards.
sub add_old
{
	my ($year) = @_;

	$cluster->sql(
		qq{
BEGIN;
CREATE TABLE reading_$year PARTITION OF reading FOR VALUES FROM ('$year-01-01') TO ('$year-01-02');
INSERT INTO reading SELECT '$year-01-01 12:00', g, g FROM generate_series(1, 100) AS g;
COMMIT});
	return;
}

sub rows_of
{
	my ($condition) = @_;

	return $cluster->sql("SELECT count(*) FROM reading WHERE $condition");
}

# Has each node the shards of all partitions, and no other partitions of shards?
sub in_step
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $known = q{
SELECT count(*) FROM pg_dist_placement JOIN pg_dist_shard USING (shardid)
WHERE groupid = (SELECT groupid FROM pg_dist_local_group)
	AND logicalrelid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'reading'::regclass)};
	my $there = q{
SELECT count(*) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhparent WHERE relname ~ '^reading_\d{6}$'};

	return is(
		join(' ', map { $cluster->on_node($_, $there) } $worker1, $worker2),
		join(' ', map { $_->safe_psql('postgres', $known) } $worker1, $worker2),
		$name);
}

sub all_make_passes
{
	$_->wait_for_passes(2) foreach $cluster->nodes;
	return;
}

#
# Dropping and making
#

add_old($_) foreach 2001, 2002;
$cluster->sql(
	q{
INSERT INTO reading SELECT '2000-01-01', g, g FROM generate_series(1, 100) AS g;
INSERT INTO reading SELECT now() + interval '1 hour', g, g FROM generate_series(1, 100) AS g;
INSERT INTO reading SELECT '2100-01-01', g, g FROM generate_series(1, 100) AS g;
});
$coordinator->becomes('postgres',
	q{SELECT to_regclass('reading_2001') IS NULL AND to_regclass('reading_2002') IS NULL},
	'partitions that are due are dropped');
$coordinator->empties('postgres', q{reading WHERE at < '2010-01-01'},
	'rows of the DEFAULT partition go one by one');
is(rows_of('true'), '200', 'all others are there');
in_step('the workers have the same partitions');
my $shards = $cluster->sql('SELECT last_value FROM pg_dist_shardid_seq');
all_make_passes();
is($cluster->sql('SELECT last_value FROM pg_dist_shardid_seq'), $shards, 'and nobody makes more of them');

my $made = $cluster->sql(q{SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'reading'::regclass
	ORDER BY inhrelid::regclass::text COLLATE "C" DESC LIMIT 1 OFFSET 1});
$coordinator->set('monitor_enabled', 'off');
$coordinator->wait_for_no_worker;
$cluster->sql("DROP TABLE $made");
$_->wait_for_passes(2) foreach $worker1, $worker2;
in_step('no worker makes one that is missing');
$coordinator->set('monitor_enabled', 'on');
$coordinator->becomes('postgres', "SELECT to_regclass('$made') IS NOT NULL", 'the coordinator does');
in_step('on all nodes');

#
# Moves
#

foreach my $mode ('block_writes', 'force_logical')
{
	$cluster->sql('ALTER TABLE reading REPLICA IDENTITY FULL') if $mode eq 'force_logical';
	my ($shard, $host, $port) = split /\|/, $cluster->sql(
		q{SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = 'reading'::regclass ORDER BY shardid LIMIT 1});
	my ($to) = grep { $_->port != $port } $worker1, $worker2;

	# Citus refuses a move while it drops what the one before has left
	$coordinator->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM pg_dist_cleanup)') or die;
	$cluster->sql(sprintf q{SELECT citus_move_shard_placement(%d, '%s', %d, '%s', %d, '%s')},
		$shard, $host, $port, $to->host, $to->port, $mode);
	all_make_passes();
	is(rows_of('true'), '200', "no row is lost when a shard moves, $mode");
}
add_old(2003);
$coordinator->becomes('postgres', q{SELECT to_regclass('reading_2003') IS NULL}, 'partitions go on to be dropped');

#
# Detaching
#

$cluster->sql(
	q{
CREATE TABLE kept (at timestamptz NOT NULL, device int) PARTITION BY RANGE (at);
SELECT create_distributed_table('kept', 'device', shard_count => 4);
CREATE TABLE kept_2001 PARTITION OF kept FOR VALUES FROM ('2001-01-01') TO ('2001-01-02');
CREATE TABLE kept_2100 PARTITION OF kept FOR VALUES FROM ('2100-01-01') TO ('2100-01-02');
INSERT INTO kept SELECT '2001-01-01 12:00', g FROM generate_series(1, 100) AS g;
CREATE INDEX kept_ttl ON kept (at) WHERE ttl_index.expire_after_seconds(86400) AND ttl_index.detach_expired_partitions();
});
$coordinator->becomes('postgres',
	q{SELECT count(*) = 1 FROM pg_inherits WHERE inhparent = 'kept'::regclass},
	'a partition that is due is detached');
all_make_passes();
is($cluster->sql('SELECT count(*) FROM kept_2001'), '100', 'with all its rows, which do not expire');

#
# Locks
#

my $skipped = q{SELECT sum(skipped_locked) FROM ttl_index.index_stats};
$coordinator->monitor_in('postgres', 'off');
$coordinator->wait_for_passes(2);
add_old(2004);
my $shard = $cluster->on_node($worker1, q{SELECT min(oid::regclass::text) FROM pg_class WHERE relname ~ '^reading_2004_\d{6}$'});
my $reader = $worker1->background_psql('postgres');
$reader->query_safe("BEGIN; SELECT count(*) FROM $shard");
my $before = $cluster->sql($skipped);
$coordinator->monitor_in('postgres', 'on');
$coordinator->becomes('postgres', "SELECT ($skipped) > $before",
	'who reads a shard keeps the partition, as long as bucket_lock_timeout says');
is(rows_of(q{at < '2010-01-01'}), '100', 'and all of its rows');
$reader->query_safe('COMMIT');
$reader->quit;
$coordinator->becomes('postgres', q{SELECT to_regclass('reading_2004') IS NULL}, 'later it is dropped');
in_step('on all nodes');

is( join(' ', map { $_->safe_psql('postgres', 'SELECT errors FROM ttl_index.stats') } $cluster->nodes),
	'0 0 0', 'no node has met an error');
is($worker1->safe_psql('postgres', 'SELECT deleted_buckets FROM ttl_index.stats'),
	'0', 'a worker has dropped nothing');
$_->has_not_crashed($_->name . ' has not crashed') foreach $cluster->nodes;

done_testing();
