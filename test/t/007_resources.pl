# Copyright (c) 2026, ttl_index contributors

# No worker slot, no connection, settings that would get in the
# way of a worker, full disks.  Rows go as soon as they can, and exactly those
# that are gone are counted.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Faults;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $faults = Faults->new;

# Whoever fills the small WAL buffers writes them, and that is the worker.
my $node = TtlNode->configured(
	q{
autovacuum = off
restart_after_crash = on
max_connections = 5
superuser_reserved_connections = 2
max_wal_senders = 0
max_worker_processes = 2
max_logical_replication_workers = 0
min_wal_size = '2MB'
max_wal_size = '2MB'
wal_buffers = '64kB'
wal_writer_delay = '10s'
ttl_index.batch_timeout = '5min'
}, init => [ extra => ['--wal-segsize=1'] ], faults => $faults);
$node->start;

# Exactly the rows that are gone are counted.
sub is_counted
{
	my ($table, $rows, $name) = @_;

	is( $node->safe_psql(
			'postgres', qq{
SELECT deleted_documents + (SELECT count(*) FROM $table WHERE at < '2050-01-01'),
	(SELECT count(*) FROM $table WHERE at > '2050-01-01')
FROM ttl_index.index_stats WHERE indexrelname = '${table}_ttl'}),
		"$rows|1",
		"rule 27: $name");
	return;
}

sub monitor
{
	my ($value) = @_;

	$node->set('monitor_enabled', $value);
	$node->wait_for_no_worker if $value eq 'off';
	return;
}

my $table = q{
CREATE TABLE %1$s (at timestamptz) %2$s;
INSERT INTO %1$s VALUES ('2100-01-01');
CREATE INDEX %1$s_ttl ON %1$s (at) WHERE ttl_index.expire_after_seconds(0);
};
$node->safe_psql('postgres',
	'CREATE EXTENSION ttl_index; CREATE ROLE client LOGIN;'
	  . sprintf($table, 'events', ''));

#
# No worker slot: a parallel query has it
#

my $version = $node->safe_psql('postgres',
	"SELECT current_setting('server_version_num')::integer / 10000");
my $forced = $version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';

monitor('off');
my $parallel = $node->background_psql('postgres', on_error_stop => 0);
$parallel->query_until(
	qr/started/, qq{
SET $forced = on;
\\echo started
SELECT pg_sleep(3600);
});
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"
) or die 'there is no parallel worker';
my $offset = -s $node->logfile;
$node->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
monitor('on');
ok( $node->wait_for_log(
		qr/WARNING:  no background worker slot is free for ttl_index\n.*HINT:.*max_worker_processes/,
		$offset),
	'without a worker slot there is a WARNING');
is($node->safe_psql('postgres', 'SELECT count(*) FROM events'),
	2, 'and nothing is deleted');
$node->safe_psql('postgres',
	"SELECT pg_cancel_backend(leader_pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'"
);
$node->drains('postgres', 'events', 'in the same pass, once there is one, the row goes');
my @warnings = slurp_file($node->logfile, $offset) =~ m/no background worker slot/g;
is(scalar(@warnings), 1, 'there is one WARNING in a pass');

# All databases wait together: the pass goes on when there is a slot, with one WARNING.
my @databases = map { "other$_" } 1 .. 3;
foreach my $db (@databases)
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, 'CREATE EXTENSION ttl_index;' . sprintf($table, 'events', ''));
}
monitor('off');
$parallel->query_until(
	qr/again/, q{
\\echo again
SELECT pg_sleep(3600);
});
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"
) or die 'there is no parallel worker';
$offset = -s $node->logfile;
$node->safe_psql($_, "INSERT INTO events VALUES ('2000-01-01')") foreach @databases;
monitor('on');
$node->wait_for_log(qr/no background worker slot/, $offset);
$node->safe_psql('postgres',
	"SELECT pg_cancel_backend(leader_pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'"
);
$node->drains($_, 'events', "the row of $_ goes as well") foreach @databases;
@warnings = slurp_file($node->logfile, $offset) =~ m/no background worker slot/g;
is(scalar(@warnings), 1, 'there is one WARNING for all of them');
eval { $parallel->quit };
$node->safe_psql('postgres', "DROP DATABASE $_") foreach @databases;

