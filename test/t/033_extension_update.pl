# Copyright (c) 2026, ttl_index contributors

# ALTER EXTENSION UPDATE leads to what CREATE EXTENSION makes, from every released
# version; and a library that meets the objects of another version says so and does
# no harm.  The scripts of old versions are nowhere in an installation, so the test
# runs in a copy of the server that looks for extensions in a folder of its own.

use strict;
use warnings;
use File::Basename;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Installation;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $work = PostgreSQL::Test::Utils::tempdir;

my $installation = Installation->made_in($work);
my $extensions = $installation->extensions;
my $node = TtlNode->configured('', install_path => $installation->prefix);
$node->start;

my $current = $node->safe_psql('postgres',
	"SELECT default_version FROM pg_available_extensions WHERE name = 'ttl_index'"
);
my $script = $installation->slurp("ttl_index--$current.sql");

#
# The dump for pg_upgrade is the one that spells out what belongs to an extension:
# comments, privileges, the order of columns, columns that were dropped.
#

sub contents
{
	my ($db) = @_;
	my ($dump, $stderr) = run_command(
		[
			'pg_dump', '--binary-upgrade', '--schema-only', '-d',
			$node->connstr($db)
		]);

	is($stderr, '', "dump of the extension in $db");
	# OIDs, horizons, and a random key of newer servers
	$dump =~ s/^SELECT pg_catalog\.binary_upgrade_set_next_.*$//mg;
	$dump =~ s/^WHERE oid = .*$//mg;
	$dump =~ s/^SET relfrozenxid.*$//mg;
	$dump =~ s/^\\(un)?restrict .*$//mg;
	return $dump;
}

sub install
{
	my ($db, $version) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE \"$db\"");
	$node->safe_psql($db,
		"CREATE EXTENSION ttl_index"
		  . ($version ? " VERSION '$version'" : ''));
	return;
}

install('fresh');
append_to_file("$work/fresh", contents('fresh'));
like(slurp_file("$work/fresh"), qr/CREATE TABLE ttl_index\.counters.*GRANT SELECT ON TABLE ttl_index\.counters TO pg_monitor/s,
	'the contents of the extension are spelled out');

# How an update from this version differs from a new installation
sub difference
{
	my ($version) = @_;

	install("from $version", $version);
	$node->safe_psql("from $version", 'ALTER EXTENSION ttl_index UPDATE');
	append_to_file("$work/$version", contents("from $version"));
	my ($diff) = run_command([ 'diff', "$work/fresh", "$work/$version" ]);
	return $diff;
}

# Every version that has a script that leads on.
my @deltas = map { basename($_) =~ /^ttl_index--(.*)--/ ? $1 : () }
  glob 'sql/ttl_index--*--*.sql';
foreach my $version (@deltas)
{
	my $released = "test/released/ttl_index--$version.sql";

	ok(-e $released, "the script of release $version was kept") or next;
	symlink File::Spec->rel2abs($released),
	  "$extensions/ttl_index--$version.sql";
	is(difference($version), '',
		"an update from $version leads to what a new installation has");
}

#
# A version before the first one, which lacks a function, the last column of a
# table, and the views over that; so that there is something to compare, and that
# the comparison is seen to find what an update forgets.
#

my ($early, $update) = Installation::early_version($script);

$installation->add_script('0.0.1', $early);
$installation->add_script("0.0.1--$current", $update);
is(difference('0.0.1'), '',
	'an update that is complete leads to what a new installation has');

# what is wrong with an update => its text, what the comparison says
my %incomplete = (
	'a missing privilege' => [
		$update =~ s/^GRANT SELECT.*\n//mr,
		qr/^< GRANT SELECT ON TABLE ttl_index\.stats TO PUBLIC/m
	],
	'a missing comment' => [
		$update =~ s/^COMMENT ON VIEW stats .*?;\n//msr,
		qr/^< COMMENT ON VIEW ttl_index\.stats /m
	],
	'another property of a function' =>
	  [ $update =~ s/\bSTRICT PARALLEL/PARALLEL/r, qr/^<.* STRICT$/m ],
	'another order of columns' => [
		$update
		  . 'ALTER TABLE counters ALTER relid DROP NOT NULL, ADD COLUMN late oid',
		qr/^> +late oid/m
	],
	'another text of a view' => [
		$update =~ s/coalesce\(c\.visits, 0\)/c.visits/r,
		qr/^> +c\.visits/m
	],
	'something left over' => [
		$update . 'CREATE VIEW old AS SELECT 1 AS one',
		qr/^> CREATE VIEW ttl_index\.old/m
	],
	'a disabled event trigger' => [
		$update . 'ALTER EVENT TRIGGER ttl_index_ddl DISABLE',
		qr/^> ALTER EVENT TRIGGER ttl_index_ddl DISABLE/m
	]);
my $n = 0;
foreach my $what (sort keys %incomplete)
{
	my ($text, $expected) = @{ $incomplete{$what} };
	my $version = '0.0.1.' . ++$n;

	$installation->add_script($version, $early);
	$installation->add_script("$version--$current", $text);
	like(difference($version), $expected, "the comparison finds $what");
}

#
# A new library and the objects of an old version
#

install('behind', '0.0.1');
install('abreast');
foreach my $db ('behind', 'abreast')
{
	$node->safe_psql(
		$db, q{
CREATE TABLE t (at timestamptz);
CREATE INDEX t_at ON t (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO t VALUES ('2000-01-01'), ('2100-01-01')});
}
my $misfit = qr/ERROR:  the objects of extension "ttl_index" do not fit its library
.*DETAIL:  ttl_index\.counters has \d+ columns where the library expects \d+\.
.*HINT:  .*ALTER EXTENSION ttl_index UPDATE/;

foreach my $sql ('CALL ttl_index.run_pass()',
	'SELECT ttl_index.stats_reset()')
{
	my ($ret, $stdout, $stderr) = $node->psql('behind', $sql);

	like($stderr, $misfit, "a clear error from: $sql");
}
$node->wait_for_log($misfit);
ok( $node->poll_query_until('abreast', 'SELECT count(*) = 1 FROM t'),
	'the monitor says so, and goes on in another database');
is( $node->safe_psql('behind', 'SELECT count(*) FROM t'), 2,
	'and deletes nothing that it could not count');
my $indexes = 'SELECT * FROM ttl_index.indexes';
my $before = $node->safe_psql('behind', $indexes);
is( $node->safe_psql('behind', 'SELECT state, reason FROM ttl_index.indexes'),
	'active|', 'what is there works as it did');
$node->has_not_crashed('nothing crashes');

$node->safe_psql('behind', 'ALTER EXTENSION ttl_index UPDATE');
is($node->safe_psql('behind', $indexes),
	$before, 'the TTL indexes are the same after the update');
ok( $node->poll_query_until(
		'behind', 'SELECT deleted_documents = 1 FROM ttl_index.stats'),
	'and the monitor sets to work');

$node->stop;
done_testing();
