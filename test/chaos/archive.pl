# Copyright (c) 2026, ttl_index contributors

# Clients insert rows that are due, that come to be due, and that never do, while the
# monitor archives: rows to another table, by the direct way and by SQL; partitions to a
# partitioned archive and to another schema; rows to another server.  In each cycle
# something is killed: a process here or there, a server, or both servers.  Then
#
#	- each row that was ever committed is in one place, and those that are not due are
#	  where they were written;
#	- the counters say how many rows and partitions have moved;
#	- none is lost to the other server.  What is there twice came in a transaction that
#	  was committed there and not here.  Each of them is told by its number there: it has
#	  no row that was counted, and there is at most one for each kill.
#
# script/chaos calls this.

use strict;
use warnings;
use IPC::Run;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use TtlNode;

my $kills = $ENV{TTL_CHAOS_CYCLES} || 10;
my $seed = $ENV{TTL_CHAOS_SEED} || 1;
my $directory = PostgreSQL::Test::Utils::tempdir;

srand($seed);
diag("$kills kills, seed $seed");

plan skip_all => 'there is no postgres_fdw'
  unless -e TtlNode->new('look')->config_data('--sharedir') . '/extension/postgres_fdw.control';

my $cold = TtlNode->configured("restart_after_crash = on\nttl_index.monitor_enabled = off\n", name => 'cold');
my $hot = TtlNode->configured(
	q{
restart_after_crash = on
log_statement = none
autovacuum_naptime = 1s
deadlock_timeout = 100ms
checkpoint_timeout = 30s
max_locks_per_transaction = 512
ttl_index.batch_target_docs = 50
ttl_index.count_dropped_documents = on
# slower than the load, so that a worker is nearly always there
ttl_index.delete_rate_limit = 2000
}, name => 'hot');
my ($host, $port) = ($cold->host, $cold->port);

$_->start foreach $cold, $hot;

#
# The tables: each row that was committed is noted in "written" by its transaction
#