#
# No connection: background workers do not count
#

my @clients = map {
	$node->background_psql('postgres', extra_params => [ '-U', 'client' ])
} 1 .. 3;
my ($status, $stdout, $stderr) =
  $node->psql('postgres', 'SELECT 1', extra_params => [ '-U', 'client' ]);
like($stderr, qr/remaining connection slots are reserved/,
	'the connections are used up');
$node->safe_psql('postgres', 'ALTER DATABASE postgres CONNECTION LIMIT 0');
$node->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
$node->drains('postgres', 'events', 'without a connection left, and none allowed, rows go');
$node->safe_psql('postgres', 'ALTER DATABASE postgres CONNECTION LIMIT -1');
$_->quit foreach @clients;

#
# Settings that would get in the way, each in all the places.  The trigger tells
# which ones hold in a batch, and waits longer than any of them.
#

my @settings = (
	'statement_timeout = 1',
	'lock_timeout = 1',
	'idle_in_transaction_session_timeout = 1',
	"default_transaction_isolation = 'serializable'",
	'default_transaction_deferrable = on',
	'synchronous_commit = on',
	# by which a foreign key would read all of a table, or of all its partitions
	'enable_indexscan = off',
	'enable_bitmapscan = off',
	'enable_partition_pruning = off',
	'random_page_cost = 1e10');
# it holds for the transaction in which a connection starts, too
push @settings, 'transaction_timeout = 500' if $version >= 17;
my @names = map { (split / /)[0] } @settings;
my $list = join(', ', map { "current_setting('$_')" } @names);

$node->safe_psql(
	'postgres', sprintf($table, 'gated', '') . qq{
CREATE TABLE seen (settings text);
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM pg_advisory_xact_lock(42);
	INSERT INTO public.seen SELECT concat_ws(' ', current_setting('transaction_isolation'), $list);
	RETURN OLD;
END \$\$;
CREATE TRIGGER gate BEFORE DELETE ON gated FOR EACH ROW EXECUTE FUNCTION gate();
});
my $keeper;
{
	local $ENV{PGOPTIONS} = join(' ', map { "-c $_=0" } grep { /timeout/ } @names);

	$keeper = $node->background_psql('postgres');
	$keeper->query_safe('SELECT pg_advisory_lock(42)');
	foreach my $setting (@settings)
	{
		$node->safe_psql('postgres', "$_ SET $setting")
		  foreach 'ALTER SYSTEM', 'ALTER DATABASE postgres',
		  'ALTER ROLE ' . $node->safe_psql('postgres', 'SELECT current_user');
	}
	$node->reload;
	$node->safe_psql('postgres', "INSERT INTO gated VALUES ('2000-01-01')");
	ok( $node->poll_query_until(
			'postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'ttl_index worker' AND wait_event = 'advisory' AND xact_start < clock_timestamp() - interval '700 ms'"
		),
		'lock_timeout does not end a batch');
	$keeper->query_safe('SELECT pg_advisory_unlock(42)');
	$node->drains('postgres', 'gated', 'whatever the timeouts of server, database and role');
	is( $node->safe_psql('postgres', 'SELECT settings FROM seen'),
		'read committed 0 0 0 read committed off off on on on 4'
		  . ($version >= 17 ? ' 0' : ''),
		'a batch has settings of its own');
	is( $node->safe_psql('postgres', 'SELECT errors FROM ttl_index.stats'),
		0, 'and no error is counted');

	foreach my $name (@names)
	{
		$node->safe_psql('postgres', "$_ RESET $name")
		  foreach 'ALTER SYSTEM', 'ALTER DATABASE postgres',
		  'ALTER ROLE ' . $node->safe_psql('postgres', 'SELECT current_user');
	}
	$node->reload;
}
# a new session may still be given the old ones
$node->poll_query_until('postgres',
	"SELECT current_setting('statement_timeout') = '0' AND current_setting('lock_timeout') = '0'"
) or die 'the settings stay';
$keeper->quit;

