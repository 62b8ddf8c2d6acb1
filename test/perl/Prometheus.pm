# Copyright (c) 2026, ttl_index contributors

# A Prometheus that watches a server of a test by the files of the directory monitoring:
# both exporters, as a role that is a member of pg_monitor, and alerts each second.

package Prometheus;

use strict;
use warnings;
use HTTP::Tiny;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils ();
use Test::More ();
use Time::HiRes ();

our @programs = qw(prometheus promtool prometheus-postgres-exporter
  prometheus-sql-exporter);

# What goes on now
my @running;

# Leaves the test, as a skipped one, where a program is missing.
sub skip_if_missing
{
	foreach my $program (@programs)
	{
		Test::More::plan(skip_all => "$program is not installed")
		  unless grep { -x "$_/$program" } split /:/, $ENV{PATH};
	}
	return;
}

# Watches the databases of a server: all of them by prometheus-postgres-exporter, and
# those that are named by prometheus-sql-exporter.  Of the alerts' text the replacements
# are made first, which are pairs; each must be found.
sub watching
{
	my ($class, $node, %options) = @_;
	my $self = bless { dir => PostgreSQL::Test::Utils::tempdir('prometheus') }, $class;

	$ENV{no_proxy} = '127.0.0.1';
	$self->{http} = HTTP::Tiny->new(timeout => 20);
	$self->{node} = $node;
	$self->{$_} = PostgreSQL::Test::Cluster::get_free_port()
	  foreach qw(postgres sql prometheus);
	$self->write_configuration(%options);
	$self->start_all;
	return $self;
}

sub write_configuration
{
	my ($self, %options) = @_;
	my $socket = $self->{node}->host . '&port=' . $self->{node}->port;
	my @connections = map { "      - 'postgres://exporter\@/$_?host=$socket&sslmode=disable'\n" }
	  @{ $options{sql_databases} };

	$self->copy_edited('alerts.yml', 'alerts.yml', @{ $options{alerts} });
	$self->copy_edited('sql_exporter.yml', 'sql_exporter.yml',
		qr/'60s'/ => "'1s'", qr/ {6}- 'postgres:.*\n/ => join('', @connections));
	$self->copy_edited('prometheus.yml', 'prometheus.yml',
		qr/scrape_interval: 60s/ => 'scrape_interval: 1s',
		qr/scrape_timeout: 30s/ => 'scrape_timeout: 1s',
		qr/localhost:9187/ => "127.0.0.1:$self->{postgres}",
		qr/localhost:9237/ => "127.0.0.1:$self->{sql}",
		qr/^(?=scrape_configs)/m => "global: {evaluation_interval: 1s}\n");
	return;
}

sub copy_edited
{
	my ($self, $from, $to, @replacements) = @_;
	my $text = PostgreSQL::Test::Utils::slurp_file("monitoring/$from");

	while (my ($pattern, $with) = splice @replacements, 0, 2)
	{
		$text =~ s/$pattern/$with/g or die "$pattern is not in $from";
	}
	open my $handle, '>', "$self->{dir}/$to" or die "$to: $!";
	print $handle $text;
	close $handle;
	return;
}

sub start_all
{
	my ($self) = @_;
	my $node = $self->{node};

	{
		local $ENV{DATA_SOURCE_NAME} =
		  'user=exporter dbname=postgres sslmode=disable host=' . $node->host . ' port=' . $node->port;
		$self->start_program('postgres', 'prometheus-postgres-exporter', '--auto-discover-databases',
			'--extend.query-path=monitoring/postgres_exporter.yml',
			"--web.listen-address=127.0.0.1:$self->{postgres}");
	}
	$self->start_program('sql', 'prometheus-sql-exporter', '-config.file',
		"$self->{dir}/sql_exporter.yml", '-web.listen-address', "127.0.0.1:$self->{sql}");
	$self->start_program('prometheus', 'prometheus',
		"--config.file=$self->{dir}/prometheus.yml", "--storage.tsdb.path=$self->{dir}/data",
		"--web.listen-address=127.0.0.1:$self->{prometheus}");
	return;
}

# Starts a program that listens, and waits until it answers.
sub start_program
{
	my ($self, $name, @command) = @_;
	my $log = $self->log_of($name);
	my $page = $name eq 'prometheus' ? '-/ready' : 'metrics';
	my $process = IPC::Run::start(\@command, '<', '/dev/null', '>', $log, '2>', $log);

	push @running, $process;
	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $self->{http}->get("http://127.0.0.1:$self->{$name}/$page")->{success};
		Time::HiRes::sleep(0.1);
	}
	die "$command[0] does not answer: " . PostgreSQL::Test::Utils::slurp_file($log);
}

sub log_of
{
	my ($self, $name) = @_;

	return "$self->{dir}/$name.log";
}

sub stop
{
	my ($self) = @_;

	$_->kill_kill foreach splice @running;
	return;
}

# Whatever happens to the test, nothing of it goes on.
END
{
	local $?;

	$_->kill_kill foreach @running;
}

#
# What it knows
#

# Asks the API, and returns the data.
sub ask
{
	my ($self, $path, %parameters) = @_;
	my $query = $self->{http}->www_form_urlencode(\%parameters);
	my $response = $self->{http}->get("http://127.0.0.1:$self->{prometheus}/api/v1/$path?$query");
	my $answer = eval { JSON::PP::decode_json($response->{content}) };

	return $answer->{data} if $answer && $answer->{status} eq 'success';
	die "$path: $response->{content}";
}

# The series of an expression, each as the values of some labels and its own, sorted.
sub series
{
	my ($self, $expression, @labels) = @_;

	return sort map {
		my $series = $_;
		join ' ', (map { defined $_ ? $_ : '' } @{ $series->{metric} }{@labels}), $series->{value}[1]
	} @{ $self->ask('query', query => $expression)->{result} };
}

# Polls until an expression has these series; that is the test.
sub becomes
{
	my ($self, $expression, $labels, $wanted, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $self->poll(sub { $self->series($expression, @$labels) }, $wanted, $name);
}

# Polls until exactly these alerts fire, each "job name database index state".
sub fires
{
	my ($self, $wanted, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $self->poll(
		sub {
			sort map { join ' ', grep { defined } @{ $_->{labels} }{qw(job alertname datname indexrelname state status)} }
			  grep { $_->{state} eq 'firing' } @{ $self->ask('alerts')->{alerts} };
		},
		$wanted, $name);
}

sub poll
{
	my ($self, $get, $wanted, $name) = @_;
	my $until = Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default;
	my $last = '';
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	while (Time::HiRes::time() < $until)
	{
		$last = join "\n", $get->();
		return Test::More::pass($name) if $last eq join "\n", @$wanted;
		Time::HiRes::sleep(0.2);
	}
	return Test::More::is($last, join("\n", @$wanted), $name);
}

1;
