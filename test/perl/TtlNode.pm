# Copyright (c) 2026, ttl_index contributors

# A server with ttl_index, and what tests of it do again and again: wait for
# passes and for the monitor's processes, change its settings, hold its worker in
# the middle of a batch, and see rows go.

package TtlNode;

use strict;
use warnings;
use parent 'PostgreSQL::Test::Cluster';

# Functions that are imported would hide the methods of the same names.
use File::Spec ();
use IPC::Run ();
use PostgreSQL::Test::Utils ();
use Test::More ();
use Time::HiRes ();

# A server that is not started yet.  The monitor is preloaded and makes a pass each
# second, unless the configuration says something else.  Options: name; init, a
# reference to the arguments of init(); install_path; faults, under which it starts.
sub configured
{
	my ($class, $conf, %options) = @_;
	my $node = $class->new($options{name} || 'main',
		$options{install_path} ? (install_path => $options{install_path}) : ());

	$node->{ttl_faults} = $options{faults};
	$node->init(@{ $options{init} || [] });
	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = 'ttl_index'\nttl_index.monitor_sleep = 1\n");
	$node->append_conf('postgresql.conf', $conf || '');
	return $node;
}

# One that runs, with the extension in the database postgres.
sub running
{
	my ($class, $conf, %options) = @_;
	my $node = $class->configured($conf, %options);

	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION ttl_index');
	return $node;
}

# However a server with faults is started, it has them.
sub start
{
	my ($self, @arguments) = @_;
	my $faults = $self->{ttl_faults};

	return $self->SUPER::start(@arguments) unless $faults;
	return $faults->with(sub { $self->SUPER::start(@arguments) });
}

# The library of rights.c, or undef where it was not made.
sub rights_library
{
	my $library =
	  File::Spec->rel2abs(($ENV{TESTDIR} || '.') . '/test/perl/rights.so');

	return -e $library ? $library : undef;
}

# A copy of another server, which is not started yet, with the same faults.
sub copy_of
{
	my ($class, $origin, $backup, $name, %params) = @_;
	my $node = $class->new($name);

	$node->{ttl_faults} = $origin->{ttl_faults};
	$node->init_from_backup($origin, $backup, %params);
	return $node;
}

#
# Sessions
#

