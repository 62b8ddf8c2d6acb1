# Copyright (c) 2026, ttl_index contributors

# Where nobody deletes, everybody is told: CREATE EXTENSION, who declares a TTL, the
# view of indexes and monitor_status() say the same, whatever keeps the monitor away.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->configured("ttl_index.monitor_sleep = '1h'\n",
	name => 'primary',
	init => [ allows_streaming => 1 ]);
my $status = 'SELECT status FROM ttl_index.monitor_status()';
my $state = "SELECT state FROM ttl_index.indexes WHERE indexrelid = 't_ttl'::regclass";

sub set_line
{
	my ($line) = @_;

	$node->append_conf('postgresql.conf', "$line\n");
	return;
}

sub messages
{
	my ($sql) = @_;
	my $stderr;

	$node->psql('postgres', $sql, stderr => \$stderr);
	return $stderr;
}

# The status, its reason in the view of indexes, and in a NOTICE.
sub is_nobody
{
	my ($wanted, $reason, $name) = @_;

	$node->becomes('postgres', "SELECT ($status) = '$wanted'", "$name: the status");
	is($node->safe_psql('postgres', $state), 'no_monitor', "$name: the state");
	like(
		$node->safe_psql('postgres',
			"SELECT reason FROM ttl_index.indexes WHERE indexrelid = 't_ttl'::regclass"),
		qr/^\Q$reason\E/, "$name: the reason");
	like(
		messages("BEGIN; CREATE INDEX ON t (ts) WHERE ttl_index.expire_after_seconds(7); ROLLBACK"),
		qr/NOTICE: .*is due at once\nDETAIL:  No pass will delete it: \Q$reason\E.*\nHINT:  \w/,
		"$name: who declares is told");
	return;
}

sub is_visited
{
	my ($name) = @_;

	$node->becomes('postgres', "SELECT ($status) = 'monitor'", "$name: the status");
	is($node->safe_psql('postgres', $state), 'active', "$name: the state");
	return;
}

#
# Without preload
#

my $not_preloaded = 'ttl_index is not in shared_preload_libraries';
set_line("shared_preload_libraries = ''");
$node->start;
like(messages('CREATE EXTENSION ttl_index'),
	qr/WARNING:  rows that expire will not be deleted automatically\nDETAIL:  .*\Q$not_preloaded\E.*\nHINT:  /,
	'CREATE EXTENSION warns without preload');
$node->safe_psql(
	'postgres', q{
SET client_min_messages = warning;
CREATE TABLE t (ts timestamptz);
INSERT INTO t VALUES ('2001-01-01');
CREATE INDEX t_ttl ON t (ts) WHERE ttl_index.expire_after_seconds(60);
});
is_nobody('not_preloaded', $not_preloaded, 'without preload');
$node->safe_psql('postgres', 'CALL ttl_index.run_pass(); INSERT INTO t VALUES (\'2001-01-01\')');
is($node->safe_psql('postgres', $state), 'active', 'run_pass() serves the database');
like(
	messages('BEGIN; CREATE INDEX ON t (ts) WHERE ttl_index.expire_after_seconds(7); ROLLBACK'),
	qr/DETAIL:  The next pass begins to delete it\./,
	'and who declares is told that');
$node->safe_psql('postgres', 'DELETE FROM ttl_index.counters');

#
# Preloaded, but no slot
#

set_line("shared_preload_libraries = 'ttl_index'\nmax_worker_processes = 0\nmax_logical_replication_workers = 0");
$node->restart;
is_nobody('no_launcher', "the monitor's launcher does not run", 'without a slot for the launcher');
like(messages('BEGIN; DROP EXTENSION ttl_index CASCADE; CREATE EXTENSION ttl_index; ROLLBACK'),
	qr/WARNING:  rows that expire/, 'CREATE EXTENSION warns then, too');
set_line("max_worker_processes = 1\nttl_index.monitor_sleep = 1");
$node->restart;
is_nobody('no_worker_slot', 'no background worker slot was free', 'without a slot for a worker');
set_line("max_worker_processes = 8\nttl_index.monitor_sleep = '1h'");
$node->restart;
is_visited('with slots');

#
# Disabled, in all the ways there are
#

unlike(
	messages('BEGIN; DROP EXTENSION ttl_index CASCADE; CREATE EXTENSION ttl_index; ROLLBACK'),
	qr/WARNING/, 'CREATE EXTENSION is quiet where the monitor runs');
$node->set('monitor_enabled', 'off');
is_nobody('disabled', 'ttl_index.monitor_enabled is off', 'disabled in the server');
# the way out that is named, also where a file was changed by ALTER SYSTEM
foreach my $statement ($node->safe_psql('postgres', 'SELECT hint FROM ttl_index.monitor_status()') =~
	/^(ALTER SYSTEM SET \S+ = on), then (SELECT pg_reload_conf\(\))\. /)
{
	$node->safe_psql('postgres', $statement);
}
is_visited('enabled again by what the hint says');
foreach my $whose ('DATABASE postgres', 'ROLE ' . $node->safe_psql('postgres', 'SELECT current_user'))
{
	$node->safe_psql('postgres', "ALTER $whose SET ttl_index.monitor_enabled = off");
	is_nobody('disabled_here', 'ttl_index.monitor_enabled is off in this database', "disabled by $whose");
	$node->safe_psql('postgres', "ALTER $whose RESET ttl_index.monitor_enabled");
	is_visited("$whose reset");
}
$node->safe_psql('postgres', "SET ttl_index.monitor_enabled = off; $state");
is($node->safe_psql('postgres', "SET ttl_index.monitor_enabled = off; $state"),
	'active', 'what a session has set is its own');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET default_transaction_read_only = on');
