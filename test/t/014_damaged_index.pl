# Copyright (c) 2026, ttl_index contributors

# An index that is damaged on disk is in error, shown with what was found, and
# costs no other index anything.  So is one that does not agree with its rows any more,
# because a function in SQL was replaced; in a session that has known it before, too.

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

is( $node->safe_psql(
		'postgres', q{
SET client_min_messages = error;
CREATE FUNCTION since(timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION is_old(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 > 0';
CREATE TABLE by_key (id int, at timestamptz);
CREATE TABLE by_filter (id int, at timestamptz);
CREATE INDEX by_key_ttl ON by_key (since(at)) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX by_filter_ttl ON by_filter (at) WHERE is_old(id) AND ttl_index.expire_after_seconds(3600);
INSERT INTO by_key VALUES (1, '2000-01-01');
INSERT INTO by_filter VALUES (1, '2000-01-01');
CALL ttl_index.run_pass();
SELECT count(*) FROM (TABLE by_key UNION ALL TABLE by_filter) AS rows;
INSERT INTO by_key VALUES (2, '2000-01-01');
INSERT INTO by_filter VALUES (2, '2000-01-01');
CREATE OR REPLACE FUNCTION since(timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS 'SELECT greatest($1, timestamptz ''2200-01-01 00:00+00'')';
CREATE OR REPLACE FUNCTION is_old(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 < 0';
CALL ttl_index.run_pass();
SELECT count(*) FROM by_key;
SELECT count(*) FROM by_filter;
SELECT indexrelname, deleted_documents, last_error_sqlstate FROM ttl_index.index_stats ORDER BY 1;
DROP TABLE by_key, by_filter;
}),
	"0\n1\n1\nby_filter_ttl|1|XX002\nby_key_ttl|1|XX002",
	'functions count as they are now');

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
