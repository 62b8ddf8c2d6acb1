# Copyright (c) 2026, ttl_index contributors

# A server on which four things go on at once, seen by a person with psql alone, who has
# read the beginning of doc/operating.md; by one with the report; and by Prometheus.
# script/scenario runs it, which takes some minutes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Prometheus;
use Test::More;
use Time::HiRes qw(sleep time);
use TtlNode;

Prometheus::skip_if_missing();

my $rows = $ENV{TTL_SCENARIO_ROWS} || 10_000_000;
my @databases = qw(app archive logs shop wiki);

# The rate spreads the drain, so that there is time to look.
my $rate = int($rows / 200);
my $node = TtlNode->configured(qq{
autovacuum = on
shared_buffers = 512MB
max_wal_size = 4GB
ttl_index.monitor_enabled = off
ttl_index.delete_rate_limit = $rate
});
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE exporter LOGIN IN ROLE pg_monitor');
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach @databases;
$node->safe_psql($_, 'CREATE EXTENSION ttl_index') foreach @databases;

#
# What goes on
#

# all is well: rows fall due all the time, and go
$node->safe_psql('app', q{
CREATE TABLE session (at timestamptz);
INSERT INTO session SELECT now() - interval '60 s' + i * interval '0.01 s' FROM generate_series(-1000, 100000) AS i;
SELECT ttl_index.create_index('session', 'at', 60);
});

# nobody deletes
$node->safe_psql('archive', q{
CREATE TABLE mail (at timestamptz);
INSERT INTO mail SELECT now() - i * interval '1 hour' FROM generate_series(1, 5000) AS i;
SELECT ttl_index.create_index('mail', 'at', 30 * 86400);
});
$node->monitor_in('archive', 'off');

# a drain
$node->safe_psql('logs', qq{
CREATE TABLE event (at timestamptz, level int, message text);
INSERT INTO event SELECT now() - interval '8 days' - i * interval '0.05 s', i % 5, 'what has happened'
FROM generate_series(1, $rows) AS i;
INSERT INTO event SELECT now() - i * interval '1 s', i % 5, 'what has happened' FROM generate_series(1, 100000) AS i;
SELECT ttl_index.create_index('event', 'at', 7 * 86400);
VACUUM ANALYZE event;
});

# rows that a foreign key keeps, beside a table that is well
$node->safe_psql('shop', q{
CREATE TABLE customer (id int PRIMARY KEY, last_seen timestamptz);
CREATE TABLE "order" (id int, customer int REFERENCES customer ON DELETE RESTRICT);
CREATE INDEX ON "order" (customer);
INSERT INTO customer SELECT i, now() - interval '20 days' - i * interval '1 minute' FROM generate_series(1, 1000) AS i;
INSERT INTO "order" SELECT i, i FROM generate_series(1, 50) AS i;
SELECT ttl_index.create_index('customer', 'last_seen', 14 * 86400);
CREATE TABLE basket (at timestamptz);
SELECT ttl_index.create_index('basket', 'at', 3600);
});

# paused
$node->safe_psql('wiki', q{
CREATE TABLE draft (at timestamptz);
INSERT INTO draft SELECT now() - i * interval '1 hour' FROM generate_series(1, 5000) AS i;
SELECT ttl_index.create_index('draft', 'at', 30 * 86400, paused => true);
});

$node->set('monitor_enabled', 'on');

#
# With psql alone, by the queries of the page
#

my ($for_server, $for_database) =
  slurp_file('doc/operating.md') =~ /^## Watching\n.*?^```sql\n(.*?)^```.*?^```sql\n(.*?)^```/ms;
my @as_exporter = (extra_params => [ '-U', 'exporter' ]);

# The result of a query in a database, each row as the values of its columns by name.
sub ask
{
	my ($database, $query) = @_;
	my $sql = $query =~ s/;\s*\z//r;
	my $json = $node->safe_psql($database, "SELECT coalesce(json_agg(r), '[]') FROM (\n$sql\n) AS r", @as_exporter);

	return @{ JSON::PP::decode_json($json) };
}

# The first pass reaches logs last, and the second look at the others comes after it.
$node->becomes('app', "SELECT count(*) = 5 FROM ttl_index.databases WHERE datname <> 'logs' OR pass_time_left IS NOT NULL",
	'the monitor has been everywhere, and the end of the drain is told');

my %seen = map { $_->{datname} => $_ } ask('app', $for_server);
my $looked_at = time;
is(join(' ', sort keys %seen), "@databases", 'one query shows all databases');
like($seen{archive}{reason}, qr/^ttl_index\.monitor_enabled is off in this database/, 'where nobody deletes, and why');
is($seen{shop}{failing}, 1, 'where an index fails');
is($seen{wiki}{paused}, 1, 'where one is paused');
cmp_ok($seen{logs}{pass_left}, '>', $rows / 3, 'what is left of the drain');
is(join(' ', grep { $seen{$_}{not_active} + $seen{$_}{failing} > 0 } @databases), 'archive shop',
	'something is wrong in these two');
is(join(' ', grep { defined $seen{$_}{reason} } @databases), 'archive', 'there is no other reason');
is(join(' ', grep { defined $seen{$_}{pass_left} } @databases), 'logs', 'nor another drain');
my ($first) = ask('app', $for_server);
is($first->{datname}, 'archive', 'what is worst comes first');

# 'HH:MM:SS', with days before it where it is long
sub seconds_of
{
	my ($days, $h, $m, $s) = $_[0] =~ /^(?:(\d+) days? )?(\d+):(\d+):([\d.]+)$/;

	return ($days || 0) * 86400 + $h * 3600 + $m * 60 + $s;
}

