# Copyright (c) 2026, ttl_index contributors

# Many databases, and many TTL indexes with a resume point or an error each: none is
# forgotten in the middle of a pass.  Their options are repaired in portions, so
# that the lock table does not fill.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

# 200 and 5000 take a minute and more.
my $databases = $ENV{TTL_TEST_DATABASES} || 15;
my $indexes = $ENV{TTL_TEST_INDEXES} || 2100;
my $failing = 300;

my $node = TtlNode->running(
	q{
autovacuum = off
log_statement = none
ttl_index.monitor_enabled = off
ttl_index.sub_pass_target_time = 0
max_locks_per_transaction = 10
});

#
# Indexes, of which the last ones raise errors
#

my $tables = $indexes + $failing;
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
	\$\$ BEGIN RAISE 'no'; END \$\$;
SET ttl_index.monitor_enabled = off;
-- no event triggers: the first pass has to complete what is saved
SET session_replication_role = replica;
DO \$\$
BEGIN
	FOR i IN 1 .. $tables LOOP
		EXECUTE format('CREATE TABLE t%1\$s (at timestamptz);
			INSERT INTO t%1\$s SELECT ''2000-01-01'' FROM generate_series(1, 3);
			INSERT INTO t%1\$s VALUES (''2100-01-01'');
			CREATE INDEX t%1\$s_ttl ON t%1\$s (at) WHERE ttl_index.expire_after_seconds(0)', i);
		IF i > $indexes THEN
			EXECUTE format('CREATE TRIGGER refuse BEFORE DELETE ON t%s FOR EACH ROW EXECUTE FUNCTION refuse()', i);
		END IF;
		COMMIT;
	END LOOP;
END \$\$});

# Each visit ends after one row, with a resume point to be kept.
my $offset = -s $node->logfile;
$node->safe_psql('postgres',
	'SET ttl_index.index_delete_target_docs = 1; CALL ttl_index.run_pass()');
is( $node->safe_psql(
		'postgres', q{
SELECT deleted_documents, passes, sub_passes BETWEEN 3 AND 4, errors <= 300 * sub_passes FROM ttl_index.stats}),
	join('|', 3 * $indexes, 1, 't', 't'),
	"one pass over $tables indexes deletes what is due");
is( $node->safe_psql(
		'postgres', q{
SELECT count(*) FILTER (WHERE deleted_documents = 3 AND errors = 0),
	count(*) FILTER (WHERE errors = 1 AND deleted_documents = 0),
	count(*) FILTER (WHERE errors > 1 AND deleted_documents = 0)
FROM ttl_index.index_stats}),
	join('|', $indexes, $failing, 0),
	'all indexes in error are tried once in a pass');
unlike(slurp_file($node->logfile, $offset),
	qr/out of shared memory/, 'repairing all options leaves locks to others');

# The monitor's worker has the same lists in shared memory.
$node->safe_psql('postgres',
	'ALTER DATABASE postgres SET ttl_index.index_delete_target_docs = 1');
$node->safe_psql(
	'postgres', qq{
DO \$\$
BEGIN
	FOR i IN 1 .. $indexes LOOP
		EXECUTE format('INSERT INTO t%s SELECT ''2000-01-01'' FROM generate_series(1, 3)', i);
		COMMIT;
	END LOOP;
END \$\$});
$offset = -s $node->logfile;
$node->set('monitor_enabled', 'on');
ok( $node->poll_query_until(
		'postgres',
		"SELECT deleted_documents = 6 * $indexes AND passes > 1 FROM ttl_index.stats"),
	'the monitor does the same');
is( $node->safe_psql(
		'postgres',
		'SELECT min(deleted_documents), max(deleted_documents) FROM ttl_index.index_stats WHERE errors = 0'
	),
	'6|6',
	'rule 27: every row is counted at its index');
$node->monitor_in('postgres', 'off');

#
# Databases
#