# Polls for a condition, which is the test.
sub becomes
{
	my ($self, $db, $condition, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return Test::More::ok($self->poll_query_until($db, $condition), $name);
}

# The rows that are due go, and the one of 2100 stays.
sub drains
{
	my ($self, $db, $table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $self->becomes($db,
		"SELECT array_agg(at) = '{2100-01-01}' FROM $table", $name);
}

# All rows go; the table may be followed by WHERE.
sub empties
{
	my ($self, $db, $table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $self->becomes($db, "SELECT count(*) = 0 FROM $table", $name);
}

# Sets one of our settings for the server, and returns when new sessions have it.
sub set
{
	my ($self, $setting, $value) = @_;

	$self->safe_psql('postgres',
		"ALTER SYSTEM SET ttl_index.$setting = '$value'");
	$self->reload;
	$self->poll_query_until('postgres',
		"SELECT '$value' IN (setting, current_setting(name)) FROM pg_settings WHERE name = 'ttl_index.$setting'"
	) or die "$setting does not change";
	return;
}

# Keeps the monitor out of a database, or lets it in again.
sub monitor_in
{
	my ($self, $db, $value) = @_;

	$self->safe_psql('postgres',
		"ALTER DATABASE $db "
		  . ($value eq 'on' ? 'RESET' : 'SET')
		  . ' ttl_index.monitor_enabled'
		  . ($value eq 'on' ? '' : ' = off'));
	return;
}

#
# The monitor
#

# The number of the pass that the launcher has begun last.
our $pass =
  q{coalesce(substring(query FROM 'ttl_index: pass (\d+)')::integer, 0)};

# Waits until so many passes have ended that began after the call.
sub wait_for_passes
{
	my ($self, $count) = @_;

	$count += $self->safe_psql('postgres',
		"SELECT $pass FROM pg_stat_activity WHERE backend_type = 'ttl_index launcher'"
	);
	$self->poll_query_until(
		'postgres', qq{
SELECT $pass > $count OR ($pass = $count AND state = 'idle')
FROM pg_stat_activity WHERE backend_type = 'ttl_index launcher'})
	  or die 'the launcher makes no passes';
	return;
}

# The pid of the "launcher" or the "worker", once there is exactly one for which
# the condition holds.
sub pid_of
{
	my ($self, $type, $condition) = @_;
	my $until = Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default;

	$condition = 'true' unless defined $condition;
	while (Time::HiRes::time() < $until)
	{
		my $pid = $self->safe_psql(
			'postgres', qq{
SELECT min(pid) FROM pg_stat_activity
WHERE backend_type = 'ttl_index $type' AND $condition
HAVING count(*) = 1});

		return $pid if $pid ne '';
		Time::HiRes::sleep(0.02);
	}
	die "there is no $type with $condition";
}

sub wait_for_no_worker
{
	my ($self) = @_;

	$self->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'ttl_index worker'"
	) or die 'the worker stays';
	return;
}

sub wait_until_accepting
{
	my ($self) = @_;

	# a psql that is refused may have ended before the query is written to it
	until (eval { $self->poll_query_until('postgres', 'SELECT true') or die 'the server does not come back' })
	{
		die $@ unless $@ =~ /Broken pipe/;
	}
	return;
}

# Starts a server whose postmaster was killed: what outlives that notices soon, and
# keeps a new one from starting.
sub start_after_kill
{
	my ($self) = @_;

	foreach my $attempt (1 .. 100)
	{
		# it takes the old one's file for a running server
		$self->{_pid} = undef;
		last if $self->start(fail_ok => 1);
		Time::HiRes::sleep(0.1);
	}
	return;
}

# Starts clients that run a script of pgbench, until they are ended or so many seconds are over.
sub start_load
{
	my ($self, $script, $clients, $seconds) = @_;
	my $output = '';

	return IPC::Run::start(
		[
			$self->installed_command('pgbench'), '-n', '-c', $clients, '-T', $seconds,
			'-h', $self->host, '-p', $self->port, '-f', $script, 'postgres'
		],
		'>&', \$output);
}

# Kills a process of the monitor, by its type, or "postmaster", or makes an "immediate
# stop".  Where a process was killed, the server has started again when this returns;
# recover() starts it else.
sub crash
{
	my ($self, $victim) = @_;
	my $offset = -s $self->logfile;

	return $self->kill9 if $victim eq 'postmaster';
	return $self->stop('immediate') if $victim eq 'immediate stop';
	# a worker may have ended by itself before the signal comes
	foreach my $attempt (1 .. 600)
	{
		kill 'KILL', $self->pid_of($victim) if $attempt % 10 == 1;
		last if $self->log_contains(qr/terminated by signal 9/, $offset);
		Time::HiRes::sleep(0.1);
	}
	return $self->wait_for_log(
		qr/database system is ready to accept connections/, $offset);
}

# Starts the server if it does not run, and waits until it takes connections.
sub recover
{
	my ($self) = @_;

	$self->start_after_kill unless defined $self->{_pid};
	return $self->wait_until_accepting;
}

# A fast shutdown, with a time limit that is far from what is needed.
sub stops_fast
{
	my ($self, $name) = @_;
	local $ENV{PGCTLTIMEOUT} = 30;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	Test::More::ok($self->stop('fast', fail_ok => 1), $name)
	  or $self->stop('immediate');
	return;
}

# For the whole log, or from an offset on.
sub has_not_crashed
{
	my ($self, $name, $offset) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return Test::More::unlike(PostgreSQL::Test::Utils::slurp_file($self->logfile, $offset || 0),
		qr/PANIC|TRAP|was terminated by signal/, $name);
}

#
# Triggers that hold a batch
#

# Before each row that goes from the table, these statements run.
sub add_trigger
{
	my ($self, $db, $table, $trigger, $body) = @_;

	$self->safe_psql(
		$db, qq{
CREATE OR REPLACE FUNCTION $trigger() RETURNS trigger LANGUAGE plpgsql AS
	\$\$ BEGIN $body RETURN OLD; END \$\$;
CREATE TRIGGER $trigger BEFORE DELETE ON $table FOR EACH ROW EXECUTE FUNCTION $trigger();
});
	return;
}

# Each row takes so many seconds.
sub slow_down
{
	my ($self, $db, $table, $seconds) = @_;

	$self->add_trigger($db, $table, 'slow', "PERFORM pg_sleep($seconds);");
	return;
}

# Whoever deletes from the table waits at a gate, while that is closed.
sub add_gate
{
	my ($self, $table) = @_;

	$self->add_trigger('postgres', $table, 'gate',
		'PERFORM pg_advisory_xact_lock(42);');
	return;
}

# Returns the session that keeps the gate closed, until it is opened by
# pg_advisory_unlock(42) there.
sub close_gate
{
	my ($self) = @_;
	my $keeper = $self->background_psql('postgres');

	$keeper->query_safe('SELECT pg_advisory_lock(42)');
	return $keeper;
}

# The worker that waits at the gate.
sub pid_at_gate
{
	my ($self) = @_;

	return $self->pid_of('worker', "wait_event = 'advisory'");
}

1;
