# Copyright (c) 2026, ttl_index contributors

# pg_cron as the driver of passes, where ttl_index is not preloaded: over a
# connection of its own and in a background worker.

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

done_testing();
