# Copyright (c) 2026, ttl_index contributors

# REINDEX CONCURRENTLY where more TTL indexes have an option to be saved than there are
# locks, as after pg_upgrade (option rule 9): it saves and restores the options of what it
# names, and nobody else's, and fails only where it would lose one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $tables = 600;
my $node = TtlNode->running(
	q{
autovacuum = off
log_statement = none
ttl_index.monitor_enabled = off
max_locks_per_transaction = 10
max_connections = 5
});

# Indexes whose options are not saved, most of them in a schema: no event trigger has seen
# them.
sub make_unsaved
{
	my ($schema) = @_;

	$node->safe_psql(
		'postgres', qq{
SET client_min_messages = error;
SET session_replication_role = replica;
DROP TABLE IF EXISTS plain, parts, held CASCADE;
CREATE TABLE plain (at timestamptz);
CREATE INDEX plain_at ON plain (at);
CREATE TABLE held (at timestamptz);
CREATE INDEX held_ttl ON held (at) WHERE ttl_index.expire_after_seconds(6);
CREATE TABLE parts (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(7);
CREATE SCHEMA $schema;
DO \$\$
BEGIN
	FOR i IN 1 .. $tables LOOP
		EXECUTE format('CREATE TABLE $schema.t%1\$s (at timestamptz)', i);
		EXECUTE format('CREATE INDEX t%1\$s_ttl ON $schema.t%1\$s (at) WHERE ttl_index.expire_after_seconds(5)', i);
		COMMIT;
	END LOOP;
END \$\$});
	return;
}

# Those that are saved outside of the schema, and how many there are in it.
sub saved
{
	my ($schema) = @_;

	return $node->safe_psql(
		'postgres', qq{
SELECT coalesce(string_agg(DISTINCT relname, ',') FILTER (WHERE relnamespace = 'public'::regnamespace), '-'),
	count(DISTINCT objid) FILTER (WHERE relnamespace = '$schema'::regnamespace)
FROM pg_depend JOIN pg_class ON pg_class.oid = objid
WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass
	AND refobjid = 'ttl_index.saved_option'::regclass});
}

# How many indexes of the schema have their option, whether a pass has come or not, and
# how many have it saved alone.
sub options
{
	my ($schema) = @_;

	return $node->safe_psql(
		'postgres', qq{
SELECT count(*) FILTER (WHERE expire_after_seconds = 5 AND state IN ('active', 'no_monitor')),
	count(*) FILTER (WHERE state = 'option_remembered')
FROM ttl_index.indexes JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = '$schema'::regnamespace});
}

sub works
{
	my ($command, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $command);

	is("$status $stderr", '0 ', $name);
	return;
}

sub fails_at
{
	my ($command, $index, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, $stdout, $stderr) = $node->psql('postgres', $command);

	like($stderr,
		qr/ERROR:  could not save the option of TTL index $index\n.*HINT:  .*run_pass/s,
		$name);
	return;
}

#
# With the library loaded
#

make_unsaved('many');
is(saved('many'), '-|0', 'nothing is saved');
works('REINDEX INDEX CONCURRENTLY plain_at',
	'what has nothing to do with TTL does not fail');
is(saved('many'), '-|0', 'and saves nothing');
works('REINDEX TABLE CONCURRENTLY parts', 'nor does a partitioned table');
works('REINDEX INDEX CONCURRENTLY many.t1_ttl', 'nor a TTL index');
is(saved('many'), 'part_at_idx,parts_ttl|1', 'their options alone are saved');
works('REINDEX INDEX CONCURRENTLY parts_ttl', 'a partitioned index');
is( $node->safe_psql(
		'postgres', q{
SELECT string_agg(expire_after_seconds::text, ',' ORDER BY expire_after_seconds) FROM ttl_index.indexes
WHERE indexrelid IN ('parts_ttl'::regclass, 'part_at_idx'::regclass, 'many.t1_ttl'::regclass) AND state = 'no_monitor'}
	),
	'5,7,7',
	'they have their options');

my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE held IN SHARE UPDATE EXCLUSIVE MODE');
fails_at('REINDEX INDEX CONCURRENTLY held_ttl',
	'"held_ttl" of table "postgres.public.held"', 'an option that cannot be saved is not lost');
$holder->query_safe('COMMIT');
$holder->quit;

works('REINDEX SCHEMA CONCURRENTLY many', 'a schema');
is(saved('many'), "part_at_idx,parts_ttl|$tables", 'saves all options of it');
is(options('many'), "$tables|0", 'and gives them back');
like(
	($node->psql('postgres', 'BEGIN; REINDEX INDEX CONCURRENTLY held_ttl'))[2],
	qr/REINDEX CONCURRENTLY cannot run inside a transaction block/,
	'in a transaction PostgreSQL refuses it');

# The way out that the manual shows where remove_all_ttl() needs more locks than there are.
like(($node->psql('postgres', 'SELECT ttl_index.remove_all_ttl()'))[2],
	qr/out of shared memory/, 'remove_all_ttl() locks all in one transaction');
works(
	q{
SELECT format('SELECT ttl_index.remove_ttl(%L)', indexrelid) FROM ttl_index.indexes WHERE parent_indexrelid IS NULL \gexec
SELECT ttl_index.remove_all_ttl()}, 'remove_ttl() of each does not');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM ttl_index.indexes'),
	0, 'and leaves none');

#
# By the event trigger alone, which has one transaction
#

SKIP:
{
	skip 'REINDEX fires no event triggers', 9
	  if $node->pg_version->major < 17;

	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
	$node->restart;
	make_unsaved('more');
	works('REINDEX INDEX CONCURRENTLY plain_at',
		'no library: what has nothing to do with TTL does not fail');
	works('REINDEX INDEX CONCURRENTLY more.t1_ttl', 'no library: a TTL index');
	is(saved('more'), '-|1', 'no library: its option alone is saved');
	fails_at('REINDEX SCHEMA CONCURRENTLY more',
		'"t\d+_ttl" of table "postgres.more.t\d+"', 'no library: more than one transaction can save');
	works('SET client_min_messages = warning; CALL ttl_index.run_pass()',
		'no library: a pass saves all');
	works('REINDEX SCHEMA CONCURRENTLY more', 'no library: then it works');
	my ($there, $remembered) = split /\|/, options('more');
	is($there + $remembered, $tables, 'no library: no option is lost');
	works('SET client_min_messages = warning; CALL ttl_index.run_pass()',
		'no library: a pass');
	is(options('more'), "$tables|0", 'no library: gives them all back');
}

$node->stop;
done_testing();
