# Copyright (c) 2026, ttl_index contributors

# pg_upgrade, by copy and by link: the same TTL indexes and counters before and
# after, and nothing deleted on the way.  From the installation of which
# "oldinstall" in the environment is the prefix (script/test sets it, see there),
# else from this one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my @cluster = (extra => [ '-k', '--locale=C', '--encoding=UTF8' ]);

my $old = TtlNode->configured(
	'ttl_index.monitor_enabled = off',
	name => 'old',
	install_path => $ENV{oldinstall},
	init => \@cluster);
$old->start;
note 'from ' . $old->safe_psql('postgres', 'SELECT version()');

# Its counters have something to say.
$old->safe_psql('postgres', slurp_file('test/data/ttl_indexes.sql'));
$old->safe_psql('postgres', q{REINDEX INDEX CONCURRENTLY "Odd"."At ttl"});
$old->safe_psql('postgres', q{CALL ttl_index.run_pass()});
$old->safe_psql('postgres',
	"INSERT INTO events VALUES ('2000-01-01', 'due')");
# Archives in schemas that are restored before and after that of the table.
$old->safe_psql(
	'postgres', join "\n", map {
		qq{
CREATE SCHEMA $_;
CREATE TABLE $_.archive (at timestamptz, arrived timestamptz DEFAULT now());
CREATE TABLE moves_to_$_ (at timestamptz);
CREATE INDEX ON moves_to_$_ (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('$_.archive');
INSERT INTO moves_to_$_ VALUES ('2001-01-01'), ('2999-01-01');
}
	} ('a_cold', 'z_cold'));

my $indexes = q{
SELECT indexrelid, indexrelid::oid, relid, parent_indexrelid, key, expire_after_seconds, time_zone,
	partial_filter_expression, document_ttl, drop_expired_partitions, archive_to, state, reason
FROM ttl_index.indexes ORDER BY indexrelid::text COLLATE "C"};
my $counters = q{
SELECT * FROM ttl_index.stats;
SELECT * FROM ttl_index.index_stats ORDER BY indexrelid};
my $rows = q{
SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM "Odd"."Local times"),
	(SELECT count(*) FROM dates), (SELECT count(*) FROM parts),
	(SELECT count(*) FROM changed), (SELECT count(*) FROM plain),
	(SELECT count(*) FROM documents), (SELECT count(*) FROM coll)};
my %before = map { $_ => $old->safe_psql('postgres', $_) }
  ($indexes, $counters, $rows);

is($before{$rows}, '3|2|2|1|1|1|1|2', 'one row is due in the old cluster');
unlike($before{$indexes}, qr/\|(?!active)[a-z_]+\|[^|]*$/m,
	'its TTL indexes are active');
$old->stop;

# The servers that pg_upgrade starts live too short for the monitor to show
# whether it would work there, so look at one that does not.
$old->append_conf('postgresql.conf', 'log_min_messages = debug1');
my $registering = qr/registering background worker "ttl_index launcher"/;
$old->start;
$old->stop;
like(slurp_file($old->logfile), $registering, 'a server has a launcher');
my $offset = -s $old->logfile;
$old->command_ok(
	[
		'pg_ctl', '-w', '-D', $old->data_dir, '-l', $old->logfile, '-o', '-b',
		'start'
	],
	'start as pg_upgrade does');
$old->command_ok([ 'pg_ctl', '-w', '-D', $old->data_dir, 'stop' ], 'stop');
unlike(slurp_file($old->logfile, $offset),
	$registering, 'rule 29: there is none during pg_upgrade');

sub upgrade
{
	my ($mode) = @_;
	my $new =
	  TtlNode->configured('', name => "new_$mode", init => \@cluster);
	my $dir = PostgreSQL::Test::Utils::tempdir;

	# it leaves files in the current directory
	chdir $dir or die "chdir: $!";
	$new->command_ok(
		[
			'pg_upgrade', '--no-sync',
			'-d', $old->data_dir,
			'-D', $new->data_dir,
			'-b', $old->config_data('--bindir'),
			'-B', $new->config_data('--bindir'),
			'-s', $new->host,
			'-p', $old->port,
			'-P', $new->port,
			$mode eq 'link' ? '--link' : ()
		],
		"pg_upgrade, by $mode");
	return $new;
}

foreach my $mode ('copy', 'link')
{
	my $new = upgrade($mode);

	$new->append_conf('postgresql.conf', 'ttl_index.monitor_enabled = off');
	$new->start;
	note 'to ' . $new->safe_psql('postgres', 'SELECT version()');
	is($new->safe_psql('postgres', $rows),
		$before{$rows},
		"$mode: nothing has expired while pg_upgrade ran");
	is($new->safe_psql('postgres', $indexes),
		$before{$indexes}, "$mode: the TTL indexes are the same");
	is($new->safe_psql('postgres', $counters),
		$before{$counters}, "$mode: the counters are the same");

	# the first pass saves the options: pg_upgrade makes event triggers behind the indexes
	$new->set('monitor_enabled', 'on');
	ok( $new->poll_query_until(
			'postgres', q{SELECT min(at) = '2100-01-01' FROM events}),
		"$mode: then the monitor sets to work");
	$new->safe_psql('postgres', 'REINDEX DATABASE CONCURRENTLY postgres');
	$new->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM ttl_index.indexes WHERE state = 'option_lost'})
	  or die 'no pass restores the options';
	is( $new->safe_psql('postgres', $indexes) =~ s/\|\d+\|/|/gr,
		$before{$indexes} =~ s/\|\d+\|/|/gr,
		"$mode: REINDEX CONCURRENTLY loses no option");
	is( $new->safe_psql('postgres', $rows),
		'2|2|2|1|1|1|1|2',
		"$mode: rule 1: what is due goes and nothing else");
	ok( $new->poll_query_until('postgres', q{
SELECT (SELECT count(*) FROM a_cold.archive) = 1 AND (SELECT count(*) FROM z_cold.archive) = 1
	AND (SELECT count(*) FROM moves_to_a_cold) = 1 AND (SELECT count(*) FROM moves_to_z_cold) = 1}),
		"$mode: and moves to the archives");
	$new->stop;
}

done_testing();
