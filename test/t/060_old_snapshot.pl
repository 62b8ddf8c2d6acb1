# Copyright (c) 2026, ttl_index contributors

# While an old snapshot keeps every version of every row, a batch costs the same
# at the end of a drain as at its beginning.  What is compared is not time but
# blocks: a drain of eight times as many batches touches eight times as many,
# where a cost that grows with what came before would make it sixty-four.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->configured(
	q{
autovacuum = off
log_statement = none
ttl_index.monitor_enabled = off
});
$node->start;

# The blocks that the scans and changes of these two tables touched, and the
# number of rows that were inserted and updated.
my $statistics = q{
SELECT sum(heap_blks_read + heap_blks_hit) FILTER (WHERE io.relname = 'counters'),
	sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) FILTER (WHERE io.relname = 'events'),
	sum(n_tup_ins) FILTER (WHERE io.relname = 'counters'),
	sum(n_tup_upd) FILTER (WHERE io.relname = 'counters'),
	sum(n_tup_del) FILTER (WHERE io.relname = 'events')
FROM pg_statio_user_tables io JOIN pg_stat_user_tables t USING (relid)};

# Each run has a database of its own, so that it does not see what others left.
my $runs = 0;

# Deletes so many rows in batches of one, with so many batches to a visit (0: all
# in one).  Returns the differences of the statistics.
sub run
{
	my ($rows, $per_visit) = @_;
	my $db = 'run_' . ++$runs;
	my $visits = $per_visit ? $rows / $per_visit : 1;
	my ($before, $after, @difference);

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql(
		$db, q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});
	$node->safe_psql($db,
		"INSERT INTO events SELECT timestamptz '2000-01-01' + i * interval '1 s' FROM generate_series(1, $rows) i"
	);

	my $old = $node->background_psql($db);
	$old->query_safe(
		'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM events');
	$before = $node->safe_psql($db, $statistics);
	$node->safe_psql(
		$db, qq{
SET ttl_index.batch_target_docs = 1;
SET ttl_index.index_delete_target_docs = $per_visit;
SET ttl_index.index_delete_target_time = 0;
SET ttl_index.sub_pass_target_time = 0;
CALL ttl_index.run_pass();
});

	# a session reports its statistics when it ends, at the latest
	$node->poll_query_until($db,
		"SELECT n_tup_del = $rows FROM pg_stat_user_tables WHERE relname = 'events'"
	) or die 'the statistics do not arrive';
	$after = $node->safe_psql($db, $statistics);
	cmp_ok($old->query_safe('SELECT count(*) FROM events'),
		'==', $rows, "$rows batches: the old snapshot sees all rows still");
	$old->query_safe('COMMIT');
	$old->quit;

	is( $node->safe_psql(
			$db, q{
SELECT (SELECT count(*) FROM events), deleted_documents, batches >= deleted_documents, visits
FROM ttl_index.index_stats}),
		"0|$rows|t|$visits",
		"rule 27: $rows batches in $visits visits are counted");
	my @before = split /\|/, $before;
	@difference = map { $_ - shift @before } split /\|/, $after;
	note "$rows batches: " . join(', ', @difference);
	return @difference;
}

foreach my $per_visit (0, 10)
{
	my $how = $per_visit ? "$per_visit batches a visit" : 'one visit';
	my @few = run(2000, $per_visit);
	my @many = run(16000, $per_visit);

	is($many[3], 0, "$how: the counters are never updated");
	cmp_ok($many[2], '<=', 16000 * 1.2,
		"$how: the counters get about one row for each batch");
	cmp_ok($many[0] / $few[0], '<', 12,
		"$how: the blocks of the counters touched grow with the batches, not faster"
	);
	cmp_ok($many[1] / $few[1], '<', 12,
		"$how: the blocks of the table touched grow with the batches, not faster"
	);
}

$node->stop;
done_testing();
