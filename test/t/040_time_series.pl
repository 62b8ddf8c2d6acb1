# Copyright (c) 2026, ttl_index contributors

# Time series under a clock that the test sets: rules 34 to 36 to the
# microsecond, changes of summer time, downtime, and a whole day with readers.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Faults;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $faults = Faults->new;
my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = TtlNode->configured(
	q{
ttl_index.monitor_enabled = off
ttl_index.max_clock_jump = 0
autovacuum = off
max_locks_per_transaction = 256
timezone = 'UTC'
}, name => 'series', faults => $faults);

# The microseconds of a timestamp, as PostgreSQL reads it.
sub micros
{
	return $node->safe_psql('postgres',
		"SELECT (extract(epoch FROM timestamptz '$_[0]') * 1000000)::bigint");
}

sub at
{
	$faults->clock_at(micros(shift));
}

sub sql
{
	return $node->safe_psql('postgres', shift);
}

$node->start;
sql('CREATE EXTENSION ttl_index');
at('2001-01-01 00:00:00.5+00');
is(sql('SELECT now()'), '2001-01-01 00:00:00.5+00', 'the clock is set');

#
# Rule 34: removed when the upper bound + n has come, never before
#

sql(q{
CREATE TABLE bucket (ts timestamptz, id int) PARTITION BY RANGE (ts);
CREATE TABLE bucket_1 PARTITION OF bucket FOR VALUES FROM ('2020-05-05 18:00:00+00') TO ('2020-05-05 18:29:59+00');
CREATE TABLE bucket_2 PARTITION OF bucket FOR VALUES FROM ('2020-05-05 18:29:59+00') TO ('2020-05-05 19:00:00+00');
INSERT INTO bucket VALUES ('2020-05-05 18:00:00+00', 1), ('2020-05-05 18:29:58.999999+00', 2), ('2020-05-05 18:29:59+00', 3);
CREATE INDEX bucket_ttl ON bucket (ts) WHERE ttl_index.expire_after_seconds(300) AND ttl_index.drop_expired_partitions();
});
at('2020-05-05 18:34:58.999999+00');
sql('CALL ttl_index.run_pass()');
is(sql('SELECT array_agg(id ORDER BY id) FROM bucket'),
	'{1,2,3}', 'a bucket is not removed a microsecond before');
at('2020-05-05 18:34:59+00');
sql('CALL ttl_index.run_pass()');
is( sql("SELECT array_agg(id), to_regclass('bucket_1') IS NULL FROM bucket"),
	'{3}|t',
	'a bucket TO 18:29:59 with 300 s is removed at 18:34:59');
sql('DROP TABLE bucket');

# before 1970 and after 2038: the clock of a server may say anything
foreach my $year (1962, 2061, 2201)
{
	at("$year-03-01 00:00+00");
	sql(qq{
CREATE TABLE y (ts timestamptz) PARTITION BY RANGE (ts);
CREATE TABLE y_1 PARTITION OF y FOR VALUES FROM ('$year-01-01') TO ('$year-02-01');
CREATE TABLE y_2 PARTITION OF y FOR VALUES FROM ('$year-02-01') TO ('$year-03-01 00:00:00.000001');
SELECT ttl_index.create_index('y', 'ts', 0, drop_expired_partitions => true);
CALL ttl_index.run_pass();
});
	is(sql("SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'y'::regclass"),
		'y_2', "rule 34 in $year");
	sql('DROP TABLE y');
}

#
# Keys that a zone reads: never before all that a bucket can hold is due
#

