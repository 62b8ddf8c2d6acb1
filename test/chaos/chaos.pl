# Copyright (c) 2026, ttl_index contributors

# Clients insert rows, move their dates, change options, VACUUM, REINDEX
# CONCURRENTLY, ATTACH, DETACH and rename, while the monitor deletes, and in each
# cycle something is killed: a process, the postmaster, or all at once.  Then
#
#	inserted - remaining - counted = 0
#
# where each transaction that inserts notes how many rows, and "counted" is
# deleted_documents; and no row has gone that was never due.  Dates are in the years
# 2000 and 2100, so that every option that a client sets makes a row due or not for
# all of the run.  A row is noted as kept by the transaction that makes it one.
#
# script/chaos calls this.  The order of things is random: a seed gives the same
# commands, though not the same moments.

use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $cycles = $ENV{TTL_CHAOS_CYCLES} || 10;
my $seed = $ENV{TTL_CHAOS_SEED} || 1;
my $directory = PostgreSQL::Test::Utils::tempdir;

srand($seed);
diag("$cycles cycles, seed $seed");

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
restart_after_crash = on
shared_preload_libraries = 'ttl_index'
log_statement = none
log_line_prefix = '%m [%p] %e '
autovacuum_naptime = 1s
deadlock_timeout = 100ms
checkpoint_timeout = 30s
backtrace_functions = 'simple_heap_delete,simple_heap_update'
ttl_index.monitor_sleep = 1
ttl_index.batch_target_docs = 50
ttl_index.count_dropped_documents = on
});
$node->start;

#
# The tables.  all_rows names them by OID, whatever their names are.
#

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE SEQUENCE ids;
CREATE TABLE added (rows bigint);
CREATE TABLE kept (id bigint PRIMARY KEY);

CREATE TABLE plain (id bigint, at timestamptz, pad text DEFAULT repeat('x', 100));
CREATE TABLE triggered (id bigint, at timestamptz);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
CREATE TRIGGER nothing BEFORE DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION nothing();
CREATE TABLE parts (id bigint, at timestamptz) PARTITION BY LIST ((id % 4));
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES IN (3);
CREATE TABLE series (id bigint, at timestamptz) PARTITION BY RANGE (at);
SELECT format('ALTER INDEX %s RENAME TO series_ttl',
	ttl_index.create_time_series('series', 'at', granularity => 'minutes', expire_after_seconds => 3600)) \gexec
