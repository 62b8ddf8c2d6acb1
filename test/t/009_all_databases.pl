# Copyright (c) 2026, ttl_index contributors

# One look at the view databases, from any of them, says how the monitor does in all.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running('restart_after_crash = on');
my $view = 'ttl_index.databases';

# A database with rows that are due, and some that are not.
sub make_database
{
	my ($db, $more) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql(
		$db, q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (id int PRIMARY KEY, at timestamptz);
INSERT INTO events SELECT i, '2000-01-01' FROM generate_series(1, 10) i;
INSERT INTO events VALUES (11, '2100-01-01');
} . ($more || '')
		  . 'CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0)');
	return;
}

# The columns of the row of a database, once they are these.
sub shows
{
	my ($db, $columns, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$node->poll_query_until('postgres',
		"SELECT $columns FROM $view WHERE datname = '$db'", $expected);
	return is(
		$node->safe_psql(
			'postgres', "SELECT $columns FROM $view WHERE datname = '$db'"),
		$expected,
		$name);
}

my $states = 'indexes, not_active, failing, paused';

$node->safe_psql('postgres', 'CREATE DATABASE without_extension');
$node->safe_psql('postgres', 'CREATE DATABASE without_index');
$node->safe_psql('without_index', 'CREATE EXTENSION ttl_index');
make_database('well');
make_database('stuck',
	'CREATE TABLE details (event int REFERENCES events); INSERT INTO details VALUES (7);');
make_database('paused',
	'CREATE TABLE others (at timestamptz);
	SELECT ttl_index.create_index(\'others\', \'at\', 0, paused => true);
	INSERT INTO others VALUES (\'2000-01-01\');');
make_database('inactive',
	'CREATE UNLOGGED TABLE others (at timestamptz);
	CREATE INDEX others_ttl ON others (at) WHERE ttl_index.expire_after_seconds(0);
	UPDATE pg_index SET indisvalid = false WHERE indexrelid = \'others_ttl\'::regclass;');
$node->safe_psql('postgres',
	'CREATE DATABASE kept_out; ALTER DATABASE kept_out SET ttl_index.monitor_enabled = off');
make_database('read_only');
$node->safe_psql('postgres',
	'ALTER DATABASE read_only SET default_transaction_read_only = on');

shows('well', "$states, worst_lag = '0', reason", '1|0|0|0|t|',
	 'a database in which all is well');
shows('well', 'last_pass_end >= last_pass_start AND last_pass_end <= clock_timestamp()',
	't', 'it has had a pass');
shows('stuck', "$states, worst_lag > '20 years', reason", '1|0|1|0|t|',
	 'a row that a foreign key keeps: the index fails, and lags');
shows('paused', "$states, worst_lag = '0', reason", '2|0|0|1|t|',
	 'what is paused is wanted, and is no lag');
shows('inactive', "$states, worst_lag = '0', reason", '2|1|0|0|t|',
	 'an index that is not active');
shows('read_only', 'reason', 'default_transaction_read_only is on in this database',
	'a database that is read-only by default');
is( $node->safe_psql('postgres', "SELECT count(*) FROM $view WHERE datname LIKE 'without%'"),
	0, 'a database without TTL indexes has no row');
is( $node->safe_psql('well', "SELECT array_agg(datname ORDER BY datname) FROM $view"),
	'{inactive,paused,read_only,stuck,well}', 'each database shows all others');

# Entries of rows that were deleted are as many as a drain has left, until a vacuum.
make_database('drained', q{ALTER TABLE events SET (autovacuum_enabled = off);
	INSERT INTO events SELECT i, timestamptz '2000-01-01' + i * interval '1 s' FROM generate_series(100, 20000) i;});
shows('drained', "$states, worst_lag", '1|0|0|0|00:00:00',
	'behind a drain it is known that nothing is due');
is($node->safe_psql('drained', "SELECT ttl_index.lag('events_ttl')"), '00:00:00', 'also by lag()');
$node->safe_psql('postgres', 'DROP DATABASE drained');

# One that the monitor is kept out of is looked at all the same.
$node->safe_psql(
	'kept_out', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
INSERT INTO events VALUES ('2000-01-01');
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
});
shows('kept_out',
	"$states, worst_lag > '20 years', last_pass_start, reason",
	'1|1|0|0|t||ttl_index.monitor_enabled is off in this database',
	'a database that the monitor is kept out of');

# Who is allowed to look.
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE ROLE other LOGIN');
is( $node->safe_psql('postgres', "SELECT count(*) FROM $view", extra_params => [ '-U', 'watcher' ]),
	6, 'a member of pg_monitor sees all of them');
my ($ret, $out, $err) =
  $node->psql('postgres', "SELECT * FROM $view", extra_params => [ '-U', 'other' ]);
like($err, qr/ERROR:  permission denied for view databases/, 'others do not');

# The row of a drain: it has begun, and goes on.  A pass may begin as soon as there is an index.
make_database('drain',
	q{INSERT INTO events SELECT i, '2000-01-01' FROM generate_series(100, 200) i;
	CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_sleep(1); RETURN OLD; END';
	CREATE TRIGGER slow BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION slow();
	ALTER DATABASE drain SET ttl_index.index_delete_target_docs = 1;
	ALTER DATABASE drain SET ttl_index.batch_target_docs = 1;});
shows('drain', "last_pass_start > coalesce(last_pass_end, '-infinity') AND worst_lag > '20 years'",
	't', 'a pass that goes on has begun and not ended');
$node->safe_psql('postgres', 'DROP DATABASE drain');

# How far a drain is, and its end.  It is held at a row of its third sub-pass.
make_database('large',
	q{INSERT INTO events SELECT i, timestamptz '2001-01-01' + i * interval '1 s' FROM generate_series(100, 10000) i;
	ANALYZE events;
	CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_advisory_xact_lock(42); RETURN OLD; END';
	CREATE TRIGGER gate BEFORE DELETE ON events FOR EACH ROW WHEN (OLD.id = 5500) EXECUTE FUNCTION gate();
	ALTER DATABASE large SET ttl_index.index_delete_target_docs = 2500;
	ALTER DATABASE large SET ttl_index.batch_timeout = 0;
	ALTER DATABASE large SET ttl_index.monitor_enabled = off;});
my $keeper = $node->background_psql('large');
$keeper->query_safe('SELECT pg_advisory_lock(42)');
$node->monitor_in('large', 'on');
shows('large', "pass_left BETWEEN 4000 AND 9000, pass_time_left >= '0', worst_lag > '20 years'", 't|t|t',
	'what is left of a pass that goes on, and the time for it');
$node->becomes('large', q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE backend_type = 'ttl_index worker' AND wait_event = 'advisory'}, 'the pass is held');
my ($overview) = run_command([ $node->config_data('--bindir') . '/ttl_index_report', '--watch',
	'-h', $node->host, '-p', $node->port, 'large' ]);
like($overview, qr/1 index catches up: public.events_ttl behind by/, 'the report takes a drain for no fault');
like($overview, qr/deleted in\s+this\s+pass,\s+about\s+[\d,]+\s+rows\s+left,\s+until\s+about\s+[-\d:\s]+\(/, 'and tells its end');
unlike($overview, qr/^ !/m, 'nothing asks for attention there');
$keeper->query_safe('SELECT pg_advisory_unlock(42)');
$keeper->quit;
shows('large', "pass_left, pass_time_left, worst_lag", '||00:00:00', 'behind its end nothing is left');
$node->safe_psql('postgres', 'DROP DATABASE large');

# Names are those of now.
$node->safe_psql('postgres', 'ALTER DATABASE paused RENAME TO renamed; DROP DATABASE inactive');
is( $node->safe_psql('well', "SELECT array_agg(datname ORDER BY datname) FROM $view"),
	'{kept_out,read_only,renamed,stuck,well}', 'a rename and a DROP DATABASE show at once');
$node->safe_psql('renamed', 'DROP EXTENSION ttl_index CASCADE');
$node->becomes('postgres', "SELECT count(*) = 0 FROM $view WHERE datname = 'renamed'",
	'without the extension there is no row any more');

# An end of the launcher, and a crash.
kill 'TERM', $node->pid_of('launcher');
shows('well', "$states, worst_lag = '0'", '1|0|0|0|t',
	'a new launcher finds all of it again');
kill 'KILL', $node->pid_of('launcher');
$node->wait_until_accepting;
shows('stuck', "$states, worst_lag > '20 years'", '1|0|1|0|t',
	'likewise after a crash of the server');

# A hold is of the whole server.
shows('well', $states, '1|0|0|0', 'all is well again');
truncate $node->data_dir . '/pg_stat/ttl_index.state', 10;
shows('well', 'reason', 'file "pg_stat/ttl_index.state" is damaged',
	'a hold shows at once');
$node->safe_psql('postgres', 'SELECT ttl_index.resume()');
shows('well', 'reason', '', 'and its end');

# Where there is nothing to show, the reason is told.
$node->set('monitor_enabled', 'off');
is( $node->safe_psql('postgres', "SELECT min(reason) FROM $view"),
	'ttl_index.monitor_enabled is off', 'the monitor is off');
$node->restart;
($ret, $out, $err) = $node->psql('postgres', "SELECT * FROM $view");
is($out, '', 'behind a restart it knows nothing');
like($err,
	qr/NOTICE:  the monitor has visited no database with TTL indexes: ttl_index.monitor_enabled is off\nHINT:  ALTER SYSTEM SET ttl_index.monitor_enabled = on/,
	'which it says');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
($ret, $out, $err) = $node->psql('postgres', "SELECT * FROM $view");
is($ret . $out, '0', 'without preload there is nothing to show either');
like($err,
	qr/NOTICE:  .*: ttl_index is not in shared_preload_libraries\nHINT:  Add it/,
	'which it says as well');

$node->stop;
done_testing();
