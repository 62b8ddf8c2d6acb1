# Copyright (c) 2026, ttl_index contributors

# Primaries only: what a standby shows and refuses, promotion, databases that are
# read-only by default, single-user mode and binary upgrade.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $primary = TtlNode->configured('autovacuum = off',
	name => 'primary',
	init => [ allows_streaming => 1 ]);
$primary->start;
$primary->backup('backup');

my $standby =
  TtlNode->copy_of($primary, 'backup', 'standby', has_streaming => 1);
$standby->start;

my $launchers =
  "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'ttl_index%'";

#
# A standby
#

$primary->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at)
	WHERE at < '2090-01-01' AND ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2000-01-01'), ('2001-01-01'), ('2100-01-01');
CREATE UNLOGGED TABLE unlogged (at timestamptz);
CREATE INDEX unlogged_ttl ON unlogged (at) WHERE ttl_index.expire_after_seconds(3600);
});
$primary->drains('postgres', 'events', 'rows expire on the primary');
$primary->poll_query_until('postgres',
	'SELECT deleted_documents = 2 FROM ttl_index.stats')
  or fail('the primary counts');
# The primary stops, so that what is counted and what is due stay.
$primary->monitor_in('postgres', 'off');
$primary->wait_for_no_worker;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT array_agg(at) FROM events'),
	'{"2100-01-01 00:00:00+00"}', 'rule 30: deletes are replicated');
foreach my $view ('indexes', 'stats', 'index_stats', 'current_op', 'databases')
{
	# but for the state: nobody deletes on a standby
	my $columns = $view eq 'indexes' ? 'indexrelid, relid, key, expire_after_seconds' : '*';
	my $sql = "SELECT $columns FROM ttl_index.$view";

	is( $standby->safe_psql('postgres', $sql),
		$view =~ /^(current_op|databases)$/ ? '' : $primary->safe_psql('postgres', $sql),
		"rule 28: view $view is readable on a standby");
}

$primary->safe_psql('postgres',
	"INSERT INTO events VALUES ('2000-01-01'), ('2001-01-01')");
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is( $standby->safe_psql(
		'postgres',
		"SELECT ttl_index.due_count('events_ttl'), ttl_index.oldest_due('events_ttl')"
	),
	'2|2000-01-01 00:00:00+00',
	'rule 28: due_count() and oldest_due() work on a standby');
my ($overview) = run_command([ $standby->config_data('--bindir') . '/ttl_index_report', '--watch',
	'-h', $standby->host, '-p', $standby->port, 'postgres' ]);
like($overview, qr/The primary deletes the rows.*This is a standby/s, 'the report says that it is of a standby');
unlike($overview, qr/^ ! (?:No rows are deleted|.*no_monitor)/m, 'which is not wrong');
my ($ret, $out, $err);
foreach my $function ('due_count', 'forecast')
{
	($ret, $out, $err) = $standby->psql('postgres', "SELECT ttl_index.$function('unlogged_ttl')");
	like(
		$err,
		qr/cannot access temporary or unlogged relations during recovery/,
		"but not of what a standby does not have: $function()");
}
is($standby->safe_psql('postgres', $launchers),
	0, 'rule 28: neither launcher nor worker runs on a standby');
unlike(slurp_file($standby->logfile),
	qr/ttl_index launcher/, 'rule 28: or has been started there');

foreach my $refusal (
	[
		'CALL ttl_index.run_pass()',
		qr/ERROR:  cannot execute ttl_index\.run_pass\(\) during recovery/
	],
	[
		'SELECT ttl_index.stats_reset()',
		qr/ERROR:  cannot execute ttl_index\.stats_reset\(\)/
	],
	[
		"SELECT ttl_index.create_index('events', 'at', 60)",
		qr/ERROR:  cannot .*(in a read-only transaction|recovery)/
	],
	[
		"SELECT ttl_index.coll_mod_index('events_ttl', 60)",
		qr/ERROR:  cannot .*(in a read-only transaction|recovery)/
	],
	[
		"SELECT ttl_index.remove_ttl('events_ttl')",
		qr/ERROR:  cannot .*(in a read-only transaction|recovery)/
	],
	[
		'SELECT ttl_index.remove_all_ttl()',
		qr/ERROR:  cannot .*(in a read-only transaction|recovery)/
	])
{
	my ($sql, $message) = @$refusal;
	my ($status, $stdout, $stderr) = $standby->psql('postgres', $sql);

	isnt($status, 0, "rule 28: $sql fails on a standby");
	like($stderr, $message, "rule 28: $sql says why");
}
is( $standby->safe_psql('postgres', 'SELECT count(*) FROM events'),
	3, 'rule 28: nothing is gone on the standby');

