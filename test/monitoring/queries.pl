# Copyright (c) 2026, ttl_index contributors

# The queries of the directory monitoring, without what is made to run them: they say the
# same, no error where the extension is not, and keep no table locked.  health.sql says in
# one row whether all is well, to psql and to check_postgres.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $health = slurp_file('monitoring/health.sql');
my $node = TtlNode->running("ttl_index.monitor_sleep = '1h'\n");
$node->safe_psql(
	'postgres', q{
CREATE ROLE exporter LOGIN IN ROLE pg_monitor;
CREATE ROLE stranger LOGIN;
ALTER ROLE exporter SET search_path = pg_catalog, pg_temp;
CREATE TABLE event (at timestamptz);
CREATE INDEX event_ttl ON event (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE visit (at timestamptz);
SELECT ttl_index.create_index('visit', 'at', 0, paused => true);
INSERT INTO visit VALUES ('2001-01-01');
});
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');

my $installed = $node->config_data('--sharedir') . '/ttl_index';
is(join(' ', grep { !-e "$installed/$_" } glob 'monitoring/*'), '', 'all of it is installed');

sub ask
{
	my ($database, $query) = @_;

	return $node->safe_psql($database, $query, extra_params => [ '-U', 'exporter' ]);
}

# The query of a file, without the setting before it.
sub alone
{
	my ($text) = @_;

	return $text =~ s/^SET .*;\n//mr =~ s/;\s*$//r;
}

sub says
{
	my ($wanted, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return like(ask('postgres', $health), $wanted, $name);
}

# Skipped where there is no check_postgres: its exit status is that of a check of Nagios.
sub check_postgres_is
{
	my ($status, $text, $database) = @_;
	my ($stdout, $stderr);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

  SKIP:
	{
		skip 'check_postgres is not installed', 2
		  unless grep { -x "$_/check_postgres" } split /:/, $ENV{PATH};
		IPC::Run::run(
			[ 'check_postgres', '--action=custom_query', '--host=' . $node->host, '--port=' . $node->port,
				'--dbuser=exporter', "--dbname=$database", "--query=$health", '--valtype=integer', '--critical=1' ],
			'>', \$stdout, '2>', \$stderr);
		is($? >> 8, $status, "check_postgres ends with $status");
		like($stdout . $stderr, $text, 'and says why');
	}
	return;
}

#
# Exporters
#

# The queries of a file of YAML, by their order.
sub queries_of
{
	my ($file) = @_;

	my $text = slurp_file("monitoring/$file");
	my @found;

	push @found, $2 while $text =~ /^( *)query: \|\n((?:\1 .*\n)+)/mg;
	return @found;
}

my @guarded = queries_of('postgres_exporter.yml');
my @plain = queries_of('sql_exporter.yml');
cmp_ok(scalar @plain, '>=', 5, 'there are queries');
is(scalar @guarded, scalar @plain, 'as many for one exporter as for the other');

# What a query says, in order; for the lag since 2001, which grows from one look to the
# next, only that there is one.
sub rows
{
	my ($query) = @_;

	return join "\n", sort map { s/\b\d{9}(\.\d+)?\b/lag/r } split /\n/, ask('postgres', $query);
}

# somebody else's schema of that name
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE SCHEMA ttl_index; CREATE VIEW ttl_index.databases AS SELECT 1 AS n');

while (my ($i, $query) = each @plain)
{
	my ($start) = $query =~ /^\s*(.*)/;

	isnt(rows($query), '', "it has rows: $start");
	is(rows($guarded[$i]), rows($query), 'the same for both');
	is(ask($_, $guarded[$i]), '', "and nothing, without an error, where the extension is not: $_")
	  foreach 'template1', 'other';
}
is( ask('postgres', join ";\n", 'BEGIN', map({ "SELECT count(*) > 0 FROM ($_) AS q" } @guarded, alone($health)), q{
SELECT string_agg(DISTINCT relation::regclass::text, ' ') FROM pg_locks
WHERE pid = pg_backend_pid() AND relation IN ('public.event'::regclass, 'public.event_ttl'::regclass, 'public.visit'::regclass)}),
	join("\n", ('t') x (1 + @guarded), ''), 'no lock of a table outlives the look at it');

# What others have made in a schema of the search_path would be called with the rights of
# the one who looks: each of these fits better than what core has.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION public.to_json(record) RETURNS json LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE FUNCTION public.concat_ws(text, text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE FUNCTION public.times(int, interval) RETURNS interval LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE OPERATOR public.* (FUNCTION = public.times, LEFTARG = int, RIGHTARG = interval);
CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
});
foreach my $query (@plain, @guarded)
{
	isnt(ask('postgres', $query), '', 'nothing of others is called by exporters');
}
foreach my $file (glob 'monitoring/*.sql')
{
	like($node->safe_psql('postgres', slurp_file($file), extra_params => [ '-U', 'watcher' ]),
		qr/^\d+\|/, "nor by $file, whoever runs it");
}
$node->safe_psql(
	'postgres', q{
DROP FUNCTION public.times(int, interval) CASCADE;
DROP FUNCTION public.to_json(record), public.concat_ws(text, text, text);
});

