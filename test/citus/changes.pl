# Copyright (c) 2026, ttl_index contributors

# What coll_mod and the others change at the coordinator of Citus, they change on all nodes,
# in shells and shards alike, or nowhere.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use CitusCluster;
use TtlNode;

my $cluster = CitusCluster->running(2, "ttl_index.monitor_enabled = off\n");
my ($worker1, $worker2) = $cluster->workers;

# Three shells and four shards.
sub all_are
{
	my ($options, $name, $index, $count) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is($cluster->options($index || 'events_ttl'), ($count || 7) . " $options", $name);
}

sub seconds
{
	my ($seconds) = @_;

	return "ttl_index.expire_after_seconds($seconds)";
}

$cluster->sql(
	q{
CREATE TABLE events (id int, at timestamptz);
SELECT create_distributed_table('events', 'id', shard_count => 4);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(10000)});
all_are(seconds(10000), 'CREATE INDEX reaches all shells and shards');

#
# Each of the functions
#

is($cluster->sql(q{SELECT * FROM ttl_index.coll_mod('events', 'at', 100000)}),
	'10000|100000', 'coll_mod');
all_are(seconds(100000), 'coll_mod changes all of them');
$cluster->sql(q{SELECT ttl_index.coll_mod_index('events_ttl', 90000)});
all_are(seconds(90000), 'so does coll_mod_index');
$cluster->sql(q{SELECT ttl_index.pause_index('events_ttl')});
all_are('(' . seconds(90000) . ' AND ttl_index.paused())', 'and pause_index');
$cluster->sql(q{SELECT ttl_index.coll_mod('events', 'at', 80000)});
all_are('(' . seconds(80000) . ' AND ttl_index.paused())', 'a paused one stays paused');
$cluster->sql(q{SELECT ttl_index.unpause_index('events_ttl')});
all_are(seconds(80000), 'and unpause_index');
$cluster->sql(q{SELECT ttl_index.remove_ttl('events_ttl')});
all_are('none', 'and remove_ttl');
$cluster->sql(q{SELECT ttl_index.coll_mod_index('events_ttl', 70000)});
all_are(seconds(70000), 'a plain index becomes a TTL index');
$cluster->sql(q{SELECT ttl_index.create_index('events', 'at', 60000, or_change => true)});
all_are(seconds(60000), 'create_index with or_change changes all of them');
$cluster->sql(q{SELECT ttl_index.coll_mod_index('events_ttl', 70000)});

#
# All or nothing
#

$cluster->sql(q{BEGIN; SELECT ttl_index.coll_mod('events', 'at', 1); ROLLBACK});
all_are(seconds(70000), 'ROLLBACK undoes it everywhere');
$cluster->sql(
	q{BEGIN; SAVEPOINT s; SELECT ttl_index.coll_mod('events', 'at', 1);
ROLLBACK TO s; SELECT ttl_index.pause_index('events_ttl'); SELECT ttl_index.unpause_index('events_ttl'); COMMIT});
all_are(seconds(70000), 'so does ROLLBACK TO SAVEPOINT');
$cluster->sql(
	q{BEGIN; SELECT ttl_index.coll_mod('events', 'at', 1); SELECT ttl_index.coll_mod('events', 'at', 71000); COMMIT});
all_are(seconds(71000), 'the last change of a transaction counts');

$worker2->safe_psql('postgres', 'ALTER EVENT TRIGGER ttl_index_before_alter_index DISABLE');
like($cluster->error(q{SELECT ttl_index.coll_mod('events', 'at', 1)}),
	qr/ERROR: .*unrecognized parameter namespace "ttl_index"/,
	'a node whose event trigger is disabled refuses it');
all_are(seconds(71000), 'and nothing changes');
$worker2->safe_psql('postgres', 'ALTER EVENT TRIGGER ttl_index_before_alter_index ENABLE');

$worker2->stop('fast');
like($cluster->error(q{SELECT ttl_index.coll_mod('events', 'at', 1)}),
	qr/ERROR: /, 'a worker that is down refuses it');
like($cluster->error(q{SELECT ttl_index.remove_all_ttl()}),
	qr/ERROR: /, 'and removal');
$worker2->start;
all_are(seconds(71000), 'and nothing changes');

like(
	$cluster->error(
		q{SET citus.enable_ddl_propagation = off; SELECT ttl_index.coll_mod('events', 'at', 1)}),
	qr/cannot change index "events_ttl" on this node alone/,
	'a session that carries no DDL to the nodes is refused');

#
# Where else it is refused
#