# The same on a primary, in a transaction that may only read.
foreach my $call ("coll_mod_index('events_ttl', 60)",
	"coll_mod('events', 'at', 60)", "remove_ttl('events_ttl')",
	'remove_all_ttl()', "create_index('events', 'at', 60)",
	"drop_index('events', 'at')", 'stats_reset()')
{
	my ($status, $stdout, $stderr) = $primary->psql('postgres',
		"BEGIN READ ONLY; SELECT ttl_index.$call; ROLLBACK");

	like(
		$stderr,
		qr/ERROR:  cannot execute .* in a read-only transaction/,
		"rule 29: $call is refused in a read-only transaction");
}

#
# Promotion
#

$primary->stop;
$standby->promote;
$standby->monitor_in('postgres', 'on');
$standby->drains('postgres', 'events',
	'rule 28: after promotion the monitor starts by itself');
is( $standby->safe_psql(
		'postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_index launcher'"
	),
	1,
	'rule 28: with one launcher');
ok( $standby->poll_query_until(
		'postgres', 'SELECT deleted_documents = 4 FROM ttl_index.stats'),
	'rule 27: and goes on counting where the primary stopped');

#
# A database that is read-only by default
#

my $offset = -s $standby->logfile;
$standby->safe_psql('postgres', 'CREATE DATABASE frozen');
$standby->safe_psql('postgres',
	'ALTER DATABASE frozen SET default_transaction_read_only = on');
$standby->safe_psql(
	'frozen', q{
SET default_transaction_read_only = off;
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO events VALUES ('2000-01-01'), ('2100-01-01');
});
ok( $standby->wait_for_log(
		qr/LOG:  ttl_index is idle in database "frozen"/, $offset),
	'rule 29: the monitor says that it is idle in a read-only database');

# A row elsewhere that is due now tells when the next pass has been there.
$standby->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
$standby->drains('postgres', 'events', 'rule 29: the other databases go on');
$standby->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
$standby->drains('postgres', 'events', 'rule 29: in each pass');
is($standby->safe_psql('frozen', 'SELECT count(*) FROM events'),
	2, 'rule 29: nothing expires in a database that is read-only by default');
is( $standby->safe_psql('frozen', 'SELECT passes FROM ttl_index.stats'),
	0, 'rule 29: and no pass is counted');
my @said =
  slurp_file($standby->logfile, $offset) =~ m/idle in database "frozen"/g;
is(scalar(@said), 1, 'rule 29: it is said once');
my ($status, $stdout, $stderr) =
  $standby->psql('frozen', 'CALL ttl_index.run_pass()');
like(
	$stderr,
	qr/cannot execute ttl_index\.run_pass\(\) in a read-only transaction/,
	'rule 29: run_pass() refuses there');
$standby->safe_psql('postgres',
	'ALTER DATABASE frozen RESET default_transaction_read_only');
$standby->drains('frozen', 'events', 'rule 29: rows expire once it is not');

#
# Single-user mode and binary upgrade.  The monitor would be too quick after the
# next start, so it waits for an hour then.
#

$standby->safe_psql('postgres',
	"ALTER SYSTEM SET ttl_index.monitor_sleep = '1h'");
$standby->restart;
$standby->safe_psql('postgres', "INSERT INTO events VALUES ('2000-01-01')");
$standby->stop;

($out, $err) = ('', '');
IPC::Run::run(
	[
		$standby->installed_command('postgres'), '--single', '-D',
		$standby->data_dir, 'postgres'
	],
	'<', \"CALL ttl_index.run_pass()\nSELECT count(*) FROM events\n",
	'>', \$out, '2>', \$err);
like($err, qr/ERROR:  ttl_index\.run_pass\(\) .* single-user mode/,
	'rule 29: run_pass() refuses in single-user mode');
like($out, qr/count = "2"/, 'rule 29: nothing expires in single-user mode');
unlike("$out$err", qr/ttl_index launcher started/,
	'rule 29: no launcher runs in single-user mode');

$offset = -s $standby->logfile;
{
	# As pg_upgrade does it; here a pass would come at once.
	local %ENV = $standby->_get_env();

	command_ok(
		[
			'pg_ctl', '-w', '-D', $standby->data_dir, '-l',
			$standby->logfile, '-o', '-b -c ttl_index.monitor_sleep=1',
			'start'
		],
		'start for a binary upgrade');
	is($standby->safe_psql('postgres', "SELECT count(*) FROM events"),
		2, 'rule 29: the rows are there in a binary upgrade');
	command_ok([ 'pg_ctl', '-w', '-D', $standby->data_dir, 'stop' ],
		'stop again');
}
unlike(slurp_file($standby->logfile, $offset),
	qr/ttl_index launcher started/,
	'rule 29: no launcher is started in a binary upgrade');
like(slurp_file($standby->logfile),
	qr/ttl_index launcher started/, 'as it is otherwise');

done_testing();
