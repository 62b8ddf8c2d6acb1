# Copyright (c) 2026, ttl_index contributors

# Each node deletes from its own shards, whatever becomes of the others, and from none of
# which it is not sure.

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

sub all_make_passes
{
	$_->wait_for_passes(2) foreach @_ ? @_ : $cluster->nodes;
	return;
}

# The states of the indexes of the shards of a table on a node.
sub states
{
	my ($node, $table) = @_;

	return $cluster->on_node($node, qq{
SELECT string_agg(DISTINCT state, ' ') FROM ttl_index.indexes WHERE relid::regclass::text ~ '^${table}_\\d{6}\$'});
}

# How many rows of a table are in shards of a worker.
sub rows_on
{
	my ($node, $table, $condition) = @_;
	my $port = $node->port;

	return $cluster->sql(qq{
SELECT coalesce(sum(result::int), 0) FROM run_command_on_shards('$table', \$\$SELECT count(*) FROM %s WHERE $condition\$\$)
WHERE shardid IN (SELECT shardid FROM citus_shards WHERE nodeport = $port)});
}

#
# All kinds of tables
#

$cluster->sql(
	q{
CREATE TABLE event (id int, at timestamptz);
CREATE INDEX event_ttl ON event (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO event SELECT g, '2100-01-01' FROM generate_series(1, 100) AS g;
SELECT create_distributed_table('event', 'id', shard_count => 4);
CREATE TABLE one (id int, at timestamptz);
SELECT create_distributed_table('one', NULL);
SELECT ttl_index.create_index('one', 'at', 3600);
CREATE TABLE managed (id int, at timestamptz);
SELECT citus_add_local_table_to_metadata('managed');
SELECT ttl_index.create_index('managed', 'at', 3600);
SET citus.enable_schema_based_sharding = on;
CREATE SCHEMA tenant;
CREATE TABLE tenant.event (id int, at timestamptz);
SELECT ttl_index.create_index('tenant.event', 'at', 3600);
CREATE TABLE plain (id int, at timestamptz);
SELECT ttl_index.create_index('plain', 'at', 3600);
});
my @tables = ('event', 'one', 'managed', 'tenant.event', 'plain');
foreach my $table (@tables)
{
	$cluster->sql("INSERT INTO $table SELECT g, '2001-01-01' FROM generate_series(1, 100) AS g");
	$coordinator->empties('postgres', "$table WHERE at < '2010-01-01'", "rows of $table expire");
}
is($cluster->sql('SELECT count(*) FROM event'), '100', 'those that are not due stay');

#
# What has copies
#

$coordinator->set('monitor_enabled', 'off');
$coordinator->wait_for_no_worker;
$cluster->sql(
	q{
CREATE TABLE name (id int PRIMARY KEY, at timestamptz);
CREATE INDEX name_ttl ON name (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO name SELECT g, '2100-01-01' FROM generate_series(1, 100) AS g;
SELECT create_reference_table('name');
INSERT INTO name SELECT g, '2001-01-01' FROM generate_series(101, 200) AS g;
SET citus.shard_replication_factor = 2;
CREATE TABLE twice (id int, at timestamptz);
CREATE INDEX twice_ttl ON twice (at) WHERE ttl_index.expire_after_seconds(3600);
SELECT create_distributed_table('twice', 'id', shard_count => 4, colocate_with => 'none');
INSERT INTO twice SELECT g, '2001-01-01' FROM generate_series(1, 100) AS g;
});
all_make_passes($worker1, $worker2);
foreach my $table ('name', 'twice')
{
	is($cluster->sql("SELECT count(*) FROM $table WHERE at < '2010-01-01'"), '100', "no node deletes from its copy of $table");
}
is( $cluster->sql(q{SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_placements('name', 'SELECT count(*) FROM %s')}),
	'200', 'they are in all copies');

my $worker3 = $cluster->add_server('worker3', "fsync = off\n");
$cluster->sql(sprintf q{SELECT citus_add_node('%s', %d); SELECT replicate_reference_tables('block_writes')},
	$worker3->host, $worker3->port);
all_make_passes($worker1, $worker2, $worker3);
is( $cluster->sql(q{SELECT count(*) || ' ' || string_agg(DISTINCT result, ' ') FROM run_command_on_placements('name', 'SELECT count(*) FROM %s')}),
	'4 200', 'also in those of a node that is new');
$coordinator->set('monitor_enabled', 'on');
$coordinator->empties('postgres', "$_ WHERE at < '2010-01-01'", "the coordinator deletes from all copies of $_")
  foreach 'name', 'twice';

#
# Options
#

$coordinator->empties('postgres', q{event WHERE at < '2010-01-01'}, 'all is as it was');
my $shard = $cluster->on_node($worker1, q{SELECT min(oid::regclass::text) FROM pg_class WHERE relname ~ '^event_\d{6}$'});
my ($index) = map { s/event/event_ttl/r } $shard;
# as if a node had not been told: the shell there has the option still
$cluster->on_node($worker1, qq{
DROP INDEX $index; CREATE INDEX $index ON $shard (at) WHERE ttl_index.expire_after_seconds(5)});
is(states($worker1, 'event'), 'active option_differs', 'a shard that has another option has a state');
$cluster->sql(q{INSERT INTO event SELECT g, '2001-01-01' FROM generate_series(1, 100) AS g});
all_make_passes();
is( rows_on($worker1, 'event', q{at < '2010-01-01'}),
	$cluster->on_node($worker1, "SELECT count(*) FROM $shard WHERE at < '2010-01-01'"),
	'and keeps its rows, which the others do not');
isnt(rows_on($worker1, 'event', q{at < '2010-01-01'}), '0', 'there are some');
is(rows_on($worker2, 'event', q{at < '2010-01-01'}), '0', 'on the other node there are none');
$cluster->sql(q{SELECT ttl_index.coll_mod_index('event_ttl', 7200)});
$coordinator->empties('postgres', q{event WHERE at < '2010-01-01'}, 'until it is set again on all nodes');

#
# A node that is down, and one that is cut off
#

$worker2->stop('immediate');
$cluster->on_node($worker1, qq{INSERT INTO $shard VALUES (0, '2001-01-01')});
$worker1->empties('postgres', "$shard WHERE at < '2010-01-01'", 'rows expire while another node is down');
$worker2->start;
$coordinator->poll_query_until('postgres', q{SELECT count(*) > 0 FROM event}) or die;
$cluster->sql(q{INSERT INTO event SELECT g, '2001-01-01' FROM generate_series(1, 100) AS g});
$coordinator->empties('postgres', q{event WHERE at < '2010-01-01'}, 'and there when it is back');

$cluster->sql(sprintf q{SELECT stop_metadata_sync_to_node('%s', %d)}, $worker1->host, $worker1->port);
is(states($worker1, 'event'), 'shard_elsewhere', 'a node that is told nothing of its cluster is sure of no shard');
$cluster->on_node($worker1, qq{INSERT INTO $shard VALUES (0, '2001-01-01')});
all_make_passes($worker1);
is($cluster->on_node($worker1, "SELECT count(*) FROM $shard WHERE at < '2010-01-01'"), '1', 'and deletes nothing');
$cluster->sql(sprintf q{SELECT start_metadata_sync_to_node('%s', %d)}, $worker1->host, $worker1->port);
$coordinator->empties('postgres', q{event WHERE at < '2010-01-01'}, 'until it is told again');
is($cluster->sql('SELECT count(*) FROM event'), '100', 'those that are not due are still there');
$_->has_not_crashed($_->name . ' has not crashed') foreach $cluster->nodes;

done_testing();
