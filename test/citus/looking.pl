# Copyright (c) 2026, ttl_index contributors

# What the views and functions for those who look show in a cluster of Citus: shards with
# their table on each node, and sums of all nodes, also while one of them is down.

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

$cluster->sql(
	q{
CREATE TABLE events (id int, at timestamptz);
SELECT create_distributed_table('events', 'id', shard_count => 4);
INSERT INTO events SELECT i, '2001-01-01' FROM generate_series(1, 1000) i;
INSERT INTO events SELECT i, '2100-01-01' FROM generate_series(1, 500) i;
CREATE TABLE here (at timestamptz);
CREATE INDEX here_ttl ON here (at) WHERE ttl_index.expire_after_seconds(0)});

# The messages of statements that succeed on the coordinator.
sub messages
{
	my ($sql) = @_;
	my ($stdout, $stderr) = ('', '');

	$cluster->coordinator->psql('postgres', $sql, stdout => \$stdout, stderr => \$stderr, on_error_die => 1);
	return $stderr;
}

#
# What is due
#

unlike(messages(q{SELECT ttl_index.create_index('events', 'at', 10); SELECT ttl_index.coll_mod('events', 'at', 9)}),
	qr/due at once/, 'what is due in shards is not counted at once');
is($cluster->sql(q{SELECT ttl_index.due_count('events_at_ttl'), ttl_index.oldest_due('events_at_ttl') = '2001-01-01',
	extract(year FROM now() - ttl_index.lag('events_at_ttl'))}),
	'1000|t|2001', 'due_count, oldest_due and lag are those of all shards');
is($worker1->safe_psql('postgres', q{SELECT ttl_index.due_count('events_at_ttl')}), '1000', 'also when a worker is asked');
is($cluster->sql(q{SELECT count(*), count(documents) FROM ttl_index.forecast('events_at_ttl', '1 day', 2)}),
	'3|0', 'a forecast is not known');
like($cluster->error(q{SELECT ttl_index.preview('events_at_ttl')}),
	qr/ERROR: .*the rows of index "events_at_ttl" are in shards of Citus\nHINT: /, 'a preview is refused');

#
# Shards
#

foreach my $worker ($worker1, $worker2)
{
	is($worker->safe_psql('postgres', q{
SELECT count(*), string_agg(DISTINCT logical_relid || ' ' || logical_indexrelid, ',') FROM ttl_index.indexes
WHERE logical_relid IS NOT NULL}),
		'2|events events_at_ttl', 'indexes shows shards with their table on ' . $worker->name);
	is($worker->safe_psql('postgres', q{
SELECT count(*) FROM ttl_index.index_stats
WHERE relname ~ '^events_\d+$' AND indexrelname ~ '^events_at_ttl_\d+$' AND schemaname = 'public'
AND logical_relid = 'events'::regclass AND logical_indexrelid = 'events_at_ttl'::regclass}),
		'2', 'so does index_stats');
}
is($cluster->sql(q{SELECT count(*) FROM ttl_index.indexes WHERE logical_relid IS NOT NULL}), '0',
	'a table itself is no shard');

#
# Sums
#

my $sums = q{SELECT relname, indexrelname, shards, not_active, nodes_without_answer, deleted_documents, errors
FROM ttl_index.cluster_index_stats ORDER BY 1};
my $nodes = q{SELECT string_agg(coalesce(deleted_documents::text, 'none: ' || (error IS NOT NULL)), ',' ORDER BY nodeid)
FROM ttl_index.cluster_stats};

$_->safe_psql('postgres', 'CALL ttl_index.run_pass()') foreach $cluster->nodes;
is($cluster->sql('SELECT count(*), min(at) FROM events'), '500|2100-01-01 00:00:00+00', 'the nodes have deleted what is due')
  if $cluster->sql('SHOW TimeZone') =~ /^(UTC|GMT|Etc)/;
is($cluster->sql($sums), "events|events_at_ttl|4|0|0|1000|0\nhere|here_ttl|0|0|0|0|0", 'cluster_index_stats sums over shards and nodes');
is($worker1->safe_psql('postgres', $sums), $cluster->sql($sums), 'on each node');
is($cluster->sql(q{SELECT count(*), sum(deleted_documents), sum(passes), count(error) FROM ttl_index.cluster_stats}),
	'3|1000|3|0', 'cluster_stats has a row for each node');
is($worker1->safe_psql('postgres', q{SELECT sum(deleted_documents) = (SELECT deleted_documents FROM ttl_index.stats),
	bool_and(relname ~ '^events_\d+$' AND indexrelname ~ '^events_at_ttl_\d+$') FROM ttl_index.history}),
	't|t', 'history of a worker has its shards');
is($cluster->sql(q{SELECT ttl_index.due_count('events_at_ttl'), ttl_index.oldest_due('events_at_ttl') IS NULL, ttl_index.lag('events_at_ttl')}),
	'0|t|00:00:00', 'nothing is due');

