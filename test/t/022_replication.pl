# Copyright (c) 2026, ttl_index contributors

# Synchronous replication without a standby, a primary that comes
# back as a standby, and logical replication.  What a standby shows is in
# 020_standby.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $primary = TtlNode->running(
	q{
autovacuum = off
wal_log_hints = on
}, name => 'primary', init => [ allows_streaming => 'logical' ]);
$primary->safe_psql(
	'postgres', q{
CREATE TABLE events (id int PRIMARY KEY, at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
});
$primary->backup('backup');
my $standby =
  TtlNode->copy_of($primary, 'backup', 'standby', has_streaming => 1);
$standby->start;

my $processes =
  "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'ttl_index%'";

sub goes
{
	my ($node, $name, $db, $table) = @_;

	$table = 'events' unless defined $table;
	ok( $node->poll_query_until(
			$db || 'postgres', "SELECT count(*) = 0 FROM $table WHERE at < '2050-01-01'"),
		$name);
	return;
}

#
# Synchronous replication, and the standby it waits for is not there
#

$primary->safe_psql('postgres',
	"ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
$primary->reload;
$primary->poll_query_until('postgres',
	"SELECT current_setting('synchronous_standby_names') = 'nobody'");
{
	local $ENV{PGOPTIONS} = '-c synchronous_commit=local';

	$primary->safe_psql('postgres',
		"INSERT INTO events SELECT i, '2000-01-01' FROM generate_series(1, 10) i");
	goes($primary, 'rows go while commits wait for a standby that is not there');
	$primary->safe_psql('postgres',
		"INSERT INTO events SELECT i, '2000-01-01' FROM generate_series(11, 20) i");
}

# A session that waits for a standby must not hold the locks of a dropped partition.
{
	local $ENV{PGOPTIONS} = '-c synchronous_commit=local';

	$primary->set('monitor_enabled', 'off');
	$primary->wait_for_no_worker;
	$primary->safe_psql(
		'postgres', q{
CREATE TABLE series (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE series_2000 PARTITION OF series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE INDEX series_ttl ON series (at) WHERE ttl_index.expire_after_seconds(0) AND ttl_index.drop_expired_partitions();
DELETE FROM events});
}
my $session = IPC::Run::start(
	[
		'psql', '-XAtq', '-d', $primary->connstr('postgres'),
		'-c', 'CALL ttl_index.run_pass()'
	],
	'>', \my $out, '2>', \my $err);
ok( $primary->poll_query_until(
		'postgres', "SELECT to_regclass('series_2000') IS NULL"),
	'a partition goes while commits of a session wait for a standby');
is( $primary->safe_psql(
		'postgres', "SET lock_timeout = '10s'; SELECT count(*) FROM series"),
	0, 'and its locks are free');
$primary->safe_psql('postgres',
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^CALL'");
$session->finish;
{
	local $ENV{PGOPTIONS} = '-c synchronous_commit=local';

	$primary->safe_psql('postgres', 'ALTER SYSTEM RESET ttl_index.monitor_enabled');
	$primary->reload;
}
$primary->stops_fast('a fast shutdown does not hang');
$primary->adjust_conf('postgresql.auto.conf', 'synchronous_standby_names',
	"''");

#
# A failover: the old primary becomes a standby of the new one
#

$standby->promote;
ok( $standby->poll_query_until('postgres', "$processes", 1),
	'after a promotion there is a launcher');
$standby->safe_psql('postgres',
	"INSERT INTO events SELECT i, '2000-01-01' FROM generate_series(101, 110) i");
goes($standby, 'and rows go');
$standby->safe_psql('postgres', 'CHECKPOINT');

# pg_rewind wants a clean shutdown, and takes the settings of the source along.
my $conf = slurp_file($primary->data_dir . '/postgresql.conf');
command_ok(
	[
		'pg_rewind', '--source-server', $standby->connstr('postgres'),
		'--target-pgdata', $primary->data_dir
	],
	'pg_rewind of the old primary');
unlink $primary->data_dir . '/postgresql.conf';
append_to_file($primary->data_dir . '/postgresql.conf', $conf);
$primary->enable_streaming($standby);
$primary->set_standby_mode;
my $offset = -s $primary->logfile;
$primary->start;
is($primary->safe_psql('postgres', $processes),
	0, 'nothing of ttl_index runs on the old primary');
$standby->safe_psql('postgres',
	"INSERT INTO events SELECT i, '2000-01-01' FROM generate_series(1, 10) i ON CONFLICT DO NOTHING");
goes($standby, 'rows go on the new primary');
$standby->wait_for_catchup($primary, 'replay', $standby->lsn('insert'));
is($primary->safe_psql('postgres', 'SELECT count(*) FROM events'),
	0, 'and are gone on the new standby');
is($primary->safe_psql('postgres', $processes), 0, 'where still nothing runs');
unlike(slurp_file($primary->logfile, $offset),
	qr/ttl_index launcher started/, 'nor has been started');
$primary->stop;

#
# Logical replication, to another database of the same server
#

my $both = q{
CREATE TABLE keyed (id int PRIMARY KEY, at timestamptz);
CREATE TABLE keyless (id int, at timestamptz);
CREATE TABLE whole (id int, at timestamptz);
};
$standby->safe_psql('postgres', 'CREATE DATABASE subscriber');
$standby->safe_psql('subscriber', $both);
$standby->safe_psql(
	'postgres', $both . q{
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE INDEX keyed_ttl ON keyed (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX keyless_ttl ON keyless (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX whole_ttl ON whole (at) WHERE ttl_index.expire_after_seconds(0);
ALTER DATABASE postgres SET ttl_index.monitor_enabled = off;
CREATE PUBLICATION everything FOR TABLE keyed, keyless, whole;
});
$standby->safe_psql('postgres',
	"SELECT pg_create_logical_replication_slot('everything', 'pgoutput')");
$standby->safe_psql('subscriber',
	'CREATE SUBSCRIPTION everything CONNECTION $$'
	  . $standby->connstr('postgres')
	  . '$$ PUBLICATION everything WITH (create_slot = false, copy_data = false)');
$standby->safe_psql('postgres',
	"INSERT INTO $_ VALUES (1, '2000-01-01'), (2, '2000-01-01'), (3, '2100-01-01')")
  foreach 'keyed', 'keyless', 'whole';
foreach my $table ('keyed', 'keyless', 'whole')
{
	$standby->poll_query_until('subscriber',
		"SELECT count(*) = 3 FROM $table")
	  or die "the rows of table $table do not arrive";
}
$standby->monitor_in('postgres', 'on');
goes($standby, 'a published table with a key expires', 'postgres', 'keyed');
goes($standby, 'so does one with REPLICA IDENTITY FULL', 'postgres', 'whole');
foreach my $table ('keyed', 'whole')
{
	goes($standby, "and the deletes of table $table arrive", 'subscriber', $table);
	is( $standby->safe_psql('subscriber', "SELECT array_agg(id) FROM $table"),
		'{3}', 'no others do');
}
$standby->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is( $standby->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM keyless), state, reason
FROM ttl_index.indexes WHERE relid = 'keyless'::regclass}),
	'3|no_replica_identity|the table is published with its deletes and has no replica identity',
	'a table without replica identity is skipped, and shown');
$standby->safe_psql('subscriber', 'DROP SUBSCRIPTION everything');

$standby->stop;
done_testing();
