# Copyright (c) 2026, ttl_index contributors

# An index that is damaged on disk is in error, shown with what was found, and
# costs no other index anything.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
autovacuum = off
ttl_index.monitor_enabled = off
});
$node->safe_psql(
	'postgres', q{
CREATE TABLE damaged (at timestamptz);
CREATE TABLE sound (at timestamptz);
CREATE INDEX damaged_ttl ON damaged (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX sound_ttl ON sound (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO damaged SELECT timestamptz '2000-01-01' + g * interval '1 s' FROM generate_series(1, 10) g;
INSERT INTO sound TABLE damaged;
});
my $file = $node->data_dir . '/'
  . $node->safe_psql('postgres', "SELECT pg_relation_filepath('damaged_ttl')");
$node->stop;

# the root, which is the only leaf
open my $fh, '+<', $file or die "$file: $!";
binmode $fh;
sysseek $fh, 8192, 0;
syswrite $fh, "\0" x 8192 or die;
close $fh;

$node->append_conf('postgresql.conf', 'ttl_index.monitor_enabled = on');
$node->start;
$node->empties('postgres', 'sound', 'the other index goes on');
ok( $node->poll_query_until(
		'postgres',
		q{SELECT errors > 0 FROM ttl_index.index_stats WHERE relname = 'damaged'}
	),
	'the damaged index is in error');
like(
	$node->safe_psql(
		'postgres',
		q{SELECT last_error_sqlstate || ' ' || last_error FROM ttl_index.index_stats WHERE relname = 'damaged'}
	),
	qr/^XX002 index "damaged_ttl" contains unexpected zero page at block 1/,
	'with what was found');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM damaged'),
	10, 'and costs no row');

$node->safe_psql('postgres', 'REINDEX INDEX damaged_ttl');
$node->empties('postgres', 'damaged', 'REINDEX heals it');

$node->stop;
done_testing();