CREATE INDEX plain_ttl ON plain (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX triggered_ttl ON triggered (at) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(3600);

CREATE TABLE tables AS SELECT relname::text AS kind, oid FROM pg_class
	WHERE relname IN ('plain', 'triggered', 'parts', 'series');
CREATE VIEW all_rows AS
SELECT id, at FROM plain UNION ALL SELECT id, at FROM triggered
UNION ALL SELECT id, at FROM parts_0 UNION ALL SELECT id, at FROM parts_1
UNION ALL SELECT id, at FROM parts_2 UNION ALL SELECT id, at FROM parts_3
UNION ALL SELECT id, at FROM series;

-- Rows that are due, or not.
CREATE FUNCTION add(kind text, count int, due bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	rel regclass := (SELECT t.oid FROM tables t WHERE t.kind = $1);
	n int;
BEGIN
	EXECUTE format('WITH new AS (INSERT INTO %s (id, at)
		SELECT nextval(''ids''), timestamptz %L + random() * interval ''300 days''
		FROM generate_series(1, %s) RETURNING id, at),
		k AS (INSERT INTO kept SELECT id FROM new WHERE at > ''2050-01-01'')
		SELECT count(*) FROM new', rel, CASE WHEN due THEN '2000-01-01' ELSE '2100-01-01' END, count)
	INTO n;
	INSERT INTO added VALUES (n);
END $$;

-- Moves some rows out of the monitor's hands, or into them.
CREATE FUNCTION move(kind text, count int, due bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	rel regclass := (SELECT t.oid FROM tables t WHERE t.kind = $1);
	moved bigint[];
BEGIN
	EXECUTE format('WITH moved AS (UPDATE %1$s SET at = timestamptz %2$L + random() * interval ''300 days''
		WHERE id IN (SELECT id FROM %1$s WHERE %3$s LIMIT %4$s) AND %3$s RETURNING id)
		SELECT array_agg(id) FROM moved', rel,
		CASE WHEN due THEN '2000-01-01' ELSE '2100-01-01' END,
		CASE WHEN due THEN 'at > ''2050-01-01''' ELSE 'at < ''2050-01-01''' END, count)
	INTO moved;
	IF due THEN
		DELETE FROM kept WHERE id = ANY (moved);
	ELSE
		INSERT INTO kept SELECT unnest(moved);
	END IF;
END $$;

-- A partition in the past, full, for the monitor to drop.
CREATE FUNCTION add_bucket(day int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	lower date := date '1990-01-01' + day;
BEGIN
	EXECUTE format('CREATE TABLE bucket_%s PARTITION OF series FOR VALUES FROM (%L) TO (%L)',
		day, lower, lower + 1);
	EXECUTE format('INSERT INTO series SELECT nextval(''ids''), %L FROM generate_series(1, 100)', lower);
	INSERT INTO added VALUES (100);
END $$;
});

my $invariant = q{
SELECT (SELECT coalesce(sum(rows), 0) FROM added) - (SELECT count(*) FROM all_rows)
		- (SELECT deleted_documents FROM ttl_index.stats),
	(SELECT count(*) FROM kept k WHERE NOT EXISTS (SELECT FROM all_rows a WHERE a.id = k.id))};

#
# The clients: each a list of commands
#

sub one_of
{
	return $_[ int(rand(@_)) ];
}

my @kinds = qw(plain triggered parts series);
my @names = map { ($_, "${_}_renamed") } qw(plain triggered);
my @indexes = map { ("${_}_ttl", "${_}_ttl_renamed") } qw(plain triggered parts series);
my @seconds = (0, 3600, 86400, 2147483647);

sub other_name
{
	my ($name) = @_;

	return $name =~ /^(.*)_renamed$/ ? $1 : "${name}_renamed";
}

my %commands = (
	insert => sub {
		return sprintf(q{SELECT add('%s', %d, %s)},
			one_of(@kinds), 1 + rand(300), one_of('true', 'true', 'false'));
	},
	move => sub {
		return sprintf(q{SELECT move('%s', %d, %s)},
			one_of(@kinds), 1 + rand(200), one_of('true', 'false'));
	},
	coll_mod => sub {
		my $index = one_of(@indexes);

		return (
			sprintf(q{SELECT ttl_index.coll_mod_index('%s', %d)}, $index, one_of(@seconds)),
			sprintf(q{SELECT ttl_index.coll_mod('%s', 'at', %d)}, one_of(@names, 'parts', 'series'), one_of(@seconds)),
			sprintf(q{SELECT ttl_index.remove_ttl('%s')}, $index)
		)[ one_of(0, 0, 0, 1, 1, 1, 2) ];
	},
	vacuum => sub {
		return sprintf('%s %s',
			one_of('VACUUM', 'VACUUM (FREEZE)', 'VACUUM (ANALYZE)', 'VACUUM (INDEX_CLEANUP ON)', 'VACUUM FULL', 'ANALYZE'),
			one_of(@names, 'parts', 'parts_1', 'series', 'ttl_index.counters'));
	},
	reindex => sub {
		return one_of(
			sprintf('REINDEX INDEX CONCURRENTLY %s', one_of(@indexes)),
			sprintf('REINDEX TABLE CONCURRENTLY %s', one_of(@names, 'parts', 'parts_2', 'series')),
			'CALL ttl_index.run_pass()');
	},
	partition => sub {
		my $i = int(rand(4));

		return one_of(
			"ALTER TABLE parts DETACH PARTITION parts_$i",
			"ALTER TABLE parts DETACH PARTITION parts_$i CONCURRENTLY",
			(map { "ALTER TABLE parts ATTACH PARTITION parts_$_ FOR VALUES IN ($_)" } 0 .. 3),
			sprintf('SELECT add_bucket(%d)', rand(7000)));
	},
	rename => sub {
		my $name = one_of(@names);
		my $index = one_of(@indexes);

		return one_of(
			"ALTER TABLE $name RENAME TO " . other_name($name),
			"ALTER INDEX $index RENAME TO " . other_name($index));
	});

sub start_client
{
	my ($name) = @_;
	my $script = "$directory/$name.sql";
	my $errors = $node->logfile . ".$name";

	open(my $fh, '>', $script) or die "could not write $script: $!";
	print $fh "SET lock_timeout = '2s';\nSET statement_timeout = '10s';\n";
	print $fh $commands{$name}->() . ";\nSELECT pg_sleep(0.01);\n" foreach 1 .. 400;
	close($fh);
	return IPC::Run::start(
		[
			$node->installed_command('psql'), '-X', '-q', '-A', '-t', '-d',
			$node->connstr('postgres') . " application_name=chaos", '-f', $script
		],
		'<', '/dev/null', '>', '/dev/null', '2>>', $errors);
}

#
# What happens to the server
#

sub start_server
{
	foreach my $attempt (1 .. 300)
	{
		# as long as a process of the old one is there it does not start
		$node->{_pid} = undef;
		return if $node->start(fail_ok => 1);
		usleep(100_000);
	}
	die 'the server does not start';
}

sub postmaster
{
	return (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
}

# One of these processes, if there is one within a moment.
sub pid_of
{
	my ($condition) = @_;
	my $pid;

	foreach my $attempt (1 .. 20)
	{
		(undef, $pid) = $node->psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE $condition ORDER BY random() LIMIT 1");
		return $pid if $pid;
		usleep(50_000);
	}
	return undef;
}

sub kill_process
{
	my ($condition) = @_;

	foreach my $attempt (1 .. 5)
	{
		my $offset = -s $node->logfile;
		my $pid = pid_of($condition);

		next if !defined $pid || !kill('KILL', $pid);

		# it may have ended by itself before the signal came
		foreach my $look (1 .. 20)
		{
			usleep(100_000);
			next if !$node->log_contains(qr/was terminated by signal 9/, $offset);
			$node->wait_for_log(qr/database system is ready to accept connections/, $offset);
			return;
		}
	}
	note('there was none');
	return;
}

sub call_with_pid
{
	my ($function, $condition) = @_;
	my $pid = pid_of($condition);

	$node->psql('postgres', "SELECT $function($pid)") if defined $pid;
	return;
}

my $worker = "backend_type = 'ttl_index worker'";
my %victims = (
	'worker' => sub { kill_process($worker) },
	'worker in a batch' => sub { kill_process("$worker AND xact_start IS NOT NULL") },
	'launcher' => sub { kill_process("backend_type = 'ttl_index launcher'") },
	'client' => sub { kill_process("application_name = 'chaos' AND state = 'active'") },
	'checkpointer' => sub { kill_process("backend_type = 'checkpointer'") },
	'worker, terminated' => sub { call_with_pid('pg_terminate_backend', $worker) },
	'worker, canceled' => sub { call_with_pid('pg_cancel_backend', $worker) },
	'launcher, terminated' => sub { call_with_pid('pg_terminate_backend', "backend_type = 'ttl_index launcher'") },
	'fast restart' => sub { $node->stop('fast'); start_server() },
	'immediate restart' => sub { $node->stop('immediate'); start_server() },
	'postmaster' => sub { kill('KILL', postmaster()); start_server() },
	'all processes' => sub {
		my $postmaster = postmaster();

		# the postmaster first, or it would see its children die
		kill('KILL', $postmaster, split(' ', `ps -o pid= --ppid $postmaster`));
		start_server();
	});

# What a user does after a crash: what was being built or detached is half done.  A
# VACUUM FULL makes valid what REINDEX CONCURRENTLY had left.
sub clean_up
{
	my @half_done = split /\n/, $node->safe_psql(
		'postgres', q{
SELECT format('DROP INDEX IF EXISTS %s', indexrelid::regclass) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE relname ~ '_cc(new|old)[0-9]*$' AND (NOT indisvalid OR NOT relispartition)
UNION ALL
SELECT format('ALTER TABLE %s DETACH PARTITION %s FINALIZE', inhparent::regclass, inhrelid::regclass)
FROM pg_inherits WHERE inhdetachpending});

	$node->psql('postgres', $_) foreach @half_done;

	# two crashes at an index would put it aside
	$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
	$node->safe_psql('postgres', "SELECT move('$_', 20000, true)") foreach @kinds;
	return;
}

sub is_sound
{
	my ($when) = @_;
	my ($status, $found, $stderr) = $node->psql('postgres', $invariant);

	return is($found, '0|0', "$when: nothing is missing, nothing has gone before its time")
	  || diag($stderr);
}

my $sound = 1;
foreach my $cycle (1 .. $cycles)
{
	my $victim = one_of(sort keys %victims);
	my @clients = map { start_client($_) } sort keys %commands;

	usleep(500_000 + rand(1_500_000));
	$victims{$victim}->();
	$_->kill_kill(grace => 1) foreach @clients;
	$node->poll_query_until('postgres', 'SELECT true') or die 'the server does not come back';
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'chaos'")
	  or die 'a client does not end';
	$sound = is_sound("cycle $cycle ($victim)") or last;
	clean_up();
}

#
# The end: all that is due goes
#

if ($sound)
{
	# all of them, also what REINDEX CONCURRENTLY left and ATTACH took
	my @changes = split /\n/, $node->safe_psql(
		'postgres', q{
SELECT format('SELECT ttl_index.coll_mod_index(%s::regclass, 3600)', indexrelid)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE indisvalid AND NOT relispartition AND relname ~ '_(ttl|at_idx)'});

	$node->psql('postgres', $_) foreach @changes;
	ok( $node->poll_query_until(
			'postgres', "SELECT count(*) = 0 FROM all_rows WHERE at < '2050-01-01'"),
		'in the end all that is due is gone')
	  || diag($node->safe_psql('postgres', 'SELECT relid, indexrelid, state, reason FROM ttl_index.indexes'));
	is_sound('the end');
	is( $node->safe_psql(
			'postgres', q{
CREATE EXTENSION IF NOT EXISTS amcheck;
SELECT count(bt_index_check(c.oid, true)) >= 0 FROM pg_index i JOIN pg_class c ON c.oid = indexrelid
WHERE indisvalid AND relkind = 'i' AND c.oid >= 16384 AND relpersistence = 'p'
	AND relnamespace = 'public'::regnamespace}),
		't', 'indexes and tables agree');
	note($node->safe_psql('postgres', 'SELECT * FROM ttl_index.stats'));
}
$node->stop;

my $log = slurp_file($node->logfile);
my @crashes = grep { !/terminated by signal 9/ } $log =~ m/^.*(?:TRAP|PANIC|terminated by signal).*$/mg;
is(join("\n", @crashes), '', 'nothing crashed that was not killed')
  || diag($log =~ m/((?:.*\n){20}.*\Q$crashes[0]\E.*\n(?:.*\n){0,5})/);

# Core has some of its own when names and partitions change under a command.
my %internal;
$internal{ s/\b\d+\b/N/gr }++
  foreach $log =~ m/^\S+ \S+ \S+ \[\d+\] XX\w+ (?:ERROR|WARNING|FATAL):  (.*)$/mg;
diag("$internal{$_} times: $_") foreach sort keys %internal;

done_testing();
