# Copyright (c) 2026, ttl_index contributors

# With whose rights, and with which settings, a worker runs: those of a session of the
# tables' owner, whatever that owner has set for its sessions.  What code leaves
# behind within an owner's process is in the test owners, the survey in 073_survey.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running("ttl_index.monitor_enabled = off\n");
my $version = $node->safe_psql('postgres', "SELECT current_setting('server_version_num')::int / 10000");
my $super = $node->safe_psql('postgres', 'SELECT current_user');

# The function of the triggers notes who runs it, and all that somebody else could have left.
$node->safe_psql(
	'postgres', q{
CREATE ROLE alice NOLOGIN;
CREATE ROLE bob NOLOGIN;
GRANT bob TO alice;
CREATE SCHEMA m;
GRANT ALL ON SCHEMA m TO PUBLIC;
CREATE TABLE m.log (n serial, name text, who text, path text, leftover text, pid int DEFAULT pg_backend_pid());
GRANT SELECT, INSERT ON m.log TO PUBLIC;
GRANT USAGE ON SEQUENCE m.log_n_seq TO PUBLIC;
CREATE FUNCTION m.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'not of pg_catalog' $$;
CREATE FUNCTION m.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO m.log (name, who, path, leftover) SELECT TG_TABLE_NAME,
		concat_ws('/', session_user, current_user, current_setting('is_superuser'), current_setting('session_authorization')),
		current_setting('search_path') || lower(''), concat_ws(' ',
		(SELECT 'locks' FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() LIMIT 1),
		(SELECT 'cursors' FROM pg_cursors LIMIT 1),
		(SELECT 'statements' FROM pg_prepared_statements LIMIT 1),
		(SELECT 'tables' WHERE pg_my_temp_schema() <> 0),
		(SELECT 'setting' WHERE current_setting('work_mem') = '99kB' OR coalesce(current_setting('alice.secret', true), '') <> ''));
	RETURN NULL;
END $$;
});

# With what runs in it before the trigger that tells.
sub make_table
{
	my ($owner, $name, $body) = @_;

	$node->safe_psql(
		'postgres', qq{
SET SESSION AUTHORIZATION $owner;
CREATE TABLE m.$name (at timestamptz);
CREATE FUNCTION m.of_$name() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN $body RETURN NULL; END \$\$;
CREATE TRIGGER a AFTER DELETE ON m.$name FOR EACH ROW EXECUTE FUNCTION m.of_$name();
CREATE TRIGGER b AFTER DELETE ON m.$name FOR EACH ROW EXECUTE FUNCTION m.tell();
CREATE INDEX ${name}_ttl ON m.$name (at) WHERE ttl_index.expire_after_seconds(0);
});
	return;
}

# What a pass notes that deletes a row of each of these tables.
sub pass_notes
{
	my @tables = @_;
	my $inserts = join '', map { "INSERT INTO m.$_ VALUES ('2001-01-01');" } @tables;
	my $left = join ' + ', map { "(SELECT count(*) FROM m.$_)" } @tables;

	$node->safe_psql('postgres', "TRUNCATE m.log; $inserts");
	my (undef, undef, $stderr) = $node->psql('postgres', 'CALL ttl_index.run_pass()');
	# from 17 on core says at the start of a session which role it cannot be
	return join "\n", grep { !/NOTICE|WARNING:  permission denied to set (role|session authorization) / } split(/\n/, $stderr),
	  $node->safe_psql('postgres', "SELECT name, who, path, leftover FROM m.log ORDER BY name"),
	  $node->safe_psql('postgres', "SELECT $left");
}

make_table('alice', 'rows', '');
make_table('bob', 'rows_of_bob', '');
my $alice = 'alice/alice/off/alice|pg_catalog, pg_temp|';
my $bob = 'bob/bob/off/bob|pg_catalog, pg_temp|';
is(pass_notes('rows', 'rows_of_bob'), "rows|$alice\nrows_of_bob|$bob\n0", 'a worker is a session of the owner');

# What can be set for the sessions of a role: rows are deleted as ever.  A superuser sets it here.
# No role, library or timeout is set for the database, where the test has sessions of its own.
my @own = (
	"role = '$super'", "session_authorization = '$super'",
	"session_preload_libraries = 'none_such'", "local_preload_libraries = 'none_such'",
	'statement_timeout = 1', 'lock_timeout = 1', 'idle_in_transaction_session_timeout = 1', 'exit_on_error = on');