my $told_end = $looked_at + seconds_of($seen{logs}{pass_time_left});

sub indexes
{
	my ($database) = @_;

	return map {
		join ' ', $_->{indexrelid}, $_->{state},
		  !defined $_->{lag} ? 'unknown' : seconds_of($_->{lag}) > 3600 ? 'late' : 'in time',
		  ($_->{last_error} || '') =~ /(violates foreign key constraint "\w+")/
	} ask($database, $for_database);
}

is(join(', ', indexes('app')), 'session_at_ttl active in time', 'each index of app');
is(join(', ', indexes('archive')), 'mail_at_ttl no_monitor late', 'of archive');
is(join(', ', indexes('shop')), 'customer_last_seen_ttl failing late violates foreign key constraint "order_customer_fkey", '
	  . 'basket_at_ttl active in time', 'of shop, and why it fails');
is(join(', ', indexes('wiki')), 'draft_at_ttl paused late', 'of wiki');
foreach (1 .. 10)
{
	is(join(', ', indexes('logs')), 'event_at_ttl active late', 'and of logs, at whichever moment of the drain');
	sleep(0.13);
}

#
# With the report
#

# The cells of the table of databases, as text.
sub databases_of
{
	my ($page) = @_;
	my ($table) = $page =~ m{<caption class="hidden">Databases</caption>(.*?)</table>}s;

	return map { /^.*?>\s*(\w+)<.*?<td>(.*?)<\/td>/s ? "$1: " . $2 =~ s/<[^>]*>//gr : () } $table =~ m{<tr>(.*?)</tr>}gs;
}

my ($page, $err) =
  run_command([ $node->config_data('--bindir') . '/ttl_index_report', '--all', '-h', $node->host, '-p', $node->port,
	'-U', 'exporter', 'app' ]);
is($err, '', 'the report is written');
my %wrong = map { /^(\w+): (.*)/ } databases_of($page);
is($wrong{archive}, 'No rows are deleted here (disabled_here)', 'it says of archive what is wrong');
is($wrong{shop}, '1 index: failing', 'of shop');
is($wrong{wiki}, '1 index paused', 'of wiki');
is($wrong{app}, 'nothing', 'of app');
like($wrong{logs}, qr/^1 index catches up; about [\d,]+ rows left, until about [-\d: ]+ \(/, 'of logs');
like($page, qr{<dt>Need attention</dt><dd>2</dd>}, 'two ask for attention');
like($page, qr{<dt>Backlog gone about</dt><dd>\d}, 'the end of the drain is at the top');
like($page, qr/violates foreign key constraint/, 'the error of shop is on it');

#
# With Prometheus
#

my $prometheus = Prometheus->watching(
	$node,
	sql_databases => \@databases,
	alerts => [ qr/for: \d+m/ => 'for: 5s', qr/\[30m\]/ => '[20s]' ]);
my @expected =
  map { my $job = $_; map { "$job $_" } 'TtlIndexNoMonitor archive disabled_here', 'TtlIndexNotActive shop customer_last_seen_ttl failing' }
  qw(postgres sql);
$prometheus->fires(\@expected, 'alerts fire for what is wrong');

#
# The end of the drain
#

$node->becomes('app', "SELECT last_pass_end > last_pass_start FROM ttl_index.databases WHERE datname = 'logs'", 'the drain ends');
my $ended = $node->safe_psql('app', "SELECT extract(epoch FROM last_pass_end) FROM ttl_index.databases WHERE datname = 'logs'");
my $wrong_by = 100 * abs($told_end - $ended) / ($ended - $looked_at);
diag(sprintf('%d seconds before its end the drain was told to end within %.1f %%', $ended - $looked_at, $wrong_by));
cmp_ok($wrong_by, '<', 25, 'when it was told to, within 25 %');
is($node->safe_psql('logs', 'SELECT count(*) BETWEEN 90000 AND 100000 FROM event'), 't', 'all that was due is gone');
is(join(', ', indexes('logs')), 'event_at_ttl active in time', 'how late the index is, is known behind it, too');

# Everything that has fired since Prometheus looks, but for its start, where it has no
# metrics yet.
sub fired
{
	return $prometheus->series('count by (job, alertname, datname) (max_over_time(ALERTS{alertstate="firing", alertname!="TtlIndexNoMetrics"}[1h])) > bool 2',
		qw(job alertname datname));
}

my @fired = map { "$_ 0" } map { my $job = $_; map { "$job $_" } 'TtlIndexNoMonitor archive', 'TtlIndexNotActive shop' } qw(postgres sql);
is(join("\n", fired()), join("\n", @fired), 'all the time, nothing else has fired');

#
# All is mended
#

$node->safe_psql('shop', 'TRUNCATE "order"; CALL ttl_index.run_pass()');
$node->monitor_in('archive', 'on');
$node->safe_psql('wiki', q{SELECT ttl_index.unpause_index('draft_at_ttl')});
$prometheus->fires([], 'the alerts end');
$node->becomes('app', q{SELECT bool_and(reason IS NULL AND not_active + failing + paused = 0 AND worst_lag < '1 minute')
	FROM ttl_index.databases}, 'psql says that all is well');
($page) = run_command([ $node->config_data('--bindir') . '/ttl_index_report', '--all', '-h', $node->host, '-p', $node->port,
	'-U', 'exporter', 'app' ]);
is(join(' ', map { /: (.*)/ } databases_of($page)), 'nothing nothing nothing nothing nothing', 'so does the report');
is(join("\n", fired()), join("\n", @fired), 'nothing else has fired');

$prometheus->stop;
$node->stop;
done_testing();
