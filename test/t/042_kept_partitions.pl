# Copyright (c) 2026, ttl_index contributors

# Partitions that are kept when they are due: what a crash between two steps leaves, who
# waits for them, and a subscriber that keeps everything.

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
autovacuum = off
ttl_index.monitor_enabled = off
ttl_index.batch_timeout = '30min'
ttl_index.count_dropped_documents = on
}, init => [ allows_streaming => 'logical' ]);

sub sql
{
	return $node->safe_psql('postgres', shift);
}

#
# A crash between two steps
#

# The event trigger stops the pass when partition hot_2000 is where the test says: it
# fires behind each command.
sql(q{
CREATE SCHEMA cold;
CREATE TABLE stop_at (place text);
CREATE TABLE watched (id oid);
CREATE FUNCTION place() RETURNS text LANGUAGE sql AS $$
	SELECT c.relnamespace::regnamespace || '.' || c.relname || ' in ' || coalesce(p.relnamespace::regnamespace || '.' || p.relname, 'none')
	FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid LEFT JOIN pg_class AS p ON p.oid = i.inhparent
	WHERE c.oid = (SELECT id FROM public.watched)
$$;
CREATE FUNCTION stop() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	IF public.place() IN (SELECT place FROM public.stop_at) THEN
		PERFORM pg_sleep(3600);
	END IF;
END $$;
CREATE EVENT TRIGGER stop ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION stop();
});

# Makes a table with a partition that is due, and its archive.
sub make
{
	my ($archive, $options) = @_;

	sql(qq{
DROP TABLE IF EXISTS hot, hot_2000, cold.hot, cold.hot_2000;
CREATE TABLE hot (id int, at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE hot_2000 PARTITION OF hot FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE hot_rest PARTITION OF hot DEFAULT;
CREATE TABLE cold.hot (LIKE hot, archived_at timestamptz DEFAULT now()) $archive;
INSERT INTO hot SELECT g, '2000-06-01' FROM generate_series(1, 1000) AS g;
SELECT ttl_index.create_index('hot', 'at', 0, name => 'hot_ttl', $options);
SELECT ttl_index.stats_reset();
TRUNCATE watched;
INSERT INTO watched VALUES ('hot_2000'::regclass);
});
	return;
}

my $where =
  q{SELECT place() || ': ' || (SELECT count(*) FROM hot) || ' + ' || (SELECT count(*) FROM cold.hot)};
my $leftover = q{
SELECT (SELECT count(*) FROM pg_constraint WHERE contype = 'c'
		AND conrelid = (SELECT id FROM watched)),
	(SELECT count(*) FROM ttl_index.indexes), (SELECT deleted_buckets FROM ttl_index.stats)};

# Kills the server in the middle of a pass, at the place.
sub crash_at
{
	my ($place) = @_;
	my $offset = -s $node->logfile;
	my ($out, $err);

	sql("INSERT INTO stop_at VALUES ('$place')");
	my $session = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', 'CALL ttl_index.run_pass()'
		],
		'>', \$out, '2>', \$err);
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
	  or die "the pass does not get to $place";
	kill 'KILL',
	  sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	$session->finish;
	$node->wait_for_log(qr/database system is ready to accept connections/, $offset);
	$node->wait_until_accepting;
	is(sql($where), 'public.hot_2000 in public.hot: 1000 + 0',
		"after a crash at '$place' all is as it was");
	is(sql($leftover), '0|3|0', 'and nothing is left over or counted');
	sql('TRUNCATE stop_at');
	return;
}

sub finishes
{
	my ($end, $what) = @_;

	sql('CALL ttl_index.run_pass()');
	is(sql($where), $end, $what);
	is( sql(
			'SELECT deleted_documents, deleted_buckets, archived_documents, archived_buckets FROM ttl_index.stats'),
		'1000|1|1000|1',
		'and it is counted once');
	is(sql("SELECT count(*) FROM ttl_index.indexes WHERE relid::text ~ 'hot_2000'"),
		0, 'and no TTL index is left on it');
	return;
}