foreach my $i (1 .. $databases)
{
	if ($i == 1)
	{
		$node->safe_psql('postgres',
			'CREATE DATABASE d1; ALTER DATABASE d1 SET ttl_index.monitor_enabled = off');
		$node->safe_psql(
			'd1', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
INSERT INTO events VALUES ('2000-01-01'), ('2100-01-01');
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
});
		$node->poll_query_until('postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'd1'");
		next;
	}
	$node->safe_psql('postgres',
		"CREATE DATABASE d$i TEMPLATE d1 STRATEGY wal_log");
}
$node->monitor_in('d1', 'on');
my $left = 0;
foreach my $i (1 .. $databases)
{
	$node->poll_query_until("d$i", 'SELECT count(*) = 1 FROM events')
	  or $left++;
}
is($left, 0, "rows go in each of $databases databases");

# CREATE DATABASE waits for nobody: it ends a survey that is still in its template
unlike(slurp_file($node->logfile, $offset), qr/PANIC|FATAL(?!:  terminating background worker "ttl_index survey")|TRAP/,
	'nothing fails');

#
# Large definitions: what the tree of one index takes is free for the next one
#

SKIP:
{
	skip 'the peak of a process is read from /proc', 5 unless -e '/proc/self/status';
	my $peak = q{SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::int / 1024};
	$node->safe_psql('postgres', 'CREATE DATABASE large');
	$node->safe_psql(
		'large', q{
CREATE EXTENSION ttl_index;
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('CREATE TABLE t%1$s (at timestamptz, value text)', i);
		EXECUTE format('CREATE INDEX ON t%1$s (at) WHERE ttl_index.expire_after_seconds(0) AND value <> %2$L', i, repeat('x', 150000));
	END LOOP;
END $$});
	my ($before, $after) = split /\n+/,
	  $node->safe_psql('large', "$peak; CALL ttl_index.run_pass(); $peak");
	cmp_ok($after - $before, '<', 60,
		'a pass over 100 filters of 150 kB takes less than 60 MB');

	# One that is refused, as too long, is left behind by CONCURRENTLY; only 18 can store it.
	skip 'a row of pg_index fits into a page', 4 if $node->pg_version->major < 18;
	$node->psql(
		'large', q{
SELECT format('CREATE INDEX CONCURRENTLY long ON t1 (at) WHERE ttl_index.expire_after_seconds(0) AND value <> %L', repeat('x', 20000000)) \gexec});
	($before, my $shown, $after) = split /\n+/,
	  $node->safe_psql(
		'large', qq{
$peak;
CALL ttl_index.run_pass();
SELECT key, partial_filter_expression, state FROM ttl_index.indexes WHERE indexrelid = 'long'::regclass;
$peak});
	is($shown, '...|...|not_valid', 'a definition that is too long is not shown');
	cmp_ok($after - $before, '<', 60, 'and not read');

	# One that would become too long, by an option, stays as it is.
	$node->safe_psql(
		'large', q{
CREATE TABLE nearly (at timestamptz, value text);
DO $$
BEGIN
	FOR length IN REVERSE 262144 .. 1 BY 8 LOOP
		BEGIN
			EXECUTE format('CREATE INDEX nearly_long ON nearly (at) WHERE ttl_index.expire_after_seconds(0) AND value <> %L', repeat('x', length));
			EXIT;
		EXCEPTION
			WHEN program_limit_exceeded THEN
		END;
	END LOOP;
END $$});
	my ($result, $stdout, $stderr) =
	  $node->psql('large', q{SELECT ttl_index.pause_index('nearly_long')});
	like($stderr, qr/ERROR:  the key and the filter of a TTL index cannot take more than 1 MB/,
		'an option makes no definition longer than what is read');
	is($node->safe_psql('large', q{SELECT state FROM ttl_index.indexes WHERE indexrelid = 'nearly_long'::regclass}),
		'active', 'and the index stays as it was');
}

$node->stop;
done_testing();
