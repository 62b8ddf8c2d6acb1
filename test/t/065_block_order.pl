# Copyright (c) 2026, ttl_index contributors

# Rows that a drain in block order has passed, while coll_mod() had made the time
# longer, go when it has made it shorter again.

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

# The index comes to the two rows that are gates at its end, the heap on the way.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION gate(id int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF id IN (10000, 20000) THEN
		PERFORM pg_advisory_xact_lock_shared(id);
	END IF;
	RETURN true;
END $$;
CREATE TABLE events (id int, at timestamptz, pad text);
INSERT INTO events SELECT i, CASE WHEN i IN (10000, 20000) THEN '2002-01-01'
	ELSE timestamptz '2001-01-01' + (i * 7919 % 30000) * interval '1 s' END, repeat('x', 60)
FROM generate_series(1, 30000) AS i;
CREATE INDEX events_ttl ON events (at) WHERE gate(id) AND ttl_index.expire_after_seconds(3600);
});

# At each gate, the next batch is to begin with other seconds.
sub change_at
{
	my ($gates, $gate, $seconds) = @_;
	my $session = $node->background_psql('postgres');

	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $gate AND NOT granted")
	  or die 'the worker does not come to the gate';
	$session->query_until(qr/begun/,
		"\\echo begun\nSELECT ttl_index.coll_mod_index('events_ttl', $seconds);\n");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_locks WHERE relation = 'events_ttl'::regclass AND NOT granted")
	  or die 'coll_mod_index() does not wait';
	$gates->query_safe("SELECT pg_advisory_unlock($gate)");
	$session->quit;
	return;
}

my $gates = $node->background_psql('postgres');
$gates->query_safe('SELECT pg_advisory_lock(10000), pg_advisory_lock(20000)');
$node->set('monitor_enabled', 'on');
change_at($gates, 10000, 2147483647);
change_at($gates, 20000, 3600);
$gates->quit;
$node->empties('postgres', 'events',
	'what was not due when the drain passed it goes when it is due again');

$node->stop;
done_testing();
