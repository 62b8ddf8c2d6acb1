# Copyright (c) 2026, ttl_index contributors

# Rows that a drain in block order has passed, while coll_mod() had made the time
# longer, go when it has made it shorter again.  A row that gets the tuple ID of one that
# could not be deleted then is not taken for it.

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
log_statement = none
ttl_index.monitor_enabled = off
ttl_index.batch_timeout = 0
ttl_index.batch_target_docs = 1000
});

# The index comes to the row that is a gate at its end, the heap on the way.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION gate(id int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF id = 10000 THEN
		PERFORM pg_advisory_xact_lock_shared(id);
	END IF;
	RETURN true;
END $$;
CREATE TABLE events (id int, at timestamptz, pad text);
INSERT INTO events SELECT i, CASE WHEN i = 10000 THEN '2002-01-01'
	ELSE timestamptz '2001-01-01' + (i * 7919 % 30000) * interval '1 s' END, repeat('x', 60)
FROM generate_series(1, 30000) AS i;
CREATE INDEX events_ttl ON events (at) WHERE gate(id) AND ttl_index.expire_after_seconds(3600);
});

my $gates = $node->background_psql('postgres');
$gates->query_safe('SELECT pg_advisory_lock(10000)');
$node->set('monitor_enabled', 'on');
my $session = $node->background_psql('postgres');
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 10000 AND NOT granted")
  or die 'the worker does not come to the gate';

# the next batch begins with other seconds, by which nothing is due
$session->query_until(qr/begun/,
	"\\echo begun\nSELECT ttl_index.coll_mod_index('events_ttl', 2147483647);\n");
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_locks WHERE relation = 'events_ttl'::regclass AND NOT granted")
  or die 'coll_mod_index() does not wait';
$gates->quit;
$session->quit;
$node->wait_for_passes(2);
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM events'), '>', 0, 'the drain has stopped on the way');
$node->safe_psql('postgres', "SELECT ttl_index.coll_mod_index('events_ttl', 3600)");
$node->empties('postgres', 'events',
	'what was not due on the way goes when it is due again');

# Batches of 1000 rows, however long they take: the second one decides for block order.
$node->set('monitor_enabled', 'off');
$node->wait_for_no_worker;
$node->set('batch_target_time', '1h');
$node->set('index_delete_target_time', '0');
$node->safe_psql(
	'postgres', q{
CREATE TABLE used (id int PRIMARY KEY, at timestamptz);
CREATE TABLE uses (id int PRIMARY KEY REFERENCES used);
INSERT INTO used VALUES (0, '2002-01-01');
INSERT INTO used SELECT i, timestamptz '2001-01-01' + (i * 7919 % 30000) * interval '1 s'
FROM generate_series(1, 30000) AS i;
INSERT INTO uses VALUES (0);
CREATE INDEX used_ttl ON used (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->set('monitor_enabled', 'on');
$node->empties('postgres', 'used WHERE id > 0', 'all but one of many rows go');
$node->becomes('postgres',
	"SELECT skipped_failed = 1 FROM ttl_index.index_stats WHERE relname = 'used'",
	'that one cannot be deleted');
$node->wait_for_passes(1);
$node->monitor_in('postgres', 'off');
$node->wait_for_no_worker;
$node->safe_psql('postgres', $_)
  foreach 'DELETE FROM uses', 'DELETE FROM used', 'VACUUM used',
  q{INSERT INTO used VALUES (3, '1999-01-01')};
is($node->safe_psql('postgres', 'SELECT ctid FROM used'),
	'(0,1)', 'another row takes its place');
$node->monitor_in('postgres', 'on');
$node->wait_for_passes(1);
is($node->safe_psql('postgres', 'SELECT count(*) FROM used'), '0', 'and goes at once');

$node->stop;
done_testing();