my @all = (
	'search_path = m, pg_catalog', 'session_replication_role = replica', 'row_security = off',
	q{log_statement = 'all'}, q{client_min_messages = error}, q{client_encoding = 'LATIN1'},
	'default_transaction_isolation = serializable', 'default_transaction_deferrable = on',
	'synchronous_commit = remote_apply', q{TimeZone = 'Asia/Tokyo'}, q{DateStyle = 'German'},
	'constraint_exclusion = on', 'enable_indexscan = off', 'jit_above_cost = 0', 'quote_all_identifiers = on',
	'zero_damaged_pages = on', 'allow_system_table_mods = on', q{alice.secret = 'x'},
	'ttl_index.batch_target_docs = 1', q{application_name = 'somebody'});
foreach my $attack ([ 'ROLE alice', @own, @all ], [ 'ROLE alice IN DATABASE postgres', @own, @all ],
	[ 'DATABASE postgres', @all ], [ 'ROLE alice', 'role = bob' ])
{
	my ($whose, @settings) = @$attack;

	$node->safe_psql('postgres', join '', map { "ALTER $whose SET $_;" } @settings);
	my $seen = "rows|$alice" . (@settings > 1 ? 'setting' : '');
	is(pass_notes('rows', 'rows_of_bob'), join("\n", $seen, "rows_of_bob|$bob" . ($whose =~ /^DATABASE/ ? 'setting' : ''), 0),
		'ALTER ' . $whose . ' SET ' . join(', ', @settings));
	$node->safe_psql('postgres', "ALTER $whose RESET ALL");
}

# Roles that cannot connect as clients.
foreach my $state (
	[ 'ALTER ROLE alice CONNECTION LIMIT 0', 'ALTER ROLE alice CONNECTION LIMIT -1' ],
	[ "ALTER ROLE alice PASSWORD NULL VALID UNTIL '2001-01-01'", "ALTER ROLE alice VALID UNTIL 'infinity'" ],
	[ 'REVOKE CONNECT ON DATABASE postgres FROM PUBLIC', 'GRANT CONNECT ON DATABASE postgres TO PUBLIC' ],
	[ 'ALTER DATABASE postgres CONNECTION LIMIT 0', 'ALTER DATABASE postgres CONNECTION LIMIT -1' ],
	[ 'ALTER ROLE alice LOGIN', 'ALTER ROLE alice NOLOGIN' ],
	[ 'ALTER ROLE alice RENAME TO "Alice in"', 'ALTER ROLE "Alice in" RENAME TO alice' ])
{
	my ($do, $undo) = @$state;

	$node->safe_psql('postgres', $do);
	my $name = $alice;
	$name =~ s/alice/Alice in/g if $do =~ /RENAME/;
	is(pass_notes('rows', 'rows_of_bob'), "rows|$name\nrows_of_bob|$bob\n0", $do);
	$node->safe_psql('postgres', $undo);
}