# Read-only by default, for all: idle.  A session that writes tells when.
$offset = -s $node->logfile;
$node->safe_psql('postgres',
	'ALTER SYSTEM SET default_transaction_read_only = on');
$node->reload;
ok( $node->wait_for_log(
		qr/LOG:  ttl_index is idle in database "postgres"/, $offset),
	'default_transaction_read_only for the whole server keeps the monitor idle'
);
$node->safe_psql('postgres',
	"SET default_transaction_read_only = off; INSERT INTO events VALUES ('2000-01-01')"
);
$node->safe_psql('postgres',
	'SET default_transaction_read_only = off; ALTER SYSTEM RESET default_transaction_read_only');
is($node->safe_psql('postgres', 'SELECT count(*) FROM events'),
	2, 'and nothing expires');
$node->reload;
$node->drains('postgres', 'events', 'until it is off');

#
# The disk is full, below the tablespace of a table
#

my $directory = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$directory'");
$node->safe_psql(
	'postgres', sprintf($table, 'plain', 'TABLESPACE elsewhere')
	  . sprintf($table, 'audited', '') . q{
CREATE TABLE audit (at timestamptz) TABLESPACE elsewhere;
CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.audit VALUES (OLD.at); RETURN OLD; END $$;
CREATE TRIGGER audit BEFORE DELETE ON audited FOR EACH ROW EXECUTE FUNCTION audit();
INSERT INTO plain SELECT '2000-01-01' FROM generate_series(1, 1000);
CREATE TABLE archive (at timestamptz) TABLESPACE elsewhere;
CREATE TABLE archived (at timestamptz);
CREATE INDEX archived_ttl ON archived (at) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.archive_to('archive');
});
monitor('off');
$node->safe_psql('postgres', q{
INSERT INTO audited VALUES ('2000-01-01');
INSERT INTO archived SELECT '2000-01-01' FROM generate_series(1, 50);
});
# from PostgreSQL 19 on, to read a table makes its visibility map: let it be there
$node->safe_psql('postgres', 'VACUUM');
$faults->disk_full($directory);
monitor('on');
$node->drains('postgres', 'plain', 'a full disk does not keep rows from being deleted from it');
ok( $node->poll_query_until(
		'postgres',
		"SELECT last_error_sqlstate = '53100' FROM ttl_index.index_stats WHERE indexrelname = 'audited_ttl'"
	),
	'a trigger that writes to a full disk is an error of its index');
is_counted('audited', 1, 'a row whose trigger cannot write is not counted');
$node->poll_query_until('postgres',
	"SELECT last_error_sqlstate = '53100' FROM ttl_index.index_stats WHERE indexrelname = 'archived_ttl'")
  or die 'the disk of the archive is not full';
$node->wait_for_passes(2);
is( $node->safe_psql('postgres',
		"SELECT skipped_failed, state FROM ttl_index.index_stats JOIN ttl_index.indexes USING (indexrelid) WHERE indexrelname = 'archived_ttl'"
	),
	'0|failing',
	'an archive that cannot grow is no fault of any row');
$faults->disk_full(undef);
$node->empties('postgres', 'archived', 'all go there when there is room');
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
$node->drains('postgres', 'audited', 'which goes on when there is room');

#
# Below the database: rows go, as that is what helps, and are counted while there is room.
#

$node->safe_psql(
	'postgres', sprintf($table, 'many', '') . q{
ALTER DATABASE postgres SET ttl_index.batch_target_docs = 1;
});
monitor('off');
my $counted = "SELECT deleted_documents FROM ttl_index.index_stats WHERE indexrelname = 'many_ttl'";
$node->safe_psql('postgres',
	"INSERT INTO many SELECT '2000-01-01' FROM generate_series(1, 1500)");