# A commit takes some time there, in which the worker waits for it.
$cold->safe_psql(
	'postgres', q{
CREATE TABLE far (id bigint, at timestamptz, tx bigint DEFAULT pg_current_xact_id()::text::bigint);
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.002); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON far DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
});
$hot->safe_psql(
	'postgres', qq{
CREATE EXTENSION ttl_index;
CREATE EXTENSION postgres_fdw;
CREATE SCHEMA cold;
CREATE SCHEMA cold_whole;
CREATE SEQUENCE ids;
CREATE SEQUENCE days;
CREATE TABLE written (id bigint, kind text, at timestamptz);

CREATE TABLE event (id bigint, at timestamptz, pad text DEFAULT repeat('x', 100));
CREATE TABLE audit (LIKE event INCLUDING DEFAULTS);
CREATE FUNCTION let() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
CREATE TRIGGER let BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION let();
CREATE TABLE cold.event (LIKE event, archived_at timestamptz DEFAULT now(), UNIQUE (id));
SELECT ttl_index.create_index('event', 'at', 60, archive_to => 'cold.event');
SELECT ttl_index.create_index('audit', 'at', 60, archive_to => 'cold.event');

-- what is not in a partition of its own is in the DEFAULT one, and moves row by row
CREATE TABLE series (id bigint, at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE series_rest PARTITION OF series DEFAULT;
CREATE TABLE cold.series (LIKE series, archived_at timestamptz DEFAULT now()) PARTITION BY RANGE (at);
CREATE TABLE cold.series_rows PARTITION OF cold.series FOR VALUES FROM ('2000-01-01') TO ('2100-01-01');
SELECT ttl_index.create_index('series', 'at', 60, drop_expired_partitions => true, archive_to => 'cold.series');
CREATE TABLE whole (LIKE series) PARTITION BY RANGE (at);
CREATE TABLE whole_rest PARTITION OF whole DEFAULT;
CREATE TABLE cold_whole.rows (LIKE whole);
SELECT ttl_index.create_index('whole', 'at', 60, drop_expired_partitions => true, archive_to => 'cold_whole.rows');

CREATE SERVER cold FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '100', fetch_size '10000');
CREATE USER MAPPING FOR CURRENT_USER SERVER cold;
CREATE TABLE far (id bigint, at timestamptz);
CREATE FOREIGN TABLE cold.far (id bigint, at timestamptz) SERVER cold;
ALTER FOREIGN TABLE cold.far OPTIONS (schema_name 'public');
CREATE FOREIGN TABLE far_read (id bigint, tx bigint) SERVER cold OPTIONS (table_name 'far');
SELECT ttl_index.create_index('far', 'at', 60, archive_to => 'cold.far');
} . q{
CREATE FUNCTION add(kind text, count int, first timestamptz, span interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('WITH new AS (INSERT INTO %I (id, at)
		SELECT nextval(''ids''), $1 + random() * $2 FROM generate_series(1, $3) RETURNING id, at)
		INSERT INTO written SELECT id, %L, at FROM new', kind, kind) USING first, span, count;
END $$;

-- A partition, full, of a day in the past, or one that comes to be due soon.
CREATE FUNCTION add_bucket(kind text, soon bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	number bigint := nextval('days');
	lower timestamptz := timestamptz '1900-01-01' + number * interval '1 day';
	span interval := '1 day';
BEGIN
	IF soon THEN
		lower := clock_timestamp() - interval '57 s';
		span := '10 ms';
	END IF;
	EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
		kind || '_' || number, kind, lower, lower + span);
	PERFORM add(kind, 100, lower, span / 2);
END $$;

CREATE FUNCTION kept_whole() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
	rel regclass;
BEGIN
	FOR rel IN SELECT oid FROM pg_class WHERE relnamespace = 'cold_whole'::regnamespace AND relkind = 'r' LOOP
		RETURN QUERY EXECUTE format('SELECT id FROM %s', rel);
	END LOOP;
END $$;

CREATE VIEW buckets AS
SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = 'cold.series'::regclass)
	+ (SELECT count(*) FROM pg_class WHERE relnamespace = 'cold_whole'::regnamespace AND relkind = 'r') - 2 AS moved;
});

# Nothing moves while it looks.  What is compared has to fit into memory, or it takes
# minutes.
my $look = q{
SET client_min_messages = warning;
SET work_mem = '1GB';
BEGIN;
LOCK TABLE event, audit, series, whole, far IN SHARE ROW EXCLUSIVE MODE;
CREATE TEMP TABLE hot ON COMMIT DROP AS
SELECT id FROM event UNION ALL SELECT id FROM audit UNION ALL SELECT id FROM series
UNION ALL SELECT id FROM whole UNION ALL SELECT id FROM far;
CREATE TEMP TABLE here ON COMMIT DROP AS
SELECT id FROM cold.event UNION ALL SELECT id FROM cold.series UNION ALL SELECT kept_whole();
CREATE TEMP TABLE there ON COMMIT DROP AS SELECT id, tx FROM far_read;
-- copies whose transaction was not committed here
CREATE TEMP TABLE copies ON COMMIT DROP AS
SELECT id, tx FROM (SELECT id, tx, max(tx) OVER (PARTITION BY id) AS last FROM there) AS t
WHERE tx < last OR id IN (SELECT id FROM hot);
ANALYZE hot, here, there, copies;
SELECT
	(SELECT count(*) FROM written WHERE id NOT IN (SELECT id FROM hot)
		AND id NOT IN (SELECT id FROM here) AND id NOT IN (SELECT id FROM there)) AS lost,
	(SELECT count(*) - count(DISTINCT id) FROM (SELECT id FROM hot UNION ALL SELECT id FROM here) AS a) AS twice,
	(SELECT count(*) FROM (SELECT id FROM hot UNION ALL SELECT id FROM here UNION ALL SELECT id FROM there) AS a
		WHERE id NOT IN (SELECT id FROM written)) AS never_written,
	(SELECT count(*) FROM written WHERE at > clock_timestamp() - interval '60 s'
		AND id NOT IN (SELECT id FROM hot)) AS too_early,
	(SELECT count(*) FROM there WHERE tx IN (SELECT tx FROM copies)) - (SELECT count(*) FROM copies) AS partly,
	(SELECT count(*) FROM here) + (SELECT count(*) FROM there) - (SELECT count(*) FROM copies)
		- s.archived_documents AS not_counted,
	(SELECT count(*) FROM there) - (SELECT count(*) FROM copies)
		- (SELECT coalesce(sum(archived_documents), 0) FROM ttl_index.index_stats WHERE relname = 'far') AS not_counted_far,
	b.moved - s.archived_buckets AS buckets,
	s.deleted_documents - s.archived_documents + s.deleted_buckets - s.archived_buckets AS deleted
FROM ttl_index.stats AS s, buckets AS b;
SELECT count(DISTINCT tx) || ' transactions of ' || count(*) || ' rows' FROM copies;
COMMIT};

