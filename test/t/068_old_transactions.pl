# Copyright (c) 2026, ttl_index contributors

# Rows that were written so many transactions ago that the number of theirs cannot be
# compared any more count as older than all others.  Others that are frozen do not.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running("autovacuum = off\n");

# More rows that cannot be deleted than are known by their tuple id.
$node->safe_psql(
	'postgres', q{
CREATE TABLE used (id int PRIMARY KEY, at timestamptz);
CREATE TABLE uses (id int REFERENCES used);
INSERT INTO used SELECT i, '2000-01-01' FROM generate_series(1, 40) AS i;
INSERT INTO uses SELECT id FROM used;
UPDATE pg_database SET datallowconn = true;
});

# Three billion transactions pass, half of them at a time: no more can be between two
# rows that are not frozen.
foreach my $next (1_500_000_000, 3_000_000_000)
{
	my $segment = sprintf('%s/pg_xact/%04X', $node->data_dir, $next / (4 * 8192 * 32));

	$node->command_ok([ 'vacuumdb', '--quiet', '--all', '--freeze' ], 'all is frozen');
	$node->stop;
	append_to_file($segment, "\0" x (8192 * 32));
	command_ok([ 'pg_resetwal', '-x', $next, $node->data_dir ], 'transactions pass');
	$node->start;
}

my $failed = q{SELECT skipped_failed FROM ttl_index.index_stats WHERE relname = 'used'};
$node->safe_psql('postgres',
	'CREATE INDEX used_ttl ON used (at) WHERE ttl_index.expire_after_seconds(3600)');
$node->poll_query_until('postgres', "SELECT ($failed) = 40")
  or die 'the rows are not found';
$node->wait_for_passes(1);
$node->safe_psql('postgres', q{INSERT INTO used VALUES (41, '2000-01-01')});
$node->becomes('postgres', 'SELECT count(*) = 40 FROM used', 'a late row goes');
$node->wait_for_passes(1);
is($node->safe_psql('postgres', $failed),
	40, 'those that cannot be deleted are not tried again with it');


# A row can be frozen before the first visit that could see it.
$node->safe_psql('postgres', $_)
  foreach 'ALTER SYSTEM SET ttl_index.monitor_enabled = off', 'SELECT pg_reload_conf()';
$node->becomes(
	'postgres',
	q{SELECT state = 'no_monitor' AND NOT EXISTS
	      (SELECT FROM pg_stat_activity WHERE backend_type = 'ttl_index worker')
	  FROM ttl_index.indexes},
	'the monitor is off');
$node->safe_psql('postgres', $_)
  foreach q{INSERT INTO used VALUES (42, '1999-01-01')}, 'VACUUM (FREEZE) used',
  'ALTER SYSTEM RESET ttl_index.monitor_enabled', 'SELECT pg_reload_conf()';
$node->wait_for_passes(1);
is($node->safe_psql('postgres', 'SELECT count(*) FROM used'),
	40, 'a late row that is frozen already goes as well');

$node->stop;
done_testing();