# At 02:00 the clocks in Berlin go forward to 03:00.  A key of 02:30 is 03:30
# of summer time; one of 03:00 is before it.
sql(q{
CREATE TABLE spring (ts timestamp) PARTITION BY RANGE (ts);
CREATE TABLE spring_1 PARTITION OF spring FOR VALUES FROM ('2020-03-28') TO ('2020-03-29 03:00');
CREATE TABLE spring_2 PARTITION OF spring FOR VALUES FROM ('2020-03-29 03:00') TO ('2020-03-30 12:00');
INSERT INTO spring VALUES ('2020-03-29 02:30');
CREATE INDEX spring_ttl ON spring (ts) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.time_zone('Europe/Berlin')
	AND ttl_index.drop_expired_partitions();
-- At 03:00 they go back to 02:00: what was written at 02:30 may be an hour old or two.
CREATE TABLE autumn (ts timestamp) PARTITION BY RANGE (ts);
CREATE TABLE autumn_1 PARTITION OF autumn FOR VALUES FROM ('2020-10-24') TO ('2020-10-25 02:30');
CREATE INDEX autumn_ttl ON autumn (ts) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.time_zone('Europe/Berlin')
	AND ttl_index.drop_expired_partitions();
CREATE TABLE day (day date) PARTITION BY RANGE (day);
CREATE TABLE day_1 PARTITION OF day FOR VALUES FROM ('2020-07-01') TO ('2020-07-02');
CREATE INDEX day_ttl ON day (day) WHERE ttl_index.expire_after_seconds(3600) AND ttl_index.time_zone('Europe/Berlin')
	AND ttl_index.drop_expired_partitions();
});
my $left = q{
SELECT coalesce(string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid::regclass::text), '')
FROM pg_inherits WHERE inhparent IN ('spring'::regclass, 'autumn'::regclass, 'day'::regclass) AND inhrelid::regclass::text !~ 'idx$'};
foreach my $case (
	# 03:00 of summer time: the bucket's bound, but not its last key
	[ '2020-03-29 01:00:00+00', 'autumn_1 day_1 spring_1 spring_2' ],
	[ '2020-03-29 01:29:59+00', 'autumn_1 day_1 spring_1 spring_2' ],
	[ '2020-03-29 02:00:00+00', 'autumn_1 day_1 spring_2' ],
	# a day and a half later the zone has settled: exact again
	[ '2020-03-30 09:59:59.999999+00', 'autumn_1 day_1 spring_2' ],
	[ '2020-03-30 10:00:00+00', 'autumn_1 day_1' ],
	# a date is its midnight: 02:00 UTC of the day before, and an hour
	[ '2020-07-01 22:59:59.999999+00', 'autumn_1 day_1' ],
	[ '2020-07-01 23:00:00+00', 'autumn_1' ],
	[ '2020-10-25 00:30:00+00', 'autumn_1' ],
	[ '2020-10-25 01:30:00+00', '' ])
{
	at($case->[0]);
	sql('CALL ttl_index.run_pass()');
	is(sql($left), $case->[1], "partitions by local time at $case->[0]");
}
sql('DROP TABLE spring, autumn, day');

#
# The example of MongoDB's manual: a sensor whose rows go after an hour
#

at('2026-11-21 18:10+00');
sql(q{
CREATE TABLE weather24h ("timestamp" timestamptz NOT NULL, sensor text, id int) PARTITION BY RANGE ("timestamp");
SELECT ttl_index.create_time_series('weather24h', 'timestamp', 'sensor', 'seconds', 86400);
SELECT ttl_index.create_index('weather24h', 'timestamp', 3600, partial_filter_expression => $$sensor = 'MDB_NYC'$$);
INSERT INTO weather24h VALUES (now(), 'MDB_NYC', 1), (now(), 'MDB_LA', 2), (now() + interval '1 hour', 'MDB_NYC', 3);
});
my $series = q{SELECT array_agg(id ORDER BY id), count(DISTINCT tableoid) FROM weather24h};
my $buckets = q{
SELECT min(inhrelid::regclass::text), count(*), max(inhrelid::regclass::text)
FROM pg_inherits WHERE inhparent = 'weather24h'::regclass AND inhrelid::regclass::text ~ '_\d'};
is( sql($buckets),
	'weather24h_2026_11_21_18|25|weather24h_2026_11_22_18',
	'a day of buckets, with names that say when');

