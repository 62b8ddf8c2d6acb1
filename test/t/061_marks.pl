# Copyright (c) 2026, ttl_index contributors

# From pass to pass: the monitor does not walk the entries of rows that are gone
# every time, finds late rows all the same, and tries rows that cannot be deleted
# again after a growing delay.  An idle pass reads little.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Heartbeat;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'ttl_index'
autovacuum = off
log_statement = none
ttl_index.monitor_sleep = 1
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (id int, at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});
my $heartbeat = Heartbeat->new($node);

sub gone
{
	my ($condition, $name) = @_;

	ok( $node->poll_query_until(
			'postgres', "SELECT count(*) = 0 FROM events WHERE $condition"),
		$name);
	return;
}

# The index entries that scans of an index have returned.
sub entries_read
{
	return $node->safe_psql('postgres',
		"SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'events_ttl'"
	);
}

#
# An idle pass
#

$node->safe_psql('postgres', q{CREATE DATABASE idle});
$node->safe_psql('postgres',
	'ALTER DATABASE idle SET ttl_index.monitor_enabled = off');
$node->safe_psql(
	'idle', q{
CREATE EXTENSION ttl_index;
DO $$ BEGIN
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('CREATE TABLE t%s (at timestamptz)', i);
		EXECUTE format('INSERT INTO t%s SELECT timestamptz ''2100-01-01'' + g * interval ''1 s'' FROM generate_series(1, 1000) AS g', i);
		EXECUTE format('CREATE INDEX ON t%s (at) WHERE ttl_index.expire_after_seconds(3600)', i);
	END LOOP;
END $$});
my $blocks_read =
  'SELECT sum(idx_blks_hit + idx_blks_read) FROM pg_statio_user_tables';
my $session = $node->background_psql('idle');
my $before = $session->query_safe($blocks_read);
$session->query_safe('CALL ttl_index.run_pass()');
$session->query_safe('SELECT pg_stat_force_next_flush()');
my $blocks = $session->query_safe($blocks_read) - $before;
# height 1, a root above leaves, and two more
cmp_ok($blocks, '<=', 300, 'an idle pass reads no more than it has to');
$session->quit;

#
# Entries of rows that are gone
#

my $old = $node->background_psql('postgres');
$old->query_safe(
	'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM events');
$node->safe_psql('postgres',
	q{INSERT INTO events SELECT i, timestamptz '2001-01-01' + i * interval '1 s' FROM generate_series(1, 100000) i}
);
gone('true', 'a backlog is drained while an old snapshot is open');
$heartbeat->passes(1);
my $read = entries_read();
$heartbeat->passes(4);
cmp_ok(entries_read() - $read,
	'<', 100000, 'passes do not walk the dead entries every time');

$node->safe_psql('postgres',
	"INSERT INTO events VALUES (1, '2000-01-01'), (2, '2020-01-01')");
gone('true', 'late rows at either end expire with the next pass');
$read = entries_read();
$node->safe_psql('postgres',
	"INSERT INTO events VALUES (3, timestamptz '2001-01-01' + 50000 * interval '1 s')");
gone('true', 'so does one in the middle, while the old snapshot is open');
cmp_ok(entries_read() - $read,
	'<', 10000, 'to find it, little more is read than where it is');

# A row that is not committed when a pass comes by; nothing is written after that.
my $late = $node->background_psql('postgres');
$late->query_safe(
	"BEGIN; INSERT INTO events VALUES (4, timestamptz '2001-01-01' + 50000 * interval '1 s')");
$heartbeat->passes(2);
$late->query_safe('COMMIT');
$late->quit;
gone('true', 'nor does one wait whose transaction was open for some passes');
$old->query_safe('COMMIT');
$old->quit;
$node->safe_psql('postgres', 'VACUUM events');

#
# Rows that cannot be deleted
#

$node->safe_psql(
	'postgres', q{
SELECT ttl_index.stats_reset();
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN IF OLD.id = 7 THEN RAISE 'row % stays', OLD.id; END IF; RETURN OLD; END $$;
CREATE TRIGGER keep BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO events SELECT i, timestamptz '2001-01-01' + i * interval '1 s' FROM generate_series(1, 20) i;
});
gone('id <> 7', 'all others go');
$heartbeat->passes(1);
my $log = -s $node->logfile;
$node->safe_psql('postgres', "INSERT INTO events VALUES (8, '2001-02-01')");
gone('id = 8', 'so do later ones');
$heartbeat->passes(3);
is( $node->safe_psql(
		'postgres', q{
SELECT deleted_documents, skipped_failed, errors, last_error, last_error_sqlstate
FROM ttl_index.index_stats WHERE relname = 'events'}),
	'20|1|1|row 7 stays|P0001',
	'the row that stays is counted and shown, and not tried in every pass');
ok( !$node->log_contains('row 7 stays', $log),
	'nor logged in every pass');

# older than the row that stays, and younger: both before the mark
$node->safe_psql('postgres',
	"INSERT INTO events VALUES (9, '2000-06-01'), (10, '2001-01-15')");
gone('id IN (9, 10)', 'late rows beside it expire');
is( $node->safe_psql('postgres',
		"SELECT skipped_failed FROM ttl_index.index_stats WHERE relname = 'events'"
	),
	1,
	'and do not wait until it is tried again');

$node->stop;
done_testing();
