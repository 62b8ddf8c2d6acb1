# Copyright (c) 2026, ttl_index contributors

# pg_cron as the driver of passes, where ttl_index is not preloaded: over a
# connection of its own and in a background worker.  And as what opens and closes a
# time window for the monitor, of a database and of an index.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $config = $ENV{PG_CONFIG} || 'pg_config';
my $sharedir = `$config --sharedir`;
chomp $sharedir;
plan skip_all => 'pg_cron is not installed'
  unless -e "$sharedir/extension/pg_cron.control";

# Before 1.5 a job runs once a minute at best.
slurp_file("$sharedir/extension/pg_cron.control") =~
  m/default_version *= *'(\d+)\.(\d+)/;
my $schedule = $1 * 100 + $2 >= 105 ? '2 seconds' : '* * * * *';

# Two servers at once, as how jobs are run is fixed when a server starts.
my @nodes;
foreach my $workers ('off', 'on')
{
	my $node = TtlNode->new("workers_$workers");

	$node->init;
	$node->append_conf(
		'postgresql.conf', qq{
shared_preload_libraries = 'pg_cron'
cron.database_name = 'postgres'
cron.use_background_workers = $workers
});
	$node->append_conf('postgresql.conf', "cron.host = '" . $node->host . "'");
	$node->start;
	push @nodes, $node;
}

foreach my $node (@nodes)
{
	$node->safe_psql(
		'postgres', q{
CREATE EXTENSION pg_cron;
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 2500);
INSERT INTO events VALUES ('2100-01-01');
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});

	# what the README says
	is( $node->safe_psql(
			'postgres',
			"SELECT cron.schedule('ttl', '$schedule', 'CALL ttl_index.run_pass()') > 0"
		),
		't',
		'a pass is scheduled on ' . $node->name);
	is( $node->safe_psql(
			'postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'ttl_index%'"
		),
		0,
		'there is no monitor on ' . $node->name);
}

# All windows at once, as each job may take a minute to begin.
my $window = TtlNode->configured(
	q{
shared_preload_libraries = 'ttl_index, pg_cron'
cron.database_name = 'postgres'
}, name => 'window');
$window->append_conf('postgresql.conf', "cron.host = '" . $window->host . "'");
$window->start;
$window->safe_psql('postgres', 'CREATE EXTENSION pg_cron');
my %jobs = (
	opens   => 'ALTER DATABASE opens RESET ttl_index.monitor_enabled',
	closes  => 'ALTER DATABASE closes SET ttl_index.monitor_enabled = off',
	goes_on => q{SELECT ttl_index.unpause_index('events_ttl')},
	pauses  => q{SELECT ttl_index.pause_index('events_ttl')});
foreach my $db (sort keys %jobs)
{
	$window->safe_psql('postgres', "CREATE DATABASE $db");
	$window->monitor_in($db, 'off') if $db eq 'opens';
	$window->safe_psql(
		$db, q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
INSERT INTO events VALUES ('2100-01-01');
SELECT ttl_index.create_index('events', 'at', 3600, name => 'events_ttl', paused => }
		  . ($db eq 'goes_on' ? 'true' : 'false') . ')');
}
foreach my $db ('opens', 'goes_on')
{
	$window->safe_psql($db, "INSERT INTO events VALUES ('2000-01-01')");
}
$window->wait_for_passes(2);
foreach my $db ('opens', 'goes_on')
{
	is($window->safe_psql($db, 'SELECT count(*) FROM events'),
		2, "outside of the window nothing expires: $db");
}
foreach my $db (sort keys %jobs)
{
	# what doc/operating.md says, with other times
	my $where = $jobs{$db} =~ /^ALTER/ ? 'postgres' : $db;

	$window->safe_psql('postgres',
		"SELECT cron.schedule_in_database('$db', '$schedule', \$\$$jobs{$db}\$\$, '$where')"
	);
}

foreach my $node (@nodes)
{
	my $name = $node->name;

	$node->drains('postgres', 'events',
		"rows expire by pg_cron on $name");
	ok( $node->poll_query_until(
			'postgres',
			"SELECT count(*) > 0 FROM cron.job_run_details WHERE status = 'succeeded'"
		),
		"pg_cron reports a success on $name")
	  or diag $node->safe_psql('postgres',
		'SELECT status, return_message FROM cron.job_run_details');
	$node->safe_psql('postgres', "SELECT cron.unschedule('ttl')");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM cron.job_run_details WHERE status NOT IN ('succeeded', 'failed')"
	) or die 'a job does not end';
	is( $node->safe_psql(
			'postgres', q{
SELECT deleted_documents, passes = (SELECT count(*) FROM cron.job_run_details WHERE status = 'succeeded')
FROM ttl_index.stats}),
		'2500|t',
		"rule 24: the passes of pg_cron are counted on $name");
	unlike(slurp_file($node->logfile),
		qr/PANIC|TRAP|was terminated by signal|ERROR/,
		"nothing fails on $name");
	$node->stop;
}

$window->drains('opens', 'events', 'a job lets the monitor into a database');
$window->drains('goes_on', 'events', 'a job lets the rows of an index expire');
$window->becomes('closes',
	q{SELECT reason LIKE 'ttl_index.monitor_enabled is off in this database%' FROM ttl_index.indexes},
	'a job keeps the monitor out of a database');
$window->becomes('pauses', q{SELECT state = 'paused' FROM ttl_index.indexes},
	'a job pauses an index');
$window->wait_for_passes(1);
foreach my $db ('closes', 'pauses')
{
	$window->safe_psql($db, "INSERT INTO events VALUES ('2000-01-01')");
}
$window->wait_for_passes(2);
foreach my $db ('closes', 'pauses')
{
	is($window->safe_psql($db, 'SELECT count(*) FROM events'),
		2, "behind the window nothing expires: $db");
}
is( $window->safe_psql(
		'postgres',
		"SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'"),
	0,
	'no job has failed');
$window->stop;
done_testing();
