# Copyright (c) 2026, ttl_index contributors

# The recipe for foreign partitions of the page on replication, as it stands there, with
# two servers: each expires what it stores, and the one in front sees what was done.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

plan skip_all => 'there is no postgres_fdw'
  unless -e TtlNode->new('look')->config_data('--sharedir') . '/extension/postgres_fdw.control';

# Passes are called by hand, so that a test knows whose they are.
my $conf = "ttl_index.monitor_enabled = off\n";
my $eu = TtlNode->configured($conf, name => 'eu');
my $front = TtlNode->configured($conf, name => 'front');

foreach my $node ($eu, $front)
{
	$node->start;
	$node->safe_psql('postgres', 'CREATE ROLE app SUPERUSER LOGIN');
	$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app');
}

# The programs of the section, in their order.
my ($section) =
  slurp_file('doc/replication.md') =~ /^## Foreign partitions\n(.*)/ms;
my ($stored, $recipe, $looks) = $section =~ /^```\n(.*?)^```\n/msg;
my ($host, $port) = ($eu->host, $eu->port);

$recipe =~ s/host 'eu\.example', port '5432'/host '$host', port '$port'/
  or die 'the recipe names no server';

# Runs statements on a server as the role "app"; returns their output and messages.
sub run
{
	my ($node, $sql) = @_;
	my ($stdout, $stderr) = ('', '');

	$node->psql(
		'app', $sql,
		stdout => \$stdout,
		stderr => \$stderr,
		on_error_die => 1,
		extra_params => [ '-U', 'app' ]);
	return ($stdout, $stderr);
}

run($eu, $stored);
run($front, $recipe);

run($front, q{
INSERT INTO events SELECT region, at, '{}'
FROM (VALUES ('eu'), ('us')) AS r (region), (VALUES ('2001-01-01'::timestamptz), ('2100-01-01')) AS t (at)});

sub rows
{
	return (run($front, 'SELECT region, extract(year FROM at)::integer FROM events ORDER BY 1, 2'))[0];
}

run($front, 'CALL ttl_index.run_pass()');
is(rows(), "eu|2001\neu|2100\nus|2100", 'a pass in front deletes what is stored there, and nothing else');
run($eu, 'CALL ttl_index.run_pass()');
is(rows(), "eu|2100\nus|2100", 'the other server deletes its own');

is( (run($front, q{
SELECT server, relname, indexrelname, deleted_documents FROM events_index_stats ORDER BY 1}))[0],
	"eu|events_eu|events_eu_at_ttl|1\nhere|events|events_at_ttl|1",
	'the view shows the counters of both');
my ($sum, $differs) = split /;\n/, $looks;
like((run($front, $sum))[0], qr/^2\|0\|20/, 'and their sum');

is((run($front, $differs))[0], '', 'all expire alike');
run($eu, q{SELECT ttl_index.coll_mod('events_eu', 'at', 3600)});
is((run($front, $differs))[0], 'eu|public.events_eu_at_ttl|3600|active|', 'one that differs is seen');

is((run($front, q{SELECT ttl_index.due_count('events_at_ttl')}))[0], '0',
	'rows of foreign partitions are not counted as due in front');

# The server in front expires its own while the other one is down.
run($front, q{INSERT INTO events VALUES ('us', '2001-01-01')});
$eu->stop('immediate');
run($front, 'CALL ttl_index.run_pass()');
is((run($front, 'SELECT count(*) FROM events_other'))[0], '1',
	'a server that is down keeps nobody from expiring rows');

done_testing();