make('PARTITION BY RANGE (at)',
	"drop_expired_partitions => true, archive_to => 'cold.hot'");
crash_at('public.hot_2000 in none');
crash_at('public.hot_2000 in cold.hot');
finishes('public.hot_2000 in cold.hot: 0 + 1000',
	'the next pass moves it to the archive');
is( sql('SELECT count(*), count(archived_at) FROM cold.hot'),
	'1000|1000', 'with the columns of the archive');

make('', "drop_expired_partitions => true, archive_to => 'cold.hot'");
crash_at('public.hot_2000 in none');
crash_at('cold.hot_2000 in none');
finishes('cold.hot_2000 in none: 0 + 0', 'the next pass moves it beside the archive');
is(sql('SELECT count(*) FROM cold.hot_2000'), 1000, 'with all rows');

make('', 'detach_expired_partitions => true');
crash_at('public.hot_2000 in none');
finishes('public.hot_2000 in none: 0 + 0', 'the next pass detaches it');
sql('DROP EVENT TRIGGER stop');

#
# Nobody waits for it longer than for a drop, and it waits for nobody for long
#

make('PARTITION BY RANGE (at)',
	"drop_expired_partitions => true, archive_to => 'cold.hot'");
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM cold.hot');
sql('CALL ttl_index.run_pass()');
is(sql($where), 'public.hot_2000 in cold.hot: 0 + 1000',
	'a reader of the archive does not keep a partition');
$reader->query_safe('COMMIT');
make('PARTITION BY RANGE (at)',
	"drop_expired_partitions => true, archive_to => 'cold.hot'");
$reader->query_safe('BEGIN; LOCK TABLE cold.hot IN SHARE UPDATE EXCLUSIVE MODE');
sql('CALL ttl_index.run_pass()');
is( sql("$where || ', ' || (SELECT (skipped_locked > 0) || ', ' || errors FROM ttl_index.stats)"),
	'public.hot_2000 in public.hot: 1000 + 0, true, 0',
	'one who changes the archive does, until the next pass');
$reader->query_safe('COMMIT');
my $err;
$node->psql(
	'postgres', 'SET client_min_messages = debug1; CALL ttl_index.run_pass()',
	stderr => \$err);
like($err, qr/table \d+ was locked for \d+\.\d{3} ms, for a partition to go/,
	'which moves it, and says for how long others waited');
is(sql('SELECT place()'), 'public.hot_2000 in cold.hot', 'and has it there');

# Leaves the partition where it is while others hold something, without an error of a timeout.
sub stays
{
	my ($locks, $what) = @_;

	$reader->query_safe("BEGIN; $locks");
	sql(q{SET ttl_index.batch_timeout = '1min'; CALL ttl_index.run_pass()});
	is( sql("SELECT place() || ', ' || (skipped_locked > 0) || ', ' || errors FROM ttl_index.stats"
		),
		'public.hot_2000 in public.hot, true, 0',
		"$what is not waited for");
	$reader->query_safe('ROLLBACK');
	return;
}

make('PARTITION BY RANGE (at)',
	"drop_expired_partitions => true, archive_to => 'cold.hot'");
sql(q{
CREATE INDEX ON cold.hot (at);
CREATE TABLE cold.hot_rest PARTITION OF cold.hot DEFAULT;
});
# ALTER INDEX ... SET TABLESPACE locks the index, and not its table
my $holds = 'SET TABLESPACE pg_default';
stays("ALTER INDEX cold.hot_at_idx $holds", 'who holds an index of the archive');
stays("ALTER INDEX hot_2000_at_idx $holds", 'who holds an index of the partition');
stays('LOCK TABLE ONLY hot IN ACCESS EXCLUSIVE MODE', 'who holds the table');
stays('LOCK TABLE hot_2000 IN ACCESS EXCLUSIVE MODE', 'who holds the partition');
stays('LOCK TABLE cold.hot_rest IN ACCESS EXCLUSIVE MODE',
	'who holds the DEFAULT partition of the archive');
finishes('public.hot_2000 in cold.hot: 0 + 1000', 'the next pass moves it');

