# Copyright (c) 2026, ttl_index contributors

# CREATE, ALTER and DROP EXTENSION at the coordinator of Citus are carried to all nodes.
# Nodes that have another release of the package, an older version of the extension, no
# library or no monitor do no harm, and whoever looks at the coordinator sees them.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use CitusCluster;
use Installation;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

CitusCluster::skip_if_missing();

# The release of today can update from the early version.  The second worker has the
# release of then, which knows no other, but for the library.
my $work = PostgreSQL::Test::Utils::tempdir;
my $conf = "fsync = off\n";
my $early = '0.0.1';
my $today = Installation->made_in("$work/today");
my $then = Installation->made_in("$work/then");
my ($current) = $today->slurp('ttl_index.control') =~ /^default_version = '(.*)'$/m or die;
my $script = $today->slurp("ttl_index--$current.sql");
my ($early_script, $update) = Installation::early_version($script);

$_->add_script($early, $early_script) foreach $today, $then;
$today->add_script("$early--$current", $update);
$then->default_version($early);
$then->drop_script($current);

my $cluster = CitusCluster->running(1, $conf, install_path => $today->prefix, bare => 1);
$cluster->add_server('worker2', $conf, install_path => $then->prefix, bare => 1);
my $coordinator = $cluster->coordinator;
my ($worker1, $worker2) = $cluster->workers;

sub add_node
{
	my ($node) = @_;

	return sprintf q{SELECT citus_add_node('%s', %d)}, $node->host, $node->port;
}

$cluster->sql(add_node($worker2));

