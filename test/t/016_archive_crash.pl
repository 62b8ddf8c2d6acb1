# Copyright (c) 2026, ttl_index contributors

# Rows that move to another table while processes are killed: each row that was written is
# in exactly one of the two tables, and the counters say how many moved.

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
CREATE TABLE load (id bigserial, at timestamptz, body text);
-- another one is deleted by SQL, as a trigger is attached
CREATE TABLE other (LIKE load INCLUDING DEFAULTS);
CREATE FUNCTION let() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TRIGGER let BEFORE DELETE ON other FOR EACH ROW EXECUTE FUNCTION let();
CREATE TABLE cold (at timestamptz, body text, id bigint, moved timestamptz DEFAULT now()) PARTITION BY HASH (id);
CREATE TABLE cold_0 PARTITION OF cold FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE cold_1 PARTITION OF cold FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX load_ttl ON load (at) WHERE ttl_index.expire_after_seconds(3600) AND ttl_index.archive_to('cold');
CREATE INDEX other_ttl ON other (at) WHERE ttl_index.expire_after_seconds(3600) AND ttl_index.archive_to('cold');
CREATE TABLE added (rows int);
INSERT INTO load (at, body) SELECT '2000-01-01', 'x' FROM generate_series(1, 30000);
INSERT INTO other (at, body) SELECT '2000-01-01', 'x' FROM generate_series(1, 5000);
INSERT INTO added VALUES (35000);
});

my $script = PostgreSQL::Test::Utils::tempdir . '/load.sql';
append_to_file(
	$script, q{
BEGIN;
INSERT INTO load (at, body) SELECT '2000-01-01', repeat('y', 100) FROM generate_series(1, 5);
INSERT INTO other (at, body) VALUES ('2000-01-01', 'z');
INSERT INTO load (at) VALUES ('2100-01-01');
INSERT INTO added VALUES (7);
END;
});

# Every row has a number of its own, so that one that is there twice is seen.
my $invariant = q{
WITH present AS (SELECT id FROM load UNION ALL SELECT id FROM other UNION ALL SELECT id FROM cold)
SELECT (SELECT count(*) FROM present) = (SELECT sum(rows) FROM added),
	(SELECT count(*) - count(DISTINCT id) FROM present),
	(SELECT count(*) FROM cold) = s.archived_documents,
	s.archived_documents = s.deleted_documents,
	(SELECT sum(archived_documents) FROM ttl_index.index_stats) = s.archived_documents
FROM ttl_index.stats AS s};

sub archived
{
	return $node->safe_psql('postgres', 'SELECT archived_documents FROM ttl_index.stats');
}

foreach my $victim ('worker', 'postmaster', 'worker', 'immediate stop')
{
	my $before = archived();
	my $pgbench = $node->start_load($script, 2, 60);

	$node->poll_query_until('postgres',
		"SELECT archived_documents > $before FROM ttl_index.stats")
	  or die 'nothing is moved under load';
	$node->crash($victim);
	eval { $pgbench->kill_kill(grace => 2) };

	$node->recover;
	is($node->safe_psql('postgres', $invariant), 't|0|t|t|t',
		"after a crash ($victim) each row is in one table, and those that moved are counted");
	# twice at the same index would put it aside: see 011_crashed_visit
	$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
}
ok( $node->poll_query_until(
		'postgres', q{SELECT (SELECT count(*) FROM load WHERE at < '2050-01-01') + (SELECT count(*) FROM other) = 0}),
	'in the end all that is due has moved');
is($node->safe_psql('postgres', $invariant), 't|0|t|t|t', 'and is there once');

$node->stop;
done_testing();
