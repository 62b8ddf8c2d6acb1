# Copyright (c) 2026, ttl_index contributors

# What PostgreSQL's own statistics and logs show of the deletes of TTL indexes, and what
# they do not show: doc/operating.md, "What other tools see".

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $config = $ENV{PG_CONFIG} || 'pg_config';
my $sharedir = `$config --sharedir`;
chomp $sharedir;
plan skip_all => 'pg_stat_statements is not installed'
  unless -e "$sharedir/extension/pg_stat_statements.control";

my $node = TtlNode->running(
	q{
shared_preload_libraries = 'pg_stat_statements, auto_explain, ttl_index'
pg_stat_statements.track = all
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
auto_explain.log_triggers = on
auto_explain.log_nested_statements = on
log_statement = all
log_min_duration_statement = 0
ttl_index.log_min_duration = 0
ttl_index.monitor_enabled = off
});

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION pg_stat_statements;
CREATE TABLE quiet (at timestamptz);
CREATE TABLE loud (at timestamptz);
CREATE TABLE archive (at timestamptz);
CREATE FUNCTION keep_copy() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.archive VALUES (OLD.at); RETURN OLD; END $$;
CREATE TRIGGER keep_copy BEFORE DELETE ON loud FOR EACH ROW EXECUTE FUNCTION keep_copy();
INSERT INTO quiet SELECT '2001-01-01' FROM generate_series(1, 100);
INSERT INTO loud SELECT '2001-01-01' FROM generate_series(1, 100);
CREATE INDEX quiet_ttl ON quiet (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX loud_ttl ON loud (at) WHERE ttl_index.expire_after_seconds(3600);
SELECT pg_stat_statements_reset();
});
my $offset = -s $node->logfile;
$node->set('monitor_enabled', 'on');
$node->empties('postgres', 'quiet');
$node->empties('postgres', 'loud');
foreach my $index ('quiet_ttl', 'loud_ttl')
{
	ok( $node->wait_for_log(qr/$index.*deleted 100 rows in \d+ batch/, $offset),
		"ttl_index.log_min_duration shows what went by $index");
}
$node->set('monitor_enabled', 'off');

# Where nothing is attached to DELETE there is no statement.
my $log = slurp_file($node->logfile, $offset);

unlike($log, qr/Delete on (public\.)?quiet/, 'auto_explain shows no plan of a delete without SQL');
like(
	$log,
	qr/Query Text: DELETE by TTL index "loud_ttl"\s+(Query Parameters: .*\s+)?Delete on (public\.)?loud/,
	'where a trigger is attached it shows one, with the name of the index for the text');
like($log, qr/Trigger keep_copy: time=[\d.]+ calls=100/, 'and the time of the trigger');
unlike($log, qr/statement: delete/i, 'log_statement and log_min_duration_statement show neither');

is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_statements WHERE query ~* '^\s*delete'}),
	'0', 'pg_stat_statements shows no delete of either');
is( $node->safe_psql('postgres', q{SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'INSERT INTO public.archive%'}),
	'100|100', 'but what the trigger ran');

# The counters of tables, indexes and databases are those of any delete.
foreach my $table ('quiet', 'loud')
{
	$node->becomes('postgres',
		"SELECT n_tup_del = 100 FROM pg_stat_user_tables WHERE relname = '$table'",
		"pg_stat_user_tables counts the rows of $table");
	$node->becomes('postgres',
		"SELECT idx_scan > 0 FROM pg_stat_user_indexes WHERE indexrelname = '${table}_ttl'",
		"pg_stat_user_indexes counts the scans of ${table}_ttl");
}
$node->becomes('postgres',
	"SELECT tup_deleted >= 200 FROM pg_stat_database WHERE datname = 'postgres'",
	'pg_stat_database counts them');
is( $node->safe_psql('postgres', 'SELECT relname, batches > 0, deleted_documents FROM ttl_index.index_stats ORDER BY relname'),
	"loud|t|100\nquiet|t|100", 'index_stats has rows and batches');

# A session's pass is a statement; its rows and its WAL are those of the workers.
$node->safe_psql('postgres', q{
INSERT INTO quiet SELECT '2001-01-01' FROM generate_series(1, 100);
SET client_min_messages = warning});
$node->safe_psql('postgres', 'SET client_min_messages = warning; CALL ttl_index.run_pass()');
is( $node->safe_psql('postgres',
		q{SELECT calls, rows, wal_records >= 100 FROM pg_stat_statements WHERE query = 'CALL ttl_index.run_pass()'}),
	'1|0|f', 'pg_stat_statements shows run_pass() without what its workers do');

$node->stop;
done_testing();