# A dump carries all of it.
$node->command_ok(
	[ 'pg_dump', '-f', "$dir/dump.sql", $node->connstr('postgres') ],
	'dumps');
sql('CREATE DATABASE restored');
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/dump.sql",
		$node->connstr('restored')
	],
	'restores');
my $definitions = q{
SELECT string_agg(pg_get_indexdef(indexrelid) || state || coalesce(reason, ''), E'\n' ORDER BY indexrelid::regclass::text)
FROM ttl_index.indexes};
is($node->safe_psql('restored', $definitions),
	sql($definitions), 'and restores the same time series');
sql('DROP DATABASE restored');

foreach my $case (
	[ '2026-11-21 19:09:59.999999+00', '{1,2,3}' ],
	[ '2026-11-21 19:10:00+00', '{2,3}' ],
	[ '2026-11-21 20:10:00+00', '{2}' ],
	[ '2026-11-22 18:59:59.999999+00', '{2}' ],
	[ '2026-11-22 19:00:00+00', '' ])
{
	at($case->[0]);
	sql('CALL ttl_index.run_pass()');
	like(sql($series), qr/^\Q$case->[1]\E\|/, "rule 35 at $case->[0]");
}
is( sql($buckets),
	'weather24h_2026_11_21_19|49|weather24h_2026_11_23_19',
	'buckets have been made, and the first one has gone');

# After downtime, what came meanwhile is in DEFAULT where no bucket was made;
# its buckets are shown until it has expired, all others are there.
at('2026-11-25 07:30+00');
sql(q{INSERT INTO weather24h VALUES (now(), 'late', 10), (now() + interval '5 minutes', 'late', 11)});
is( sql("SELECT count(*) FROM weather24h_default"), 2, 'no insert is refused');
$node->psql('postgres', 'CALL ttl_index.run_pass()');
like(
	sql("SELECT state, reason FROM ttl_index.indexes WHERE indexrelid = 'weather24h_timestamp_ttl'::regclass"),
	qr/^bucket_missing\|partition "weather24h_2026_11_25_07" is missing/,
	'rule 36: a bucket that collides with rows in DEFAULT is shown');
is( sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'weather24h'::regclass AND inhrelid::regclass::text > 'weather24h_2026_11_25_07' AND inhrelid::regclass::text ~ '_\\d'"),
	24,
	'rule 36: the next ones are made');
sql(q{INSERT INTO weather24h VALUES (now() + interval '1 hour', 'on time', 12)});
is( sql("SELECT tableoid::regclass FROM weather24h WHERE id = 12"),
	'weather24h_2026_11_25_08', 'rows that are on time do not need DEFAULT');
at('2026-11-26 07:35+00');
sql('CALL ttl_index.run_pass()');
is( sql("SELECT count(*) FROM weather24h_default"),
	0, 'rows in DEFAULT expire one by one');
is( sql("SELECT state FROM ttl_index.indexes WHERE indexrelid = 'weather24h_timestamp_ttl'::regclass"),
	'active', 'rule 36: and so it heals');

sql('DROP TABLE weather24h');
sql('SELECT ttl_index.stats_reset()');

#
# A day: inserts in order, late and early, under concurrent readers
#

at('2031-05-04 00:00+00');
sql(q{
CREATE TABLE day (ts timestamptz NOT NULL, id int, kept bool) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('day', 'ts', granularity => 'seconds', expire_after_seconds => 3600,
	delete_boundary_rows => true);
CREATE TABLE written (ts timestamptz, id int);
INSERT INTO day SELECT '2031-06-01 00:00+00'::timestamptz + g * interval '15 minutes', -g, true FROM generate_series(1, 50) AS g;
-- what is stored and should not be, or the other way round
CREATE VIEW wrong AS
	SELECT coalesce(w.id, d.id) AS id, w.ts FROM written AS w FULL JOIN (SELECT * FROM day WHERE kept IS NULL) AS d USING (ts, id)
	WHERE w.id IS NULL OR (w.ts > now() - interval '1 hour') <> (d.id IS NOT NULL);
});

