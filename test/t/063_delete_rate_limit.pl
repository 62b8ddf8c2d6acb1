# Copyright (c) 2026, ttl_index contributors

# A limit of the rate that comes in the middle of a backlog is for what comes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running('autovacuum = off');
$node->safe_psql('postgres', 'CREATE TABLE events (at timestamptz)');
$node->slow_down('postgres', 'events', 0.0002);
$node->set('batch_target_time', '5s');
$node->set('batch_target_docs', 1000);
$node->set('index_delete_target_time', 0);
$node->safe_psql(
	'postgres', q{
INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 20000);
CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->poll_query_until('postgres', 'SELECT count(*) < 20000 FROM events')
  or die 'nothing is deleted';
$node->set('delete_rate_limit', 10);
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM ttl_index.current_op WHERE operation = 'wait for rate limit'}
) or die 'the limit has no effect';
my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM events');
$node->becomes('postgres', "SELECT count(*) < $rows FROM events",
	'no batch waits for what an earlier limit allowed');

$node->stop;
done_testing();
