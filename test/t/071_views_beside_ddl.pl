# Copyright (c) 2026, ttl_index contributors

# The views, and remove_all_ttl(), beside tables that are made and dropped all the
# time: nobody who only looks gets an error for that.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running('ttl_index.monitor_enabled = off');
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION f(timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT $1';
SQL

# Tables of each kind that the views put into words, and which are dropped again
my $churn = $node->basedir . '/churn.sql';
append_to_file($churn, <<'SQL');
CREATE TABLE a:client_id (id int, ts timestamptz, doc jsonb);
CREATE INDEX ON a:client_id (f(ts)) WHERE id > 5 AND ttl_index.expire_after_seconds(2000000000);
CREATE INDEX ON a:client_id (ttl_index.document_date(doc, 'x')) WHERE ttl_index.document_ttl(doc) IS NULL AND ttl_index.expire_after_seconds(2000000000);
CREATE TABLE p:client_id (id int, ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE q:client_id PARTITION OF p:client_id FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE INDEX ON p:client_id (ts) WHERE ttl_index.expire_after_seconds(2000000000) AND ttl_index.drop_expired_partitions();
DROP TABLE a:client_id;
DROP TABLE p:client_id;
SQL
my $look = $node->basedir . '/look.sql';
append_to_file($look, <<'SQL');
SELECT count(key), count(partial_filter_expression), count(reason), max(indexrelid::text) FROM ttl_index.indexes;
SELECT count(*) FROM ttl_index.index_stats;
SQL
my $remove = $node->basedir . '/remove.sql';
append_to_file($remove, "SELECT ttl_index.remove_all_ttl();\n");

# A client that gets an error ends, and pgbench says so.
$node->command_checks_all(
	[   'pgbench', '-n', '--client=6', '--transactions=300', '--random-seed=4711', '-f', "$churn\@3",
		'-f', "$look\@4", '-f', "$remove\@1", 'postgres'
	],
	0,
	[qr{actually processed: 1800/1800}],
	[qr{^(?!.*error)}s],
	'no look at the TTL indexes fails beside DDL');

$node->stop;
done_testing();