#
# One row
#

says(qr/^0\|all TTL indexes are well$/, 'all is well, and a paused index is not late');
check_postgres_is(0, qr/OK:.*all TTL indexes are well/, 'postgres');
check_postgres_is(3, qr/ttl_index/, 'template1');

my $session = $node->background_psql('postgres');
$session->query_safe("INSERT INTO event VALUES ('2001-01-01'); BEGIN; LOCK TABLE event");
says(qr/^1\|public\.event_ttl is table_locked: /, 'a table that is locked');
$session->query_safe('ROLLBACK');
says(qr/^1\|public\.event_ttl is behind by \d+ days/, 'an index that is behind');

$node->add_trigger('postgres', 'event', 'refuse', q{RAISE '"no" isn''t yes';});
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
says(qr/^2\|public\.event_ttl is failing: .*; public\.event_ttl is behind by \d+ days/, 'one that fails');
check_postgres_is(2, qr/CRITICAL:.* 2 .*public\.event_ttl is failing/, 'postgres');
$node->safe_psql('postgres', 'DROP TRIGGER refuse ON event');
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
says(qr/^0\|/, 'well again');

# as a monitor leaves them that has hung for long
$node->safe_psql('postgres', "UPDATE ttl_index.counters SET last_pass_end = '2001-01-01', last_pass_start = NULL");
says(qr/^1\|no pass has ended since 2001/, 'no pass for long');
$node->set('monitor_enabled', 'off');
$node->safe_psql('postgres', 'UPDATE ttl_index.counters SET last_call = NULL');
says(qr/^1\|nothing is deleted: ttl_index\.monitor_enabled is off, /, 'nothing is deleted');
my ($up) = grep { / AS up$/m } @plain;
is(ask('postgres', $up), 'postgres|disabled|0', 'exporters say so');
$node->safe_psql('postgres', q{SELECT ttl_index.pause_index('event_ttl')});
says(qr/^0\|all TTL indexes are well$/, 'no problem while all TTL indexes are paused');
$node->safe_psql('postgres', q{SELECT ttl_index.unpause_index('event_ttl')});
$node->safe_psql('postgres', q{
CREATE ROLE owner;
ALTER TABLE event OWNER TO owner;
SET SESSION AUTHORIZATION owner;
CALL ttl_index.run_pass()});
says(qr/^0\|all TTL indexes are well$/, 'no problem while a session of the owner deletes');
is(ask('postgres', $up), 'postgres|disabled|1', 'nor for exporters');
$node->safe_psql('postgres', 'CREATE DATABASE empty');
$node->safe_psql('empty', 'CREATE EXTENSION ttl_index');
like(ask('empty', $health), qr/^0\|/, 'no problem where there is no TTL index');
my ($status, undef, $stderr) = $node->psql('postgres', $health, extra_params => [ '-U', 'stranger' ]);
isnt($status, 0, 'a role that may not see gets no answer');
like($stderr, qr/permission denied for view/, 'and is told why');

#
# All databases in one row
#

my $server = slurp_file('monitoring/health_server.sql');
$node->restart;
like(ask('postgres', $server), qr/^1\|the monitor has visited no database: ttl_index\.monitor_enabled is off/,
	'a monitor that is off knows nothing, which is said');

sub server_becomes
{
	my ($pattern, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $node->becomes('postgres', "SELECT (result || '|' || data) ~ '$pattern' FROM (" . alone($server) . ') AS q', $name);
}

$node->set('monitor_enabled', 'on');
$node->set('monitor_sleep', '1');
server_becomes('^0\|all ', 'the monitor has seen that all is well');
like(ask('postgres', $server), qr/^0\|all/, 'it says so to a monitoring role');
$node->add_trigger('postgres', 'event', 'refuse', q{RAISE 'no';});
$node->safe_psql('postgres', "INSERT INTO event VALUES ('2001-01-01')");
server_becomes('^1\|postgres: 1 failing, behind by \d+ days', 'in one database an index fails');
$node->safe_psql('postgres', 'DROP TRIGGER refuse ON event');
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
server_becomes('^0\|all ', 'well again');
$node->monitor_in('postgres', 'off');
server_becomes('^1\|postgres: ', 'the monitor is off in a database');
like(ask('postgres', $server), qr/monitor_enabled/, 'and that is said');

$node->stop;
done_testing();