$node->safe_psql('postgres', 'VACUUM');
$offset = -s $node->logfile;
$faults->disk_full($node->data_dir . '/base');
monitor('on');
$node->drains('postgres', 'many', 'a full disk below the database does not keep rows from being deleted');
ok( $node->wait_for_log(
		qr/WARNING:  ttl_index cannot count what it deletes in database "postgres"\n.*DETAIL:  The disk is full/,
		$offset),
	'that they are not counted is told');
monitor('off');
$faults->disk_full(undef);
@warnings = slurp_file($node->logfile, $offset) =~ m/cannot count what it deletes/g;
is(scalar(@warnings), 1, 'once');
my $before = $node->safe_psql('postgres', $counted);
cmp_ok($before, '<', 1500, 'some are not counted');
$node->safe_psql('postgres',
	"INSERT INTO many SELECT '2000-01-01' FROM generate_series(1, 500)");
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', $counted), $before + 500, 'all are when there is room');
is( $node->safe_psql('postgres',
		'SELECT (SELECT sum(deleted_documents) FROM ttl_index.history) = deleted_documents FROM ttl_index.stats'),
	't', 'the hours add up to the same');

# Of the history alone: past hours stay among the counters.
my $past = "WHERE hour < now() - interval '20 hours'";
$node->safe_psql(
	'postgres', q{
TRUNCATE ttl_index.past_hours;
INSERT INTO ttl_index.counters
SELECT (jsonb_populate_record(NULL::ttl_index.counters, to_jsonb(c) || jsonb_build_object('hour', date_trunc('hour', now()) - interval '1 day'))).*
FROM (SELECT * FROM ttl_index.counters WHERE hour IS NOT NULL AND indexrelid = 'many_ttl'::regclass LIMIT 1) AS c,
	generate_series(1, 200);
});
$faults->disk_full($node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('ttl_index.past_hours')}));
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', "SELECT count(*) FROM ttl_index.counters $past"), 200, 'past hours stay among the counters while the history cannot grow');
$faults->disk_full(undef);
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is( $node->safe_psql('postgres',
		"SELECT (SELECT count(*) FROM ttl_index.counters $past), (SELECT count(*) FROM ttl_index.past_hours $past)"),
	'0|1', 'and are folded and moved when there is room');
monitor('on');
$node->safe_psql('postgres',
	'ALTER DATABASE postgres RESET ttl_index.batch_target_docs');

#
# Of WAL: the server crashes, twice
#

$node->safe_psql('postgres', sprintf($table, 'wal', ''));
foreach my $i (1 .. 2)
{
	monitor('off');
	$node->safe_psql('postgres',
		"INSERT INTO wal SELECT '2000-01-01' FROM generate_series(1, 60000)");
	$node->safe_psql('postgres', 'CHECKPOINT');
	$offset = -s $node->logfile;
	# the server may be gone before a session could tell that the setting is there
	$node->safe_psql('postgres', 'ALTER SYSTEM SET ttl_index.monitor_enabled = on');
	$faults->disk_full($node->data_dir . '/pg_wal');
	$node->reload;
	ok($node->wait_for_log(qr/PANIC:  could not write/, $offset),
		"a disk full of WAL crashes the server ($i)");
	$faults->disk_full(undef);
	$node->wait_for_log(
		qr/database system is ready to accept connections|aborting startup due to startup process failure|database system is shut down/,
		$offset);
	if (slurp_file($node->logfile, $offset) =~ /startup process failure|is shut down/)
	{
		$node->_update_pid(0);
		$node->start;
	}
	$node->wait_until_accepting;
	is_counted('wal', $i * 60000, 'after it exactly the rows that are gone are counted');
	$node->drains('postgres', 'wal', 'and the monitor goes on');
	is_counted('wal', $i * 60000, 'to the end');
}
my @crashed = slurp_file($node->logfile) =~ m/PANIC:  could not write/g;
note scalar(@crashed) . ' PANICs';
unlike(slurp_file($node->logfile), qr/the server crashed during a visit/,
	'which is not the fault of the index');

$node->stop;
done_testing();