# What code of alice leaves behind is not there for bob, whose process is another one.  Nor are
# settings, cursors and advisory locks there for the next table of alice.
my %leave = (
	locks => 'PERFORM pg_advisory_lock(4711);',
	cursors => q{EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT 1';},
	setting => q{PERFORM set_config('work_mem', '99kB', false), set_config('alice.secret', 'x', false), set_config('search_path', 'm', false);},
	statements => q{EXECUTE 'PREPARE alice AS SELECT 1';},
	tables => 'CREATE TEMP TABLE IF NOT EXISTS log (at timestamptz);');
foreach my $what (sort keys %leave)
{
	my $kept = $what =~ /statements|tables/ ? $what : '';

	make_table('alice', "${what}_1", $leave{$what});
	make_table('alice', "${what}_2", '');
	$node->safe_psql('postgres', 'TRUNCATE m.log; ' . join '', map { "INSERT INTO m.$_ VALUES ('2001-01-01');" } "${what}_1", "${what}_2", 'rows_of_bob');
	$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
	is( $node->safe_psql('postgres', 'SELECT name, who, leftover FROM m.log ORDER BY who, n'),
		"${what}_1|alice/alice/off/alice|$what\n${what}_2|alice/alice/off/alice|$kept\nrows_of_bob|bob/bob/off/bob|",
		"what code of alice leaves behind ($what)");
	is($node->safe_psql('postgres', 'SELECT count(DISTINCT pid) FROM m.log'), 2, 'each owner has a process');
}

# Code in other languages than SQL and PL/pgSQL can leave more behind.  At most it costs its own
# table the batch, and the next one can be canceled.
my $library = TtlNode::rights_library();

SKIP:
{
	skip 'make test/perl/rights.so was not run', 4 unless $library;
	$node->safe_psql(
		'postgres', qq{
CREATE FUNCTION m.leave_cursor(text, bool) RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION m.leave_subtransaction(bool) RETURNS void LANGUAGE C AS '$library';
});
	foreach my $leftover (
		[ "leave_cursor('SELECT 1', false)", 1 ],
		[ "leave_cursor('SELECT 1', true)", 1 ],
		[ 'leave_subtransaction(false)', 1 ],
		[ 'leave_subtransaction(true)', 1 ])
	{
		my ($call, $left) = @$leftover;
		my @tables = map { "in_c_$_" } 1 .. 3;

		make_table('alice', $tables[0], "PERFORM m.$call;");
		make_table('alice', $tables[1], 'PERFORM pg_sleep(3600);');
		make_table('alice', $tables[2], '');
		$node->safe_psql('postgres', "INSERT INTO m.$_ VALUES ('2001-01-01')") foreach @tables, 'rows_of_bob';
		$node->safe_psql('postgres', 'SET ttl_index.batch_timeout = 100; CALL ttl_index.run_pass()');
		is( $node->safe_psql('postgres', 'SELECT ' . join ', ', map { "(SELECT count(*) FROM m.$_)" } @tables, 'rows_of_bob'),
			"$left|1|0|0", "beside $call other rows are deleted");
		$node->safe_psql('postgres', join '', map { "DROP TABLE m.$_; DROP FUNCTION m.of_$_;" } @tables);
	}
}

# In a superuser's batch code is restricted as in maintenance: triggers of others may be below it.
make_table($super, 'rows_of_superuser', '');
is( pass_notes('rows_of_superuser'),
	"rows_of_superuser|$super/$super/on/$super|pg_catalog, pg_temp|\n0",
	'rows of a superuser are deleted by a superuser');
make_table($super, 'restricted', 'CREATE TEMP TABLE x (id int);');
like(pass_notes('restricted'), qr/cannot create temporary table within security-restricted operation\n+1$/,
	'as a security-restricted operation');
$node->safe_psql('postgres', 'DROP TABLE m.restricted');

# An event trigger at login is for sessions of clients.
SKIP:
{
	skip 'event triggers at login came with 17', 1 if $version < 17;
	$node->safe_psql(
		'postgres', q{
CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN IF session_user IN ('alice', 'bob') THEN RAISE 'login of %', session_user; END IF; END $$;
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login();
ALTER EVENT TRIGGER at_login ENABLE ALWAYS});
	is(pass_notes('rows', 'rows_of_bob'), "rows|$alice\nrows_of_bob|$bob\n0", 'an event trigger at login is not fired');
	$node->safe_psql('postgres', 'DROP EVENT TRIGGER at_login');
}

# By the monitor as well, with settings of the server.
$node->append_conf('postgresql.conf', "search_path = 'm, pg_catalog'\ndefault_transaction_isolation = serializable\n");
$node->safe_psql('postgres', "ALTER ROLE alice SET role = '$super'; ALTER ROLE alice SET session_authorization = '$super'");
$node->safe_psql('postgres', "TRUNCATE m.log; INSERT INTO m.rows VALUES ('2001-01-01'); INSERT INTO m.rows_of_bob VALUES ('2001-01-01')");
$node->set('monitor_enabled', 'on');
$node->empties('postgres', 'm.rows', 'the monitor deletes rows of alice');
$node->empties('postgres', 'm.rows_of_bob', 'and of bob');
is($node->safe_psql('postgres', 'SELECT name, who, path, leftover FROM m.log ORDER BY name'),
	"rows|$alice\nrows_of_bob|$bob", 'in sessions of the owners');
$node->stop;
done_testing();