#
# The clients
#

my %when = (
	past => q{timestamptz '2000-01-01', interval '300 days'},
	soon => q{clock_timestamp() - interval '60 s', interval '10 s'},
	future => q{timestamptz '2100-01-01', interval '300 days'});

sub one_of
{
	return $_[ int(rand(@_)) ];
}

sub command
{
	my ($kind) = @_;

	return sprintf(q{SELECT add_bucket('%s', %s)}, $kind, $kind eq 'whole' ? one_of('true', 'false') : 'false')
	  if $kind =~ /series|whole/ && rand() < 0.15;
	return sprintf(q{SELECT add('%s', %d, %s)}, $kind, 1 + rand(60), $when{ one_of('past', 'past', 'soon', 'future') });
}

sub start_client
{
	my ($kind) = @_;
	my $script = "$directory/$kind.sql";

	unlink $script;
	append_to_file($script, "SET lock_timeout = '2s';\n"
		  . join('', map { command($kind) . ";\nSELECT pg_sleep(0.05);\n" } 1 .. 100));
	return IPC::Run::start(
		[
			$hot->installed_command('psql'), '-X', '-q', '-A', '-t', '-d',
			$hot->connstr('postgres') . ' application_name=chaos', '-f', $script
		],
		'<', '/dev/null', '>', '/dev/null', '2>>', $hot->logfile . ".$kind");
}

#
# What is killed
#