# Readers who must always see what is never due.  Each is quick, but one begins
# before the other has ended: there is no moment without a lock on the table.
my $script = "$dir/read.sql";
append_to_file($script, q{
BEGIN;
SELECT 1 / (count(*) = 50)::int FROM day WHERE kept;
\sleep 10 ms
COMMIT;
});
my ($reader_out, $reader_err) = ('', '');
my $reader = IPC::Run::start(
	[
		'pgbench', '-n', '-c', '8', '-T', '600', '-f', $script,
		$node->connstr('postgres')
	],
	'>', \$reader_out, '2>', \$reader_err);
my $midnight = micros('2031-05-04 00:00+00');
my $wrong = '';
my $steps = 32;

foreach my $step (1 .. $steps)
{
	# three quarters of an hour each
	$faults->clock_at($midnight + $step * 2700 * 1_000_000);
	my $found = sql(qq{
WITH new AS (
	SELECT now() + shift AS ts, $step * 100 + row_number() OVER () AS id
	FROM (SELECT -g * interval '2 minutes' AS shift FROM generate_series(0, 9) AS g -- in order
		UNION ALL SELECT -g * interval '17 minutes' FROM generate_series(1, 9) AS g -- late, some of them due at once
		UNION ALL SELECT g * interval '120 minutes' FROM generate_series(1, 9) AS g -- early
		UNION ALL SELECT interval '100 hours' WHERE $step = 1 -- too far ahead for a bucket
	) AS shifts),
	inserted AS (INSERT INTO day SELECT ts, id FROM new RETURNING 1)
INSERT INTO written SELECT * FROM new;
CALL ttl_index.run_pass();
SELECT count(*) FROM wrong;
});
	$wrong .= " $step:$found" if $found != 0;
}
is($wrong, '', 'a day of inserts: nothing is lost, nothing that is due is left');
ok($reader->pumpable, 'the readers met no error') or diag $reader_err;
cmp_ok(
	sql("SELECT deleted_buckets FROM ttl_index.index_stats WHERE relname = 'day'"),
	'>=', 3, 'buckets are dropped in the midst of them');
$reader->signal('TERM');
$reader->finish;
sql('CALL ttl_index.run_pass()');
is( sql("SELECT count(*) FROM day WHERE kept"), 50, 'what is not due is there');
is( sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'day'::regclass AND inhrelid::regclass::text < 'day_2031_05_04_23'"),
	0,
	'the buckets of the day are gone');
is( sql("SELECT id FROM day_default WHERE kept IS NULL"),
	129, 'rows that are on time or early by some hours never needed DEFAULT');
is(sql("SELECT errors FROM ttl_index.stats"), 0, 'no errors');

#
# Several passes at once: what one has made is no other relation for the next
#

sql(q{
CREATE TABLE beside (ts timestamptz) PARTITION BY RANGE (ts);
SELECT ttl_index.create_time_series('beside', 'ts', granularity => 'minutes', expire_after_seconds => 3600000);
});
my $pass = "$dir/pass.sql";
# each waits for the locks of the others, so that it comes to know what they made
append_to_file($pass, q{
SET ttl_index.bucket_lock_timeout = '200ms';
CALL ttl_index.run_pass();
});
foreach my $day (6 .. 9)
{
	at("2031-06-$day 12:00+00");
	$node->command_checks_all(
		[ 'pgbench', '-n', '-c', '4', '-t', '1', '-f', $pass, $node->connstr('postgres') ],
		0, [qr{actually processed: 4/4}], [qr/^(?!.*WARNING)/s],
		"four passes on day $day");
}
is( sql("SELECT errors, (SELECT max(last_error) FROM ttl_index.index_stats), (SELECT state FROM ttl_index.indexes WHERE indexrelid = 'beside_ts_ttl'::regclass) FROM ttl_index.stats"),
	'0||active',
	'no pass stumbles over what another one has made');

$node->stop;
$node->has_not_crashed('no crash');
done_testing();
