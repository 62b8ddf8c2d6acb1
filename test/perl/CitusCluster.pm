# Copyright (c) 2026, ttl_index contributors

# A cluster of Citus, of a coordinator and workers, each with ttl_index.  Where Citus
# is not installed, tests of it are skipped.  What stands in its place in the other tests
# has no library.

package CitusCluster;

use strict;
use warnings;
use Installation ();
use PostgreSQL::Test::Utils ();
use Test::More ();
use TtlNode;

# Leaves the test, as a skipped one, where Citus is not installed.
sub skip_if_missing
{
	Test::More::plan(skip_all => 'Citus is not installed')
	  unless -e Installation::config('--pkglibdir') . '/citus.so';
	return;
}

# Starts a coordinator and so many workers, with this configuration.  Options: those of
# add_server.
sub running
{
	my ($class, $workers, $conf, %options) = @_;
	my $self = bless { nodes => [] }, $class;

	skip_if_missing();
	$self->add_server($_ == 0 ? 'coordinator' : "worker$_", $conf, %options) foreach 0 .. $workers;
	$self->sql(sprintf q{SELECT citus_set_coordinator_host('%s', %d)},
		$self->coordinator->host, $self->coordinator->port);
	$self->sql(sprintf q{SELECT citus_add_node('%s', %d)}, $_->host, $_->port)
	  foreach $self->workers;
	return $self;
}

# Starts one more server, which is not a node yet.  The sockets serve as host names.
# Options: install_path, as of TtlNode; bare, for a server without our extension.
sub add_server
{
	my ($self, $name, $conf, %options) = @_;
	my $node = TtlNode->configured(
		"shared_preload_libraries = 'citus,ttl_index'
wal_level = logical
max_wal_senders = 20
max_replication_slots = 20
max_logical_replication_workers = 16
max_prepared_transactions = 100
max_worker_processes = 40
max_connections = 200
citus.node_conninfo = 'sslmode=disable'
log_statement = none
" . ($conf || ''), name => $name, install_path => $options{install_path});

	# by this name it connects to itself
	$node->append_conf('postgresql.conf',
		sprintf "citus.local_hostname = '%s'\n", $node->host);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
	$node->safe_psql('postgres', 'CREATE EXTENSION ttl_index') unless $options{bare};
	push @{ $self->{nodes} }, $node;
	return $node;
}

sub nodes
{
	my ($self) = @_;

	return @{ $self->{nodes} };
}

sub coordinator
{
	my ($self) = @_;

	return $self->{nodes}->[0];
}

sub workers
{
	my ($self) = @_;

	return @{ $self->{nodes} }[ 1 .. $#{ $self->{nodes} } ];
}

# On the coordinator.
sub sql
{
	my ($self, $sql) = @_;

	return $self->coordinator->safe_psql('postgres', $sql);
}

# The messages of statements that are to fail on the coordinator.
sub error
{
	my ($self, $sql) = @_;
	my ($stdout, $stderr) = ('', '');

	$self->coordinator->psql('postgres', $sql, stdout => \$stdout, stderr => \$stderr);
	return $stderr;
}

# What a query gives on a node that is asked for itself, with its shards, which Citus
# hides from queries otherwise.
sub on_node
{
	my ($self, $node, $sql) = @_;

	return $node->safe_psql('postgres', "SET citus.override_table_visibility = off; $sql");
}

# The options of all indexes of a table and of its shards, on all nodes: each only
# once, with the number of indexes that have it.
sub options
{
	my ($self, $index) = @_;
	my %count;

	foreach my $node ($self->nodes)
	{
		my $options = $self->on_node(
			$node, qq{
SELECT coalesce(pg_get_expr(indpred, indrelid), 'none') FROM pg_index
WHERE (SELECT relname FROM pg_class WHERE oid = indexrelid) ~ '^$index(_[0-9]{6})?\$'});

		$count{$_}++ foreach split /\n/, $options;
	}
	return join '; ', map { "$count{$_} $_" } sort keys %count;
}

1;
