# Copyright (c) 2026, ttl_index contributors

# From pass to pass: the monitor does not walk the entries of rows that are gone
# every time, finds late rows all the same, and tries rows that cannot be deleted
# again after a growing delay.  An idle pass reads little.  What a pass has to leave
# does not hide other rows: a locked row is looked at again without those that cannot
# be deleted (rule 7), rows that fall due before a mark expire as any others (rule 18),
# and a batch in block order ends where there are no rows, too.

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
});

$node->safe_psql(
	'postgres', q{
CREATE TABLE events (id int, at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});

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
		EXECUTE format('CREATE TABLE t%s (at timestamptz) WITH (autovacuum_enabled = off)', i);
		EXECUTE format('INSERT INTO t%s SELECT timestamptz ''2100-01-01'' + g * interval ''1 s'' FROM generate_series(1, 1000) AS g', i);
		EXECUTE format('CREATE INDEX ON t%s (at) WHERE ttl_index.expire_after_seconds(3600)', i);
	END LOOP;
END $$});
# The worker looks at the lag of the indexes with each pass, also where it deletes nothing.
$node->set('monitor_enabled', 'off');
# A backend tells what it read when it ends, which psql does not wait for.
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'idle'");
my $blocks_read =
  'SELECT sum(idx_blks_hit + idx_blks_read) FROM pg_statio_user_tables';
my $session = $node->background_psql('idle');
my $before = $session->query_safe($blocks_read);
$session->query_safe('SET client_min_messages = warning');
$session->query_safe('CALL ttl_index.run_pass()');
$session->query_safe('SELECT pg_stat_force_next_flush()');
my $blocks = $session->query_safe($blocks_read) - $before;
# height 1, a root above leaves, and two more; and one that says that no option is saved
cmp_ok($blocks, '<=', 410, 'an idle pass reads no more than it has to');
$session->quit;
$node->set('monitor_enabled', 'on');

#
# Entries of rows that are gone
#

my $old = $node->background_psql('postgres');
$old->query_safe(
	'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM events');
$node->safe_psql('postgres',
	q{INSERT INTO events SELECT i, timestamptz '2001-01-01' + i * interval '1 s' FROM generate_series(1, 100000) i}
);
$node->empties('postgres', 'events', 'a backlog is drained while an old snapshot is open');
$node->wait_for_passes(1);
my $read = entries_read();
$node->wait_for_passes(4);
cmp_ok(entries_read() - $read,
	'<', 100000, 'passes do not walk the dead entries every time');

$node->safe_psql('postgres',
	"INSERT INTO events VALUES (1, '2000-01-01'), (2, '2020-01-01')");
$node->empties('postgres', 'events', 'late rows at either end expire with the next pass');
$read = entries_read();
$node->safe_psql('postgres',
	"INSERT INTO events VALUES (3, timestamptz '2001-01-01' + 50000 * interval '1 s')");
$node->empties('postgres', 'events', 'so does one in the middle, while the old snapshot is open');
# of what is read, up to 32 pages belong to each look at the lag, for ttl_index.databases
cmp_ok(entries_read() - $read,
	'<', 50000, 'to find it, little more is read than where it is');

# A row that is not committed when a pass comes by; nothing is written after that.
my $late = $node->background_psql('postgres');
$late->query_safe(
	"BEGIN; INSERT INTO events VALUES (4, timestamptz '2001-01-01' + 50000 * interval '1 s')");
$node->wait_for_passes(2);
$late->query_safe('COMMIT');
$late->quit;
$node->empties('postgres', 'events', 'nor does one wait whose transaction was open for some passes');
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
$node->empties('postgres', 'events WHERE id <> 7', 'all others go');
$node->wait_for_passes(1);
my $log = -s $node->logfile;
$node->safe_psql('postgres', "INSERT INTO events VALUES (8, '2001-02-01')");
$node->empties('postgres', 'events WHERE id = 8', 'so do later ones');
$node->wait_for_passes(3);
is( $node->safe_psql(
		'postgres', q{
SELECT deleted_documents, skipped_failed, errors, last_error, last_error_sqlstate
FROM ttl_index.index_stats WHERE relname = 'events'}),
	'20|1|1|row 7 stays|P0001',
	'the row that stays is counted and shown, and not tried in every pass');