# The version of the extension on each node.
sub versions_are
{
	my ($versions, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(
		join(' ',
			map {
				$_->safe_psql('postgres',
					q{SELECT coalesce(max(extversion), 'none') FROM pg_extension WHERE extname = 'ttl_index'})
			} $cluster->nodes),
		$versions, $name);
}

# What the coordinator shows of all nodes.
sub shown_is
{
	my ($shown, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(
		$cluster->sql(
			q{
SELECT string_agg(concat_ws(' ', version, monitor, substring(error FROM '(relation|could not access file) "')), ', ' ORDER BY nodeid)
FROM ttl_index.cluster_stats}),
		$shown, $name);
}

my $is_due = q{event WHERE at < '2010-01-01'};

sub add_due
{
	$cluster->sql(q{INSERT INTO event SELECT g, '2001-01-01' FROM generate_series(1, 100) AS g});
	return;
}

# The rows that are due stay in the shards of the second worker, and go elsewhere.
sub second_keeps_its_rows
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $port = $worker2->port;
	my $on_worker = qq{
SELECT coalesce(sum(result::int) FILTER (WHERE nodeport %s $port), 0) %s 0
FROM run_command_on_shards('event', \$\$SELECT count(*) FROM %%s WHERE at < '2010-01-01'\$\$) JOIN citus_shards USING (shardid)};

	$coordinator->becomes('postgres', sprintf($on_worker, '<>', '='), "$name: the others delete what is due");
	$worker1->wait_for_passes(2);
	return is($cluster->sql(sprintf $on_worker, '=', '>'), 't', "$name: it keeps its rows");
}

sub restart_second
{
	my ($preload) = @_;

	$worker2->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\n");
	$worker2->restart;
	$coordinator->poll_query_until('postgres', 'SELECT count(*) > 0 FROM event') or die;
	return;
}

#
# Creating
#

like($cluster->error("CREATE EXTENSION ttl_index VERSION '$current'"), qr/ERROR:  extension "ttl_index" has no installation script .*"$current"/,
	'a node that does not have this release refuses the extension');
versions_are('none none none', 'and nothing is made');
$cluster->sql("CREATE EXTENSION ttl_index VERSION '$early'");
versions_are("$early $early $early", 'CREATE EXTENSION makes it on all nodes');
$cluster->sql(
	q{
CREATE TABLE event (id int, at timestamptz);
SELECT create_distributed_table('event', 'id', shard_count => 4);
CREATE INDEX event_ttl ON event (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO event SELECT g, '2100-01-01' FROM generate_series(1, 100) AS g});
add_due();

#
# Updating
#

$_->wait_for_log(qr/WARNING: .*the objects of extension "ttl_index" do not fit its library/) foreach $cluster->workers;
is($cluster->sql("SELECT count(*) FROM $is_due"), '100', 'a node whose library is newer says so, and deletes nothing');

like($cluster->error("ALTER EXTENSION ttl_index UPDATE TO '$current'"),
	qr/ERROR:  extension "ttl_index" has no update path from version "$early" to version "$current"/,
	'a node that does not have the release refuses an update to it');
versions_are("$early $early $early", 'and nothing changes');
$cluster->sql('BEGIN; ALTER EXTENSION ttl_index UPDATE; ROLLBACK');
versions_are("$early $early $early", 'ROLLBACK undoes it everywhere');
my ($stdout, $stderr);
$worker1->psql('postgres', 'ALTER EXTENSION ttl_index UPDATE', stderr => \$stderr);
like($stderr, qr/ERROR: .*coordinator/s, 'a worker cannot be updated alone');

# Without a version each node goes by its own release.
$cluster->sql('ALTER EXTENSION ttl_index UPDATE');
versions_are("$current $current $early", 'an update to no given version is one to the release of each node');
shown_is("$current monitor, $current monitor, relation", 'the coordinator shows that');
second_keeps_its_rows('an old version');

$then->add_script($_, $today->slurp("ttl_index--$_.sql")) foreach "$early--$current", $current;
$worker2->stop('fast');
like($cluster->error("ALTER EXTENSION ttl_index UPDATE TO '$current'"), qr/ERROR: .*connection/s, 'a worker that is down refuses an update');
$worker2->start;
$coordinator->poll_query_until('postgres', 'SELECT count(*) > 0 FROM event') or die;
$cluster->sql("ALTER EXTENSION ttl_index UPDATE TO '$current'");
versions_are("$current $current $current", 'an update reaches the node that was left behind');
shown_is(join(', ', ("$current monitor") x 3), 'as the coordinator shows');
$coordinator->empties('postgres', $is_due, 'and it deletes what is due');

#
# A node that is added
#

my $worker3 = $cluster->add_server('worker3', $conf, install_path => $today->prefix, bare => 1);
$worker3->safe_psql('postgres', "CREATE EXTENSION ttl_index VERSION '$early'");
$cluster->sql(add_node($worker3));
versions_are("$current $current $current $early", 'Citus leaves the extension as it is on a node that is added');
shown_is("$current monitor, $current monitor, $current monitor, relation", 'the coordinator shows it');
$cluster->sql("ALTER EXTENSION ttl_index UPDATE TO '$current'");
versions_are("$current $current $current $current", 'and updates it');

#
# No monitor, no library
#

restart_second('citus');
add_due();
shown_is("$current monitor, $current monitor, $current not_preloaded, $current monitor", 'a node without a monitor is shown');
second_keeps_its_rows('no monitor');
$cluster->sql(q{SELECT ttl_index.coll_mod('event', 'at', 1800)});
is($cluster->options('event_ttl'), '8 ttl_index.expire_after_seconds(1800)', 'it follows changes');

$then->drop_library;
$worker2->restart;
$coordinator->poll_query_until('postgres', 'SELECT count(*) > 0 FROM event') or die;
add_due();
shown_is("$current monitor, $current monitor, could not access file, $current monitor", 'a node without the library is shown');
second_keeps_its_rows('no library');
like($cluster->error(q{SELECT ttl_index.coll_mod('event', 'at', 900)}), qr/ERROR:  could not access file "[^"]*ttl_index"/,
	'it refuses changes');
is($cluster->options('event_ttl'), '8 ttl_index.expire_after_seconds(1800)', 'and nothing changes');

$then->give_library_back;
restart_second('citus,ttl_index');
$coordinator->empties('postgres', $is_due, 'all is well again');
is($cluster->sql('SELECT count(*) FROM event'), '100', 'what is not due is still there');
is($cluster->sql(q{SELECT ttl_index.remove_all_ttl()}), '1', 'it is uninstalled');
$cluster->sql('DROP EXTENSION ttl_index');
versions_are('none none none none', 'on all nodes');
$_->has_not_crashed($_->name . ' has not crashed') foreach $cluster->nodes;

# Citus starts behind no library that has hooks; ttl_index has none there.
my $turned = TtlNode->configured("shared_preload_libraries = 'ttl_index,citus'\n", name => 'turned');
ok($turned->start(fail_ok => 1), 'Citus starts behind ttl_index, too');

done_testing();