my ($stdout, $stderr);
$worker1->psql('postgres', q{SELECT ttl_index.coll_mod('events', 'at', 1)}, stderr => \$stderr);
like($stderr, qr/ERROR: .*not allowed on this node.*coordinator/s, 'a worker refuses to change its shell');
my $shard = $cluster->on_node($worker1, q{SELECT min(oid::regclass::text) FROM pg_class WHERE relname ~ '^events_ttl_\d+$'});
$worker1->psql('postgres', qq{SELECT ttl_index.coll_mod_index('$shard', 1)}, stderr => \$stderr);
like($stderr, qr/ERROR: .*index "$shard" belongs to a shard of a table of Citus\nHINT: .*on the coordinator/s,
	'and a shard');
like($cluster->error(q{ALTER INDEX events_ttl SET (ttl_index.no_such = 1)}),
	qr/unrecognized parameter namespace "ttl_index"/, 'an unknown parameter is refused');
$cluster->sql(q{CREATE TABLE plain (at timestamptz); CREATE INDEX plain_ttl ON plain (at) WHERE ttl_index.expire_after_seconds(5)});
like($cluster->error(q{ALTER INDEX plain_ttl SET (ttl_index.option = 'ttl_index.expire_after_seconds(1)')}),
	qr/unrecognized parameter namespace "ttl_index"/, 'tables that are not of Citus know no parameters');
all_are(seconds(71000), 'and nothing changes');

#
# Owners
#

$cluster->sql(q{
CREATE ROLE owner LOGIN; CREATE ROLE other LOGIN;
GRANT CREATE ON SCHEMA public TO owner;
ALTER TABLE events OWNER TO owner});
like($cluster->error(q{SET ROLE other; SELECT ttl_index.coll_mod('events', 'at', 1)}),
	qr/ERROR: .*must be owner of/, 'others may not change it');
$cluster->coordinator->safe_psql('postgres', q{SELECT ttl_index.coll_mod('events', 'at', 72000)},
	extra_params => [ '-U', 'owner' ]);
all_are(seconds(72000), 'its owner may');

#
# Other tables
#

$cluster->sql(
	q{
CREATE TABLE booking (id int, day date);
SELECT create_distributed_table('booking', 'id', shard_count => 4);
CREATE INDEX a_name_that_is_as_long_as_it_can_be_so_that_the_shards_are_cut ON booking (day)
	WHERE ttl_index.expire_after_seconds(86400) AND ttl_index.time_zone('Europe/Paris');
SELECT ttl_index.coll_mod('booking', 'day', 172800, time_zone => 'America/Argentina/Buenos_Aires')});
all_are(
	"($_)",
	'a long name, and a time zone',
	'a_name_that_is_as_long_as_it_can_be_so_.*')
  foreach seconds(172800) . " AND ttl_index.time_zone('America/Argentina/Buenos_Aires'::text)";

$cluster->sql(
	q{
CREATE TABLE parted (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2100-01-01') TO ('2101-01-01');
SELECT create_distributed_table('parted', 'id', shard_count => 4);
CREATE INDEX parted_ttl ON parted (at) WHERE ttl_index.expire_after_seconds(10000);
SELECT ttl_index.coll_mod('parted', 'at', 100000)});
all_are(seconds(100000), 'a partitioned table', 'parted_ttl');
all_are(seconds(100000), 'and its partitions', 'parted_[12]_at_idx', 14);
$cluster->sql(q{SELECT ttl_index.remove_ttl('parted_ttl')});
all_are('none', 'a partitioned table becomes plain', 'parted_ttl');
all_are('none', 'and its partitions', 'parted_[12]_at_idx', 14);

$cluster->sql(
	q{
CREATE TABLE pair (id int, at timestamptz, doc jsonb);
SELECT create_distributed_table('pair', 'id', shard_count => 4);
SELECT ttl_index.create_index('pair', 'at', 10000, document_ttl_field => 'doc.ttl');
SELECT ttl_index.pause_index('pair_at_ttl')});
like($cluster->options('pair_at_ttl'), qr/^7 [^;]*paused\(\)\)$/, 'of a pair, the main index is paused');
like($cluster->options('pair_at_.*own_ttl|pair_.*doc.*'), qr/^7 [^;]*paused\(\)\)$/, 'and the other one');

# Rows of shards cannot move to a table that has shards elsewhere, or none.
$cluster->sql('CREATE TABLE archive (id int, at timestamptz)');
like($cluster->error(q{SELECT ttl_index.coll_mod('events', 'at', 1, archive_to => 'archive')}),
	qr/ERROR: .*those of a table of Citus can only be deleted\nHINT:  Leave archive_to out\./, 'an archive is refused');