ok( !$node->log_contains('row 7 stays', $log),
	'nor logged in every pass');

# What fails in every pass is said when it begins and when its reason changes.
$log = -s $node->logfile;
$node->safe_psql(
	'postgres', q{
CREATE SCHEMA app;
CREATE TABLE app.series (id int, at timestamptz, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE app.series_2000 PARTITION OF app.series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE VIEW app.reads AS SELECT FROM app.series_2000;
CREATE INDEX series_ttl ON app.series (at)
	WHERE ttl_index.expire_after_seconds(0) AND ttl_index.drop_expired_partitions();
});
my $series =
  qr/WARNING:  could not expire rows by TTL index "series_ttl" of table "postgres\.app\.series": partition "series_2000" cannot be dropped: /;
ok($node->wait_for_log(qr/$series.*view app\.reads/, $log),
	'the log names database, schema, table and index');
$node->wait_for_passes(3);
my @said = slurp_file($node->logfile, $log) =~ m/$series/g;
is(scalar(@said), 1, 'a partition that is kept is not logged in every pass');
$node->safe_psql(
	'postgres', q{
DROP VIEW app.reads;
CREATE VIEW app.refers AS SELECT FROM app.series_2000;
});
ok($node->wait_for_log(qr/$series.*refers/, $log), 'another reason is');
$node->safe_psql('postgres', 'DROP VIEW app.refers');
$node->becomes(
	'postgres',
	"SELECT to_regclass('app.series_2000') IS NULL",
	'without one the partition goes');
$node->safe_psql(
	'postgres', q{
BEGIN;
CREATE TABLE app.series_2000 PARTITION OF app.series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE VIEW app.refers AS SELECT FROM app.series_2000;
COMMIT;
});
ok( $node->wait_for_log(qr/$series.*refers.*$series.*refers/s, $log),
	'what begins again is said again');
$node->safe_psql('postgres', 'DROP SCHEMA app CASCADE');

# older than the row that stays, and younger: both before the mark
$node->safe_psql('postgres',
	"INSERT INTO events VALUES (9, '2000-06-01'), (10, '2001-01-15')");
$node->empties('postgres', 'events WHERE id IN (9, 10)', 'late rows beside it expire');
is( $node->safe_psql('postgres',
		"SELECT skipped_failed FROM ttl_index.index_stats WHERE relname = 'events'"
	),
	1,
	'and do not wait until it is tried again');

#
# Rows that stay, and what comes behind them
#

$node->safe_psql(
	'postgres', q{
CREATE FUNCTION keep_marked() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN IF OLD.stays THEN RAISE 'row % stays', OLD.id; END IF; RETURN OLD; END $$;
});

# A table with a row that cannot be deleted, and the mark behind it.
sub make
{
	my ($name, $type, $option, $more) = @_;

	$more = $more // '';

	$node->safe_psql(
		'postgres', qq{
CREATE TABLE $name (id int, at $type, stays boolean DEFAULT false);
CREATE TRIGGER keep BEFORE DELETE ON $name FOR EACH ROW EXECUTE FUNCTION keep_marked();
INSERT INTO $name VALUES (1, '2001-01-01', true), (2, '2001-01-03', false)$more;
CREATE INDEX ${name}_ttl ON $name (at) WHERE $option;
});
	gone($name, 2);
	$node->wait_for_passes(1);
	return;
}

sub gone
{
	my ($table, $id) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM $table WHERE id = $id")
	  or die "row $id stays";
	return;
}

sub errors
{
	my ($table) = @_;

	return $node->safe_psql('postgres',
		"SELECT skipped_failed FROM ttl_index.index_stats WHERE relname = '$table'"
	);
}

#
# A locked row behind the mark
#

make('locked', 'timestamptz', 'ttl_index.expire_after_seconds(3600)');
my $holder = $node->background_psql('postgres');
$holder->query_safe(
	q{BEGIN; INSERT INTO locked VALUES (3, '2001-01-04'); COMMIT;
BEGIN; SELECT id FROM locked WHERE id = 3 FOR UPDATE});
$node->wait_for_passes(3);
is(errors('locked'), 1, 'a locked row does not cost the mark');
$holder->query_safe('COMMIT');
$holder->quit;
gone('locked', 3);

#
# More rows that cannot be deleted than are known by their tuple id: a late row on the
# same page does not wait for them, nor are they tried again for it.
#

make('many', 'timestamptz', 'ttl_index.expire_after_seconds(3600)',
	join('', map { ", ($_, '2001-01-02', true)" } 11 .. 40));
$node->poll_query_until('postgres',
	"SELECT skipped_failed = 31 FROM ttl_index.index_stats WHERE relname = 'many'")
  or die 'they are not found';
$node->wait_for_passes(1);
$node->safe_psql('postgres', "INSERT INTO many VALUES (3, '2001-01-02')");
gone('many', 3);
$node->wait_for_passes(1);
is(errors('many'), 31, 'a late row does not wait beside many that stay');

# nor does one that was locked in the passes in between, and is as old as those
for (1 .. 100)
{
	$holder = $node->background_psql('postgres');
	last
	  if $holder->query_safe(
		q{BEGIN; INSERT INTO many VALUES (4, '2001-01-02'); COMMIT;
BEGIN; SELECT id FROM many WHERE id = 4 FOR UPDATE});
	$holder->quit;
}
$node->wait_for_passes(2);
$holder->query_safe('COMMIT');
$holder->quit;
gone('many', 4);
is(errors('many'), 31, 'nor does a locked one');

#
# A locked row before many that cannot be deleted
#

$node->safe_psql(
	'postgres', q{
ALTER SYSTEM SET ttl_index.index_delete_target_time = '100ms';
SELECT pg_reload_conf();
CREATE FUNCTION keep_slowly() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_sleep(0.002); RAISE 'row % stays', OLD.id; END $$;
CREATE TABLE band (id int, at timestamptz);
CREATE TRIGGER keep BEFORE DELETE ON band FOR EACH ROW WHEN (OLD.id > 9) EXECUTE FUNCTION keep_slowly();
INSERT INTO band SELECT i, timestamptz '2001-01-01' + i * interval '1 s' FROM generate_series(9, 160) AS i;
INSERT INTO band VALUES (3, '2001-01-02');
});
$holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; SELECT id FROM band WHERE id = 9 FOR UPDATE');
$node->safe_psql('postgres',
	'CREATE INDEX band_ttl ON band (at) WHERE ttl_index.expire_after_seconds(3600)'
);
ok( $node->poll_query_until(
		'postgres', 'SELECT count(*) = 0 FROM band WHERE id = 3'),
	'a locked row keeps no pass from what is behind those');
$holder->query_safe('COMMIT');
$holder->quit;
$node->safe_psql('postgres',
	'ALTER SYSTEM RESET ttl_index.index_delete_target_time');
$node->reload;
$node->safe_psql('postgres', 'DROP TABLE band');

#
# A mark behind what falls due: the time was made longer, or a zone's changed
#

# The seconds from this instant to some from now.
sub seconds_since
{
	my ($instant) = @_;

	return $node->safe_psql('postgres',
		"SELECT extract(epoch FROM now() - timestamptz '$instant')::int");
}

make('longer', 'timestamptz', 'ttl_index.expire_after_seconds(3600)');
my $seconds = seconds_since('2001-01-02 00:00 UTC');
$node->safe_psql(
	'postgres', qq{
SELECT ttl_index.coll_mod_index('longer_ttl', $seconds);
INSERT INTO longer VALUES (3, '2001-01-02 00:00:05 UTC')});

# After the end of summer time in Berlin, at 2001-10-28 01:00 UTC, the walk goes an
# hour beyond what is due (rule 8).
my $summer = seconds_since('2001-10-28 12:00 UTC');
make('zoned', 'timestamp',
	"ttl_index.expire_after_seconds($summer) AND ttl_index.time_zone('Europe/Berlin')",
	", (3, '2001-10-28 13:00:08', false)");
$node->poll_query_until('postgres',
	"SELECT now() - $seconds * interval '1 s' > '2001-01-02 00:00:05 UTC'
	AND now() - $summer * interval '1 s' > '2001-10-28 12:00:08 UTC'");
$node->wait_for_passes(1);
is( $node->safe_psql('postgres', 'SELECT count(*) FROM longer WHERE id = 3'),
	0,
	'what falls due before a mark does not wait');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM zoned WHERE id = 3'),
	0,
	'nor does what was not due when the walk came by');
is(errors('longer'), 1, 'nor is the mark given up');

#
# A row that gets the tuple ID of one that could not be deleted
#

$node->safe_psql(
	'postgres', q{
CREATE TABLE used (id int PRIMARY KEY, at timestamptz);
CREATE TABLE uses (id int REFERENCES used);
INSERT INTO used VALUES (1, '2000-01-01'), (2, '2000-01-01');
INSERT INTO uses SELECT id FROM used;
CREATE INDEX used_ttl ON used (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->becomes('postgres',
	"SELECT skipped_failed = 2 FROM ttl_index.index_stats WHERE relname = 'used'",
	'two rows cannot be deleted');
$node->monitor_in('postgres', 'off');
$node->wait_for_no_worker;
$node->safe_psql('postgres', $_)
  foreach 'DELETE FROM uses WHERE id = 1', 'DELETE FROM used WHERE id = 1', 'VACUUM used',
  q{INSERT INTO used VALUES (3, '1999-01-01')};
is($node->safe_psql('postgres', 'SELECT ctid FROM used WHERE id = 3'),
	'(0,1)', 'another row takes the place of one of them');
$node->monitor_in('postgres', 'on');
$node->wait_for_passes(1);
is($node->safe_psql('postgres', 'SELECT id FROM used'), '2', 'and goes at once');

#
# Blocks without rows
#

# a pass alone
$node->safe_psql(
	'postgres', q{
ALTER SYSTEM SET ttl_index.monitor_enabled = off;
SELECT pg_reload_conf();
CREATE TABLE hollow (at timestamptz, filler text) WITH (fillfactor = 10);
INSERT INTO hollow SELECT '2999-01-01', repeat('x', 500) FROM generate_series(1, 5500);
ALTER TABLE hollow SET (fillfactor = 100);
INSERT INTO hollow SELECT timestamptz '2001-01-01' + g * interval '1 s', repeat('x', 100)
FROM generate_series(1, 60000) AS g ORDER BY hashint4(g);
DELETE FROM hollow WHERE at = '2999-01-01';
ANALYZE hollow;
CREATE INDEX hollow_ttl ON hollow (at) WHERE ttl_index.expire_after_seconds(3600)});
my ($stdout, $stderr);
$node->psql(
	'postgres', q{
SET client_min_messages = log;
SET ttl_index.log_min_duration = 0;
SET ttl_index.index_delete_target_docs = 0;
SET ttl_index.index_delete_target_time = 0;
SET ttl_index.batch_target_docs = 1000;
SET ttl_index.batch_target_time = '1h';
CALL ttl_index.run_pass()},
	stdout => \$stdout, stderr => \$stderr);
like($stderr, qr/"hollow_ttl" of table "postgres\.public\.hollow": deleted 60000 rows/, 'all that is due goes');
my ($batches) = $stderr =~ /"hollow_ttl" .* in (\d+) batches/;
# 3 by the index, 57 of rows, which end at the end of a block: 61 if blocks were free
cmp_ok($batches, '>', 61, 'batches that find no rows end as well');

#
# What an hour of idle passes writes, with a row a minute and a checkpoint every five
#

$node->safe_psql('postgres', 'CREATE DATABASE hour');
$node->safe_psql(
	'hour', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2100-01-01');
CHECKPOINT});
my $lsn = $node->lsn('insert');
my $five_minutes = "CALL ttl_index.run_pass();\n" x 5 . "CHECKPOINT;\n";
$node->safe_psql('hour', $five_minutes x 12);
my $written =
  $node->safe_psql('hour', "SELECT pg_current_wal_insert_lsn() - '$lsn'");
note "an idle hour wrote $written bytes of WAL";
# with checksums, as by default since 18, hint bits cost images of pages, too
cmp_ok($written, '<', 150000, 'an idle hour writes little WAL');
# autovacuum, which is off here, would add more than all of that
is( $node->safe_psql(
		'hour',
		"SELECT option_value FROM pg_class, pg_options_to_table(reloptions) WHERE oid = 'ttl_index.counters'::regclass AND option_name = 'autovacuum_analyze_threshold'"
	),
	2147483647,
	'nor are the counters analyzed');

$node->stop;
done_testing();