# One of the processes of a server, which starts all of them again then.
sub kill_any
{
	my ($node, $condition) = @_;
	my $offset = -s $node->logfile;

	foreach my $attempt (1 .. 100)
	{
		my @pids = $condition
		  ? split(/\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $condition"))
		  : split(' ', `ps -o pid= --ppid $node->{_pid}`);

		# it may have ended by itself before the signal came
		if (@pids && kill('KILL', one_of(@pids)))
		{
			foreach my $look (1 .. 20)
			{
				usleep(50_000);
				next unless $node->log_contains(qr/terminated by signal 9/, $offset);
				$node->wait_for_log(qr/database system is ready to accept connections/, $offset);
				return;
			}
		}
		usleep(50_000);
	}
	die 'nothing could be killed';
}

my $in_batch = "backend_type = 'ttl_index worker' AND xact_start IS NOT NULL";
my $of_far = "application_name = 'postgres_fdw'";
my %victims = (
	'worker' => sub { $hot->crash('worker') },
	'worker in a batch' => sub { kill_any($hot, $in_batch) },
	'any process' => sub { kill_any($hot) },
	'server' => sub { $hot->crash('postmaster') },
	'immediate stop' => sub { $hot->crash('immediate stop') },
	'remote session' => sub { kill_any($cold, $of_far) },
	'remote process' => sub { kill_any($cold) },
	'remote server' => sub { $cold->crash('postmaster') },
	'remote immediate stop' => sub { $cold->crash('immediate stop') },
	'both servers' => sub { $_->crash('postmaster') foreach $cold, $hot });

#
# The cycles, of one kill each, or two
#

my ($done, $copies, %killed) = (0, '');

sub is_sound
{
	my ($when) = @_;
	my ($found, $stderr) = ('', '');

	# it may be the victim of a deadlock
	foreach my $attempt (1 .. 5)
	{
		$hot->psql('postgres', $look, stdout => \$found, stderr => \$stderr);
		last if $stderr eq '';
	}
	($found, $copies) = split(/\n/, $found);
	if (!is($found, '0|0|0|0|0|0|0|0|0', "$when: each row is in one place, and counted"))
	{
		diag('lost, twice, never written, too early, partly there, not counted, so of far, buckets, deleted');
		diag($stderr);
		return 0;
	}
	my ($transactions) = $copies =~ /(\d+) transactions/;
	return cmp_ok($transactions, '<=', $done, "$when: $copies were committed there alone");
}

my $sound = 1;
while ($done < $kills)
{
	my $victim = one_of(sort keys %victims);
	my @clients = map { start_client($_) } qw(event audit series whole far);

	usleep(300_000 + rand(1_200_000));
	$victims{$victim}->();
	$killed{$victim}++;
	$done += $victim =~ /^both/ ? 2 : 1;
	foreach my $client (@clients)
	{
		eval { $client->kill_kill(grace => 1) };
	}
	$_->recover foreach $cold, $hot;
	$hot->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'chaos'")
	  or die 'a client does not end';
	$sound = is_sound("kill $done ($victim)") or last;
	# two crashes at an index would put it aside
	$hot->safe_psql('postgres', 'SELECT ttl_index.resume()');
}

#
# The end: all that is due has moved
#

if ($sound)
{
	$cold->safe_psql('postgres', 'ALTER TABLE far DISABLE TRIGGER wait');
	ok( $hot->poll_query_until(
			'postgres', q{
SELECT count(*) = 0 FROM (SELECT at FROM event UNION ALL SELECT at FROM audit UNION ALL SELECT at FROM series
	UNION ALL SELECT at FROM whole UNION ALL SELECT at FROM far) AS a WHERE at < '2099-01-01'}),
		'in the end all that is due has moved')
	  || diag($hot->safe_psql('postgres', 'SELECT relid, state, reason FROM ttl_index.indexes WHERE state IS NOT NULL'));
	is_sound('the end');
	diag("$killed{$_} times: $_") foreach sort keys %killed;
	diag('written, of each kind: '
		  . $hot->safe_psql('postgres',
			q{SELECT string_agg(kind || ' ' || n, ', ') FROM (SELECT kind, count(*) AS n FROM written GROUP BY 1) AS k}));
	diag('deleted and archived documents, deleted and archived buckets: '
		  . $hot->safe_psql('postgres',
			'SELECT deleted_documents, archived_documents, deleted_buckets, archived_buckets FROM ttl_index.stats'));
	diag("$copies were committed on the other server alone, which has "
		  . $cold->safe_psql('postgres', q{SELECT count(*) || ', ' || count(DISTINCT id) || ' of them different' FROM far}));
}
$_->stop foreach $hot, $cold;

my $log = slurp_file($hot->logfile) . slurp_file($cold->logfile);
my @crashes = grep { !/terminated by signal 9/ } $log =~ m/^.*(?:TRAP|PANIC|terminated by signal).*$/mg;
is(join("\n", @crashes), '', 'nothing crashed that was not killed');

my %messages;
$messages{ s/\d+/N/gr }++ foreach slurp_file($hot->logfile) =~ m/\b(?:ERROR|WARNING):  (.*)$/mg;
diag("$messages{$_} times: $_") foreach sort keys %messages;

done_testing();
