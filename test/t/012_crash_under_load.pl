# Copyright (c) 2026, ttl_index contributors

# Under a load of inserts and updates, crashes of the worker, the
# launcher, the postmaster and the whole server.  After each of them exactly the
# rows that are gone are counted, and the monitor goes on.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
restart_after_crash = on
log_statement = none
ttl_index.batch_target_docs = 20
# slower than the load, so that a worker is always there
ttl_index.delete_rate_limit = 5000
});
$node->safe_psql(
	'postgres', q{
CREATE TABLE load (id bigserial, at timestamptz);
CREATE INDEX load_ttl ON load (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE TABLE added (rows int, undue int);
INSERT INTO load (at) SELECT '2000-01-01' FROM generate_series(1, 100000);
INSERT INTO added VALUES (100000, 0);
});

# Each transaction says what it adds.  The update pushes a row that is due out of
# the monitor's hands, if it comes in time: then one less is due.
my $script = PostgreSQL::Test::Utils::tempdir . '/load.sql';
append_to_file(
	$script, q{
BEGIN;
INSERT INTO load (at) SELECT '2000-01-01' FROM generate_series(1, 5);
INSERT INTO load (at) VALUES ('2100-01-01');
INSERT INTO added VALUES (5, 1);
END;
\set id random(1, 100000)
WITH pushed AS (
	UPDATE load SET at = '2100-01-01' WHERE id = :id AND at < '2050-01-01' RETURNING 1)
INSERT INTO added SELECT -1, 1 FROM pushed;
});

my $invariant = q{
SELECT (SELECT sum(rows) FROM added) = s.deleted_documents + (SELECT count(*) FROM load WHERE at < '2050-01-01'),
	(SELECT sum(undue) FROM added) = (SELECT count(*) FROM load WHERE at > '2050-01-01'),
	i.deleted_documents = s.deleted_documents
FROM ttl_index.stats s, ttl_index.index_stats i};

sub deleted
{
	return $node->safe_psql('postgres',
		'SELECT deleted_documents FROM ttl_index.stats');
}

foreach my $victim ('worker', 'launcher', 'postmaster', 'immediate stop',
	'worker', 'postmaster')
{
	my $before = deleted();
	my $pgbench = $node->start_load($script, 3, 120);

	$node->poll_query_until('postgres',
		"SELECT deleted_documents > $before FROM ttl_index.stats WHERE (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') > 3"
	) or die 'nothing is deleted under load';
	$node->crash($victim);
	eval { $pgbench->kill_kill(grace => 2) };

	$node->recover;
	is($node->safe_psql('postgres', $invariant),
		't|t|t', "rule 27: after a crash ($victim) exactly what is gone is counted");
	$before = deleted();

	# twice at the same index would put it aside: see 011_crashed_visit
	$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
	$node->safe_psql(
		'postgres', q{
INSERT INTO load (at) SELECT '2000-01-01' FROM generate_series(1, 5);
INSERT INTO added VALUES (5, 0);
});
	ok( $node->poll_query_until(
			'postgres',
			"SELECT deleted_documents > $before FROM ttl_index.stats"),
		'and the monitor goes on');
}
ok( $node->poll_query_until(
		'postgres', "SELECT count(*) = 0 FROM load WHERE at < '2050-01-01'"),
	'in the end all that is due is gone');
is($node->safe_psql('postgres', $invariant), 't|t|t', 'rule 27: and counted');

$node->stop;
done_testing();
