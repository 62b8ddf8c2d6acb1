# Copyright (c) 2026, ttl_index contributors

# One table with much to delete keeps a pass going for long.  What the pass has left of
# another one, because of a lock, say, does not wait until it is over.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running("autovacuum = off\nttl_index.delete_rate_limit = 10");

sub sql
{
	return $node->safe_psql('postgres', shift);
}

sql(q{
CREATE TABLE much (at timestamptz);
INSERT INTO much SELECT '2000-01-01' FROM generate_series(1, 100000);
CREATE INDEX ON much (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE TABLE series (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE series_2000 PARTITION OF series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE series_2001 PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
});
$node->poll_query_until('postgres', 'SELECT count(*) < 100000 FROM much')
  or die 'nothing is deleted';

my $other = $node->background_psql('postgres');
$other->query_safe('BEGIN; LOCK TABLE series_2000 IN ACCESS SHARE MODE');
sql(q{
CREATE INDEX ON series (at) WHERE ttl_index.expire_after_seconds(3600) AND ttl_index.drop_expired_partitions();
});
$node->becomes(
	'postgres', q{
SELECT skipped_locked >= 2 AND deleted_buckets = 1 FROM ttl_index.index_stats
WHERE relname = 'series'
}, 'a partition is left, as it is locked');
$other->query_safe('COMMIT');
$other->quit;
$node->becomes('postgres', q{SELECT to_regclass('series_2000') IS NULL},
	'it goes once it is free');
is(sql('SELECT passes FROM ttl_index.stats'), 0, 'in the same pass');

$node->stop;
done_testing();
