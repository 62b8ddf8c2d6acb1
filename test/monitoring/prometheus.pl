# Copyright (c) 2026, ttl_index contributors

# The directory monitoring with real exporters and a real Prometheus: both exporters give
# the same series, databases without the extension no error, each alert fires for its
# fault, alone, and ends with it, and the dashboard asks for what is there.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Faults;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Prometheus;
use Test::More;
use TtlNode;

Prometheus::skip_if_missing();

command_ok(
	[ 'promtool', 'test', 'rules', 'monitoring/alerts_test.yml', 'monitoring/alerts_week_test.yml' ],
	'the alerts, with their own limits and times, do what their tests say');

my $node = TtlNode->configured('', faults => Faults->new);
$node->start;
$node->safe_psql('postgres', $_)
  foreach 'CREATE DATABASE app', 'CREATE DATABASE plain', 'CREATE ROLE exporter LOGIN IN ROLE pg_monitor',
  'ALTER ROLE exporter SET search_path = pg_catalog, pg_temp';

# The table "beat" gives each pass something to do, because idle ones are written once a
# minute at most.
$node->safe_psql(
	'app', q{
CREATE EXTENSION ttl_index;
CREATE TABLE beat (at timestamptz);
CREATE FUNCTION beat() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.beat VALUES (clock_timestamp()); RETURN NULL; END $$;
CREATE TRIGGER beat AFTER DELETE ON beat FOR EACH ROW EXECUTE FUNCTION beat();
CREATE INDEX beat_ttl ON beat (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO beat VALUES (now());
CREATE TABLE event (at timestamptz);
CREATE INDEX event_ttl ON event (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE shard (at timestamptz, id int) PARTITION BY LIST (id);
CREATE TABLE shard_1 PARTITION OF shard FOR VALUES IN (1);
CREATE TABLE shard_2 PARTITION OF shard FOR VALUES IN (2);
CREATE INDEX shard_ttl ON shard (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE document (doc jsonb, at timestamptz);
SELECT ttl_index.create_index('document', 'at', 60, document_ttl_field => 'doc.ttl', paused => true);
});

my $offset = -s $node->logfile;
my $prometheus = Prometheus->watching(
	$node,
	sql_databases => ['app'],
	alerts => [
		qr/for: \d+m/ => 'for: 0s',
		qr/> 600 \+/ => '> 8 +',
		qr/\[30m\]/ => '[5s]',
		qr/\[10m\]/ => '[5s]',
		qr/> 300\b/ => '> 4'
	]);

# The same for what both exporters tell
sub of_both
{
	return map { my $job = $_; map { "$job $_" } @_ } qw(postgres sql);
}

#
# The series
#

my @labels = qw(job datname indexrelname);
$prometheus->becomes('ttl_index_index_errors_total', \@labels,
	[ of_both(map { "app ${_}_ttl 0" } qw(beat document_at_own document_at event shard)) ],
	'one series an index, also a partitioned one');
$prometheus->becomes('ttl_index_monitor_up', [qw(job datname status)],
	[ of_both('app monitor 1') ], 'the monitor is there');
$prometheus->becomes('ttl_index_indexes', [qw(job datname)], [ of_both('app 5') ],
	'indexes are counted likewise');
$prometheus->becomes('ttl_index_not_active_parts', [ @labels, 'state' ],
	[ of_both('app   0', 'app document_at_own_ttl paused 1', 'app document_at_ttl paused 1') ], 'a pair is paused with both indexes');
$prometheus->becomes('ttl_index_passes_total > bool 1', [qw(job datname)], [ of_both('app 1') ],
	'passes are counted');
$prometheus->becomes('ttl_index_last_pass_end_timestamp_seconds > bool time() - 600', [qw(job datname)],
	[ of_both('app 1') ], 'times are seconds since 1970');

my %names;
foreach my $job (qw(postgres sql))
{
	my @found = map { $_->{metric} }
	  @{ $prometheus->ask('query', query => qq(count by (__name__) ({job="$job", __name__=~"ttl_index_[^:]*"})))->{result} };
	$names{$job} = join ' ', sort map { $_->{__name__} } @found;
}
is($names{sql}, $names{postgres}, 'both exporters give the same metrics');
foreach my $name (split / /, $names{postgres})
{
	my $labels = sub {
		my ($job) = @_;
		return join "\n", $prometheus->series(
			qq(count by (datname, schemaname, relname, indexrelname, state, status, operation) ($name\{job="$job"})),
			qw(datname schemaname relname indexrelname state status operation));
	};
	is($labels->('sql'), $labels->('postgres'), "$name has the same labels");
}
my $types = $prometheus->ask('targets/metadata', metric => '', match_target => '{job="postgres"}');
foreach my $metric (grep { $_->{metric} =~ /^ttl_index/ } @$types)
{
	is($metric->{type}, $metric->{metric} =~ /_total$/ ? 'counter' : 'gauge', "$metric->{metric} is a $metric->{type}");
}

# Nothing complains of the databases postgres and plain, where the extension is not.
is(join(', ', $prometheus->series('pg_exporter_last_scrape_error')), '0', 'no query of the first exporter fails');
is(join(', ', $prometheus->series('pg_exporter_user_queries_load_error')), '0', 'its file of queries is read');
is(join(', ', $prometheus->series('max(sql_exporter_last_scrape_failed)')), '0', 'nor does one of the other');
unlike(slurp_file($prometheus->log_of('postgres')), qr/level=(error|warn)/, 'it has nothing to log');
unlike(slurp_file($node->logfile, $offset), qr/ERROR:/, 'nor has the server');

#
# The dashboard
#

sub expressions
{
	my ($part) = @_;

	return map { expressions($_) } @$part if ref $part eq 'ARRAY';
	return unless ref $part eq 'HASH';
	return (grep({ defined && !ref } $part->{expr}), map { expressions($_) } values %$part);
}

my $dashboard = decode_json(slurp_file('monitoring/grafana.json'));
my %exists = map { $_ => 1 } @{ $prometheus->ask('label/__name__/values') };
my @expressions = (
	expressions($dashboard),
	map { $_->{definition} =~ /^label_values\((.*), \w+\)$/ } @{ $dashboard->{templating}{list} });
cmp_ok(scalar @expressions, '>', 15, 'the dashboard has queries');
foreach my $expression (@expressions)
{
	my @metrics = $expression =~ /\b(ttl_index\w+)/g;
	my $query = $expression =~ s/\$__rate_interval/1m/gr =~ s/\$(?:instance|datname)\b/.*/gr;

	is(join(' ', grep { !$exists{$_} } @metrics), '', "all metrics exist: $expression");
	unlike($query, qr/\$/, 'it has no other variables');
	ok(eval { $prometheus->ask('query', query => $query); 1 }, 'Prometheus understands it') or diag($@);
}

#
# The alerts
#

sub ends
{
	my ($name) = @_;

	return $prometheus->fires([], "$name: it ends");
}

$prometheus->fires([], 'nothing fires where all is well, and one index is paused');

$node->set('monitor_enabled', 'off');
$prometheus->fires([ of_both('TtlIndexNoMonitor app disabled') ], 'without a monitor');
$node->set('monitor_enabled', 'on');
ends('the monitor is there again');

my $launcher = $node->pid_of('launcher');
kill 'STOP', $launcher;
$prometheus->fires([ of_both('TtlIndexBacklogGrows app beat_ttl', 'TtlIndexPassTooOld app') ],
	'the launcher hangs');
kill 'CONT', $launcher;
ends('the launcher goes on');

$node->add_trigger('app', 'event', 'refuse', q{RAISE 'no';});
$node->safe_psql('app', "INSERT INTO event VALUES ('2001-01-01')");
$prometheus->fires([ of_both('TtlIndexNotActive app event_ttl failing') ],
	'a trigger refuses: failing, and not late as well');
$node->safe_psql('app', 'DROP TRIGGER refuse ON event');
$node->safe_psql('app', 'CALL ttl_index.run_pass()');
ends('the trigger is gone');

# What others lock, exporters do not wait for, and lag is not known.
my $session = $node->background_psql('app');
$session->query_safe('BEGIN; LOCK TABLE event, shard_2 IN ACCESS EXCLUSIVE MODE');
$prometheus->fires(
	[ of_both('TtlIndexNotActive app event_ttl table_locked', 'TtlIndexNotActive app shard_ttl table_locked') ],
	'tables are locked, one of them a partition');
$prometheus->becomes('ttl_index_index_lag_seconds{indexrelname="event_ttl"}', \@labels,
	[ of_both('app event_ttl NaN') ], 'how far behind is not known meanwhile');
$session->query_safe('ROLLBACK');
ends('the tables are free');

# The monitor would be quicker than the session that locks a row which is due.
sub lock_row
{
	my ($at) = @_;

	$node->monitor_in('app', 'off');
	$node->safe_psql('app', "INSERT INTO event VALUES ($at)");
	$session->query_safe('BEGIN; SELECT FROM event FOR UPDATE');
	$node->monitor_in('app', 'on');
	return;
}

lock_row('now()');
$prometheus->fires([ of_both('TtlIndexBacklogGrows app event_ttl') ], 'a row that is due cannot go');
$session->query_safe('ROLLBACK');
ends('it goes');

lock_row("'2001-01-01'");
$prometheus->fires([ of_both('TtlIndexBacklogGrows app event_ttl', 'TtlIndexLag app event_ttl') ],
	'nor can one that has been due for long');
$session->query_safe('ROLLBACK');
$session->quit;
ends('it goes, too');

$node->{ttl_faults}->clock_ahead(0, 2);
$prometheus->fires([ of_both('TtlIndexHeld') ], 'the clock has jumped');
$node->{ttl_faults}->clock_ahead(0, 0);
$node->safe_psql('app', 'SELECT ttl_index.resume()');
ends('the clock is right again');

$prometheus->stop;
$node->stop;
done_testing();