$cluster->sql(
	q{
CREATE TABLE moved (id int, at timestamptz);
CREATE INDEX moved_ttl ON moved (at) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.archive_to('archive')});
like($cluster->error(q{SELECT create_distributed_table('moved', 'id')}), qr/ERROR: /, 'a table with one is not distributed');
$cluster->sql(
	q{
SELECT ttl_index.coll_mod_index('moved_ttl', 1, archive_to => '-');
SELECT create_distributed_table('moved', 'id', shard_count => 4)});
all_are(seconds(1), 'once it has none, it is', 'moved_ttl');
$cluster->sql('DROP TABLE moved');
all_are(seconds(72000), 'and nothing changes');

# A shard takes its option along.
my ($shardid, $from, $to) = split /\|/, $cluster->sql(
	q{SELECT shardid, n.nodeid, t.nodeid FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node AS n USING (groupid)
CROSS JOIN (SELECT nodeid FROM pg_dist_node WHERE groupid = 1) AS t
WHERE logicalrelid = 'events'::regclass AND groupid = 2 LIMIT 1});
$cluster->sql(qq{SELECT citus_move_shard_placement($shardid, f.nodename, f.nodeport, t.nodename, t.nodeport, 'block_writes')
FROM pg_dist_node AS f, pg_dist_node AS t WHERE f.nodeid = $from AND t.nodeid = $to});
$cluster->sql('CALL citus_cleanup_orphaned_resources()');
all_are(seconds(72000), 'a shard that was moved has the same option');
$cluster->sql(q{SELECT ttl_index.coll_mod('events', 'at', 73000)});
all_are(seconds(73000), 'and follows changes');

# The coordinator can have shards of its own.
$cluster->sql(
	q{
SELECT citus_set_node_property(nodename, nodeport, 'shouldhaveshards', true) FROM pg_dist_node WHERE groupid = 0;
CREATE TABLE everywhere (id int, at timestamptz);
CREATE INDEX everywhere_ttl ON everywhere (at) WHERE ttl_index.expire_after_seconds(1);
SELECT create_distributed_table('everywhere', 'id', shard_count => 6);
BEGIN;
INSERT INTO everywhere SELECT i, '2100-01-01' FROM generate_series(1, 100) i;
SELECT ttl_index.coll_mod('everywhere', 'at', 5);
SELECT ttl_index.pause_index('everywhere_ttl');
COMMIT});
is($cluster->sql(q{SELECT count(*) FROM pg_dist_placement WHERE groupid = 0 AND shardid IN
	(SELECT shardid FROM pg_dist_shard WHERE logicalrelid = 'everywhere'::regclass)}), '2', 'the coordinator has shards');
all_are('(' . seconds(5) . ' AND ttl_index.paused())', 'which change, too', 'everywhere_ttl', 9);

# So it has that of a local table that Citus knows of.
$cluster->sql(
	q{
CREATE TABLE nearby (id int PRIMARY KEY, at timestamptz);
CREATE INDEX nearby_ttl ON nearby (at) WHERE ttl_index.expire_after_seconds(1);
SELECT citus_add_local_table_to_metadata('nearby');
SELECT ttl_index.coll_mod('nearby', 'at', 6)});
all_are(seconds(6), 'a local table', 'nearby_ttl', 4);

# Copies are on all nodes; what got a TTL index before cannot be changed, but be ended.
$cluster->sql(
	q{
CREATE TABLE copied (id int, at timestamptz);
CREATE INDEX copied_ttl ON copied (at) WHERE ttl_index.expire_after_seconds(1);
SELECT create_reference_table('copied')});
$cluster->sql(q{SELECT ttl_index.coll_mod('copied', 'at', 6)});
all_are(seconds(6), 'a reference table is changed in all copies', 'copied_ttl', 6);
$cluster->sql(q{SELECT ttl_index.pause_index('copied_ttl')});
all_are('(' . seconds(6) . ' AND ttl_index.paused())', 'it can be paused', 'copied_ttl', 6);
$cluster->sql(q{SELECT ttl_index.remove_ttl('copied_ttl')});
all_are('none', 'and made plain', 'copied_ttl', 6);

#
# Removing all, and the extension
#

is($cluster->sql('SELECT ttl_index.remove_all_ttl()'), '7', 'remove_all_ttl counts indexes, not shards');
all_are('none', 'and reaches all nodes');
$cluster->sql('DROP TABLE pair');
$cluster->sql('DROP EXTENSION ttl_index');
is($cluster->on_node($_, q{SELECT count(*) FROM pg_extension WHERE extname = 'ttl_index'}), '0',
	'the extension is gone from ' . $_->name)
  foreach $cluster->nodes;
all_are('none', 'the indexes are still there');

done_testing();