is($node->safe_psql('postgres', "SET default_transaction_read_only = off; $status"),
	'read_only', 'a database that is read-only by default is not visited');
$node->safe_psql('postgres',
	'SET default_transaction_read_only = off; ALTER DATABASE postgres RESET ALL; ALTER DATABASE postgres IS_TEMPLATE true');
is($node->safe_psql('postgres', $status), 'not_visited', 'nor is a template');
$node->safe_psql('postgres', 'ALTER DATABASE postgres IS_TEMPLATE false');
is_visited('no template any more');

#
# Kept away by a lock on what it counts in, which takes no rights: PostgreSQL locks a table
# that a command names before it looks at them.
#

$node->safe_psql('postgres', 'CREATE ROLE stranger; GRANT TEMPORARY ON DATABASE postgres TO stranger');
my ($holder, $waiter) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$_->query_safe('SET ROLE stranger') foreach $holder, $waiter;
$holder->query_safe('BEGIN; PREPARE nothing AS DELETE FROM ttl_index.counters');
is_visited('a lock that deletes do not meet');
$waiter->query_until(qr/waits/,
	"\\echo waits\nCREATE TEMP TABLE x (y oid REFERENCES ttl_index.counters);\n");
is_nobody('counters_locked', 'table "ttl_index.counters" is locked by others', 'by two sessions without rights');
$holder->query_safe('ROLLBACK');
is_visited('unlocked');
$_->quit foreach $holder, $waiter;

#
# Kept away from the tables of one owner, by settings of that role
#

$node->safe_psql('postgres',
	q{CREATE ROLE alice; CREATE TABLE of_alice (ts timestamptz); ALTER TABLE of_alice OWNER TO alice;
CREATE INDEX of_alice_ttl ON of_alice (ts) WHERE ttl_index.expire_after_seconds(0)});
my $of_alice = "SELECT state, reason FROM ttl_index.indexes WHERE indexrelid = 'of_alice_ttl'::regclass";
foreach my $setting ([ 'ttl_index.monitor_enabled', 'off' ], [ 'default_transaction_read_only', 'on' ])
{
	my ($name, $value) = @$setting;

	$node->safe_psql('postgres', "ALTER ROLE alice SET $name = $value");
	is($node->safe_psql('postgres', $of_alice), "no_monitor|$name is $value for the owner of the table",
		"$name of the owner is seen");
	$node->safe_psql('postgres', "ALTER ROLE alice RESET $name");
	is($node->safe_psql('postgres', $of_alice), 'active|', 'and that it is gone');
}

# what deletes most of a table is a warning, also in the log
like(
	messages(
		q{BEGIN; CREATE TABLE big AS SELECT timestamptz '2001-01-01' AS at FROM generate_series(1, 10001);
CREATE INDEX ON big (at) WHERE ttl_index.expire_after_seconds(0); ROLLBACK}),
	qr/WARNING:  100 % of table "big" \(about 10001 rows\) will be deleted by the next pass\nHINT:  SELECT ttl_index.pause_index\('public.big_at_idx'\);/,
	'who declares what deletes most of a table is warned');
like(slurp_file($node->logfile), qr/WARNING:  100 % of table "big"/, 'and the log has it');

#
# On a standby, and after a restart without preload
#

$node->backup('backup');
my $standby = TtlNode->copy_of($node, 'backup', 'standby', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', "$status; $state"), "standby\nno_monitor", 'a standby says what it is');
$standby->promote;
$standby->becomes('postgres', "SELECT ($status) = 'monitor'", 'until it is promoted');
$standby->stop;

$node->safe_psql('postgres', 'DELETE FROM t');
set_line("shared_preload_libraries = ''");
$node->restart;
is($node->safe_psql('postgres', "$status; $state"), "not_preloaded\nno_monitor",
	'a restart without preload shows at once');
like(
	messages('BEGIN; CREATE INDEX ON t (ts) WHERE ttl_index.expire_after_seconds(7); ROLLBACK'),
	qr/NOTICE:  rows of table "t" will not be deleted when they are due\nDETAIL:  No pass will delete them: /,
	'also where nothing is due yet');

# The rows of a partition go by a session that has the rights of its owner.
$node->safe_psql(
	'postgres', q{
CREATE ROLE whole;
CREATE ROLE part;
CREATE TABLE parts (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE parts_rest PARTITION OF parts DEFAULT;
CREATE INDEX ON parts (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO parts VALUES ('2000-01-01');
ALTER TABLE parts OWNER TO whole;
ALTER TABLE parts_rest OWNER TO part;
});
my $parts = "SELECT relid, state FROM ttl_index.indexes WHERE relid::text ~ 'parts' ORDER BY 1; SELECT count(*) FROM parts";
$node->safe_psql('postgres', 'SET ROLE part; CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', $parts), "parts|no_monitor\nparts_rest|owner_lacks_privilege\n1",
	'a partition that the owner of the whole has no rights on is left');
$node->safe_psql('postgres', 'GRANT part TO whole; SET ROLE part; CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', $parts), "parts|no_monitor\nparts_rest|active\n0",
	'else its rows are deleted by the run_pass() of its own owner');

done_testing();
