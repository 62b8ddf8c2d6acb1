# Copyright (c) 2026, ttl_index contributors

# The monitor pauses while a standby is behind, shows that, and goes on when it
# has caught up.  A limit of the rate that is set meanwhile is for what comes.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'ttl_index'
autovacuum = off
ttl_index.monitor_sleep = 1
ttl_index.max_replication_lag = 200ms
});
$primary->start;
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'wal_receiver_status_interval = 1');
$standby->start;

$primary->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2000-01-01');
});
ok( $primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM events'),
	'rows expire while the standby follows');

$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
# the lag is known when there is something to replay
$primary->poll_query_until('postgres',
	q{SELECT replay_lag > '500 ms' FROM pg_stat_replication, pg_current_xact_id()}
) or die 'the standby does not fall behind';
ok( $primary->poll_query_until(
		'postgres',
		q{SELECT count(*) = 1 FROM ttl_index.current_op WHERE operation = 'wait for replication'}
	),
	'the monitor pauses, and the view shows it');
like(
	$primary->safe_psql('postgres',
		q{SELECT query || ' ' || wait_event FROM pg_stat_activity WHERE backend_type = 'ttl_index worker'}
	),
	qr/^ttl_index: waiting for replication to catch up (Extension|TtlIndexReplicationLag)$/,
	'so does its activity');
$primary->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
# it looks five times a second
$primary->poll_query_until('postgres',
	q{SELECT now() - op_start > '1 s' FROM ttl_index.current_op})
  or die 'the pause does not last';
is($primary->safe_psql('postgres', 'SELECT count(*) FROM events'),
	1, 'nothing is deleted meanwhile');

$primary->safe_psql('postgres', 'CREATE DATABASE other');
$primary->safe_psql('postgres', 'DROP DATABASE other');
pass('a database can be dropped meanwhile');

$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
ok( $primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM events'),
	'it goes on when the standby has caught up');
ok( $primary->poll_query_until(
		'postgres', 'SELECT lag_pauses >= 1 FROM ttl_index.stats'),
	'the pause is counted');

#
# A limit that comes in the middle
#

$standby->stop;
$primary->safe_psql(
	'postgres', q{
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.0002); RETURN OLD; END $$;
CREATE TRIGGER slow BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION slow();
ALTER SYSTEM SET ttl_index.batch_target_time = '5s';
ALTER SYSTEM SET ttl_index.batch_target_docs = 1000;
ALTER SYSTEM SET ttl_index.index_delete_target_time = 0;
SELECT pg_reload_conf();
INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 20000);
});
$primary->poll_query_until('postgres', 'SELECT count(*) < 20000 FROM events')
  or die 'nothing is deleted';
$primary->safe_psql('postgres',
	'ALTER SYSTEM SET ttl_index.delete_rate_limit = 10');
$primary->reload;
$primary->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM ttl_index.current_op WHERE operation LIKE 'wait for%'}
) or die 'the limit has no effect';
my $rows = $primary->safe_psql('postgres', 'SELECT count(*) FROM events');
ok( $primary->poll_query_until(
		'postgres', "SELECT count(*) < $rows FROM events"),
	'no batch waits for what an earlier limit allowed');

$primary->stop;
done_testing();