# A shard that moves leaves its history behind.
my $history = q{SELECT relname, indexrelname, sum(deleted_documents), sum(errors) FROM ttl_index.cluster_history GROUP BY 1, 2};
is($cluster->sql($history), 'events|events_at_ttl|1000|0', 'cluster_history sums over shards and nodes');
my $shard = $cluster->sql(q{SELECT min(shardid) FROM pg_dist_shard});
foreach my $move ([ $worker1, $worker2 ], [ $worker2, $worker1 ])
{
	my ($from, $to) = @$move;

	($from, $to) = ($to, $from) if $cluster->sql(qq{SELECT nodeport FROM citus_shards WHERE shardid = $shard}) != $from->port;
	$cluster->sql(sprintf q{SELECT citus_move_shard_placement(%d, '%s', %d, '%s', %d, 'block_writes')},
		$shard, $from->host, $from->port, $to->host, $to->port);
	$cluster->sql('CALL citus_cleanup_orphaned_resources()');
	is($cluster->sql($history), 'events|events_at_ttl|1000|0', 'also of one that moves');
}

# What exporters of metrics ask.
my %query = (
	'sql_exporter' => qr/- name: "ttl_index_not_active".*?query: \|\n(.*?)\n\n/s,
	'postgres_exporter' => qr/^ttl_index_not_active:\n  query: \|\n(.*?)^  metrics:/ms);
$cluster->sql(q{SELECT ttl_index.pause_index('events_at_ttl')});
foreach my $exporter (sort keys %query)
{
	my ($query) = slurp_file("monitoring/$exporter.yml") =~ $query{$exporter};

	is($worker1->safe_psql('postgres', "SELECT count(*) FROM ($query) AS q WHERE relname ~ '^events_[0-9]+\$' AND state = 'paused'"),
		'2', "$exporter finds shards that are not active");
}
$cluster->sql(q{SELECT ttl_index.unpause_index('events_at_ttl')});

$cluster->sql(q{CREATE ROLE reader LOGIN});
is($cluster->coordinator->safe_psql('postgres', $sums, extra_params => [ '-U', 'reader' ]), $cluster->sql($sums),
	'anybody may read the sums');
is($cluster->coordinator->safe_psql('postgres', q{SELECT ttl_index.lag('events_at_ttl') IS NULL}, extra_params => [ '-U', 'reader' ]),
	't', 'but not the lag');

# The text of the report of the coordinator.
sub report
{
	my ($out, $err) = run_command([
		$cluster->coordinator->config_data('--bindir') . '/ttl_index_report', '-d',
		$cluster->coordinator->connstr('postgres') ]);

	is($err, '', 'the report has nothing to say on standard error');
	return $out =~ s/<[^>]*>/ /gr;
}

my ($host, $port) = ($worker2->host, $worker2->port);
my $report = report();
like($report, qr/Deleted in 24 hours\s+1,000\s/, 'the report of the coordinator counts what all nodes have deleted');
like($report, qr/\Q$host:$port\E\s+run_pass\s/, 'and has all nodes');

#
# A node that is down
#

my $all = $cluster->sql($nodes);
$worker2->stop('immediate');
(my $two = $all) =~ s/,\d+$/,none: true/;
is($cluster->sql($nodes), $two, 'a node that is down is shown');
like($cluster->sql($sums), qr/^events\|events_at_ttl\|2\|0\|1\|\d+\|0$/m, 'and lacks in the sums, which say so');
like($cluster->error(q{SELECT ttl_index.due_count('events_at_ttl')}),
	qr/ERROR: .*could not ask all nodes for the shards of index "events_at_ttl"\nDETAIL: .*node /, 'due_count does not count without it');
like(report(), qr/No answer from node \Q$host:$port\E\s/, 'the report says so');
like(messages(q{SELECT ttl_index.lag('events_at_ttl') IS NULL}), qr/NOTICE: .*could not ask all nodes/, 'the lag is not known');
$worker2->start;
is($cluster->sql($nodes), $all, 'it is back');

#
# A trigger
#

like($cluster->error(q{SELECT ttl_index.track_last_modified('events')}),
	qr/triggers are not supported/, 'Citus refuses the trigger of track_last_modified');

# Without a cluster, the views show this server.
$cluster->coordinator->safe_psql('postgres', 'CREATE DATABASE alone');
$cluster->coordinator->safe_psql('alone', 'CREATE EXTENSION ttl_index; CREATE TABLE t (at timestamptz); CREATE INDEX t_ttl ON t (at) WHERE ttl_index.expire_after_seconds(0)');
is($cluster->coordinator->safe_psql('alone', 'SELECT nodeid, nodename, deleted_documents FROM ttl_index.cluster_stats'), '0||0', 'one server');
is($cluster->coordinator->safe_psql('alone', $sums), 't|t_ttl|0|1|0|0|0', 'and its indexes, which nobody visits');

done_testing();