# a table below the partition can be in another schema
make('', "drop_expired_partitions => true, archive_to => 'cold.hot'");
sql(q{
DROP TABLE hot_2000;
CREATE SCHEMA below;
CREATE TABLE hot_2000 PARTITION OF hot FOR VALUES FROM ('2000-01-01') TO ('2001-01-01') PARTITION BY RANGE (at);
CREATE TABLE below.hot_all PARTITION OF hot_2000 DEFAULT;
INSERT INTO hot SELECT g, '2000-06-01' FROM generate_series(1, 1000) AS g;
UPDATE watched SET id = 'hot_2000'::regclass;
});
finishes('cold.hot_2000 in none: 0 + 0', 'the next pass moves it');
is(sql('SELECT count(*) FROM cold.hot_all'), 1000, 'and the table below it');
sql('DROP TABLE cold.hot_2000; DROP SCHEMA below');
$reader->quit;

#
# The monitor does all that, too
#

make('PARTITION BY RANGE (at)',
	"drop_expired_partitions => true, archive_to => 'cold.hot'");
$node->set('monitor_enabled', 'on');
$node->becomes('postgres', "SELECT place() = 'public.hot_2000 in cold.hot'",
	'the monitor moves a partition');
$node->set('monitor_enabled', 'off');
$node->wait_for_no_worker;

#
# A subscriber that keeps everything: the recipe of doc/archive.md
#

my $tables = q{
CREATE TABLE visit (id int PRIMARY KEY, at timestamptz, page text);
CREATE TABLE series (id int, at timestamptz, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
};
sql('CREATE DATABASE warehouse');
$node->safe_psql('warehouse',
	$tables . 'CREATE TABLE series_all PARTITION OF series DEFAULT');
sql(
	$tables . q{
CREATE TABLE series_2000 PARTITION OF series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE series_rest PARTITION OF series DEFAULT;
CREATE PUBLICATION everything FOR TABLE visit, series WITH (publish = 'insert, update, truncate', publish_via_partition_root = true);
});
sql("SELECT pg_create_logical_replication_slot('everything', 'pgoutput')");
$node->safe_psql('warehouse',
	'CREATE SUBSCRIPTION everything CONNECTION $$'
	  . $node->connstr('postgres')
	  . '$$ PUBLICATION everything WITH (create_slot = false, copy_data = false)');
sql(q{
INSERT INTO visit VALUES (1, '2000-01-01', 'a'), (2, '2000-01-01', 'b'), (3, '2100-01-01', 'c');
UPDATE visit SET page = 'd' WHERE id = 2;
INSERT INTO series VALUES (1, '2000-06-01'), (2, '1990-06-01'), (3, '2100-01-01');
SELECT ttl_index.create_index('visit', 'at', 0), ttl_index.create_index('series', 'at', 0, drop_expired_partitions => true);
CALL ttl_index.run_pass();
INSERT INTO visit VALUES (4, '2100-01-01', 'e');
INSERT INTO series VALUES (4, '2100-01-01');
});
is( sql(
		q{SELECT (SELECT string_agg(id::text, ',' ORDER BY id) FROM visit), (SELECT string_agg(id::text, ',' ORDER BY id) FROM series)}),
	'3,4|3,4',
	'the publisher keeps what is not due');
$node->becomes(
	'warehouse', q{
SELECT (SELECT count(*) FROM visit WHERE id = 4) + (SELECT count(*) FROM series WHERE id = 4) = 2},
	'what is written after a pass arrives');
is( $node->safe_psql(
		'warehouse',
		q{SELECT (SELECT string_agg(id || page, ',' ORDER BY id) FROM visit), (SELECT string_agg(id::text, ',' ORDER BY id) FROM series)}),
	'1a,2d,3c,4e|1,2,3,4',
	'and nothing is deleted there');
is(sql("SELECT count(*) FROM ttl_index.indexes WHERE state = 'no_replica_identity'"),
	0, 'a table whose deletes are not published needs no replica identity');
$node->safe_psql('warehouse', 'DROP SUBSCRIPTION everything');

$node->stop;
done_testing();
