# Copyright (c) 2026, ttl_index contributors

# A table whose partitions pg_partman makes: only the expiry is ours.

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
plan skip_all => 'pg_partman is not installed'
  unless -e "$sharedir/extension/pg_partman.control";

# Version 5 knows native partitioning alone, and takes intervals only.
slurp_file("$sharedir/extension/pg_partman.control") =~
  m/default_version *= *'(\d+)/;
my $kind = $1 >= 5 ? "p_interval := '1 day'"
  : "p_type := 'native', p_interval := 'daily'";

my $node = TtlNode->running(
	q{
ttl_index.monitor_enabled = off
}, name => 'partman');

sub sql
{
	return $node->safe_psql('postgres', shift);
}

# Days are counted from midnight UTC.
sql(qq{
ALTER SYSTEM SET timezone = 'UTC';
SELECT pg_reload_conf();
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE TABLE public.measurement (taken timestamptz NOT NULL, value float) PARTITION BY RANGE (taken);
SELECT partman.create_parent(p_parent_table := 'public.measurement', p_control := 'taken', $kind,
	p_premake := 2, p_start_partition := (now() - interval '10 days')::text);
INSERT INTO measurement SELECT now() - g * interval '1 day', g FROM generate_series(0, 10) AS g;
INSERT INTO measurement VALUES ('2000-01-01', -1), ('2999-01-01', -2);
});
# the partitions, and how many days ago each of them ended
my $partitions = q{
SELECT count(*), max(extract(day FROM now() - upper)) FROM (
	SELECT split_part(pg_get_expr(relpartbound, oid), '''', 4)::timestamptz AS upper
	FROM pg_class WHERE relispartition AND relkind = 'r' AND pg_get_expr(relpartbound, oid) <> 'DEFAULT') AS p};
is(sql($partitions), '13|9', 'pg_partman makes partitions of the last ten days');

sql("SELECT ttl_index.create_index('measurement', 'taken', 3 * 86400, drop_expired_partitions => true)");
sql('CALL ttl_index.run_pass()');
is(sql($partitions), '6|2', 'those that are due are dropped');
is(sql('SELECT min(value), max(value), count(*) FROM measurement'),
	'-2|3|5', 'with their rows; in DEFAULT rows go one by one');
is( sql('SELECT deleted_buckets, errors FROM ttl_index.stats'),
	'7|0', 'they are counted');

# pg_partman goes on as if a user had dropped them
sql(q{
UPDATE partman.part_config SET premake = 5;
DELETE FROM measurement WHERE value = -2;
SELECT partman.run_maintenance('public.measurement');
});
is(sql($partitions), '9|2', 'pg_partman makes partitions all the same');
is( sql(q{
SELECT count(*), count(DISTINCT expire_after_seconds), bool_and(state = 'active') FROM ttl_index.indexes
WHERE parent_indexrelid IS NOT NULL}),
	'10|1|t',
	'they follow the TTL');
is( sql(q{
SELECT string_agg(DISTINCT pg_get_expr(indpred, indrelid), ' ') FROM pg_index
WHERE indrelid IN (SELECT inhrelid FROM pg_inherits)}),
	'ttl_index.expire_after_seconds(259200)',
	'without the options of the whole');

# its own retention and ours, on the same partitions
sql(q{
UPDATE partman.part_config SET retention = '2 days', retention_keep_table = false;
SELECT partman.run_maintenance('public.measurement');
});
sql('CALL ttl_index.run_pass()');
is(sql($partitions), '8|1', "pg_partman's retention and a pass get along");
sql("SELECT * FROM ttl_index.coll_mod('measurement', 'taken', 0)");
sql('CALL ttl_index.run_pass()');
is(sql($partitions), '6|0', 'and a pass drops the rest');
sql('SELECT partman.run_maintenance()');
is(sql($partitions), '6|0', 'pg_partman does not mind');

$node->has_not_crashed('nothing crashes');
$node->stop;
done_testing();
