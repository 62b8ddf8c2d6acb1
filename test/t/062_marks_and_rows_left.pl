# Copyright (c) 2026, ttl_index contributors

# Rows that a pass has to leave, and what must not hide others: a locked row is looked at
# again without those that cannot be deleted (rule 7).  And a batch in block order
# ends where there are no rows, too.  Rows that fall due before a mark expire as
# any others (rule 18).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Heartbeat;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
shared_preload_libraries = 'ttl_index'
autovacuum = off
log_statement = none
ttl_index.monitor_sleep = 1
});
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN IF OLD.stays THEN RAISE 'row % stays', OLD.id; END IF; RETURN OLD; END $$;
});
my $heartbeat = Heartbeat->new($node);

# A table with a row that cannot be deleted, and the mark behind it.
sub make
{
	my ($name, $type, $option, $more) = @_;

	$more = $more // '';

	$node->safe_psql(
		'postgres', qq{
CREATE TABLE $name (id int, at $type, stays boolean DEFAULT false);
CREATE TRIGGER keep BEFORE DELETE ON $name FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO $name VALUES (1, '2001-01-01', true), (2, '2001-01-03', false)$more;
CREATE INDEX ${name}_ttl ON $name (at) WHERE $option;
});
	gone($name, 2);
	$heartbeat->passes(1);
	return;
}

sub gone
{
	my ($table, $id) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM $table WHERE id = $id")
	  or die "row $id stays";
	return;
}

sub errors
{
	my ($table) = @_;

	return $node->safe_psql('postgres',
		"SELECT skipped_failed FROM ttl_index.index_stats WHERE relname = '$table'"
	);
}

#
# A locked row behind the mark
#

make('locked', 'timestamptz', 'ttl_index.expire_after_seconds(3600)');
my $holder = $node->background_psql('postgres');
$holder->query_safe(
	q{BEGIN; INSERT INTO locked VALUES (3, '2001-01-04'); COMMIT;
BEGIN; SELECT id FROM locked WHERE id = 3 FOR UPDATE});
$heartbeat->passes(3);
is(errors('locked'), 1, 'a locked row does not cost the mark');
$holder->query_safe('COMMIT');
$holder->quit;
gone('locked', 3);

#
# More rows that cannot be deleted than are known by their tuple id: a late row on the
# same page does not wait for them, nor are they tried again for it.
#

make('many', 'timestamptz', 'ttl_index.expire_after_seconds(3600)',
	join('', map { ", ($_, '2001-01-02', true)" } 11 .. 40));
$node->poll_query_until('postgres',
	"SELECT skipped_failed = 31 FROM ttl_index.index_stats WHERE relname = 'many'")
  or die 'they are not found';
$heartbeat->passes(1);
$node->safe_psql('postgres', "INSERT INTO many VALUES (3, '2001-01-02')");
gone('many', 3);
$heartbeat->passes(1);
is(errors('many'), 31, 'a late row does not wait beside many that stay');

#
# A locked row before many that cannot be deleted
#

$node->safe_psql(
	'postgres', q{
ALTER SYSTEM SET ttl_index.index_delete_target_time = '100ms';
SELECT pg_reload_conf();
CREATE FUNCTION keep_slowly() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_sleep(0.002); RAISE 'row % stays', OLD.id; END $$;
CREATE TABLE band (id int, at timestamptz);
CREATE TRIGGER keep BEFORE DELETE ON band FOR EACH ROW WHEN (OLD.id > 9) EXECUTE FUNCTION keep_slowly();
INSERT INTO band SELECT i, timestamptz '2001-01-01' + i * interval '1 s' FROM generate_series(9, 160) AS i;
INSERT INTO band VALUES (3, '2001-01-02');
});
$holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; SELECT id FROM band WHERE id = 9 FOR UPDATE');
$node->safe_psql('postgres',
	'CREATE INDEX band_ttl ON band (at) WHERE ttl_index.expire_after_seconds(3600)'
);
ok( $node->poll_query_until(
		'postgres', 'SELECT count(*) = 0 FROM band WHERE id = 3'),
	'a locked row keeps no pass from what is behind those');
$holder->query_safe('COMMIT');
$holder->quit;
$node->safe_psql('postgres',
	'ALTER SYSTEM RESET ttl_index.index_delete_target_time');
$node->reload;
$node->safe_psql('postgres', 'DROP TABLE band');

#
# A mark behind what falls due: the time was made longer, or a zone's changed
#

# The seconds from this instant to some from now.
sub seconds_since
{
	my ($instant) = @_;

	return $node->safe_psql('postgres',
		"SELECT extract(epoch FROM now() - timestamptz '$instant')::int");
}

make('longer', 'timestamptz', 'ttl_index.expire_after_seconds(3600)');
my $seconds = seconds_since('2001-01-02 00:00 UTC');
$node->safe_psql(
	'postgres', qq{
SELECT ttl_index.coll_mod_index('longer_ttl', $seconds);
INSERT INTO longer VALUES (3, '2001-01-02 00:00:05 UTC')});

# After the end of summer time in Berlin, at 2001-10-28 01:00 UTC, the walk goes an
# hour beyond what is due (rule 8).
my $summer = seconds_since('2001-10-28 12:00 UTC');
make('zoned', 'timestamp',
	"ttl_index.expire_after_seconds($summer) AND ttl_index.time_zone('Europe/Berlin')",
	", (3, '2001-10-28 13:00:08', false)");
$node->poll_query_until('postgres',
	"SELECT now() - $seconds * interval '1 s' > '2001-01-02 00:00:05 UTC'
	AND now() - $summer * interval '1 s' > '2001-10-28 12:00:08 UTC'");
$heartbeat->passes(1);
is( $node->safe_psql('postgres', 'SELECT count(*) FROM longer WHERE id = 3'),
	0,
	'what falls due before a mark does not wait');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM zoned WHERE id = 3'),
	0,
	'nor does what was not due when the walk came by');
is(errors('longer'), 1, 'nor is the mark given up');

#
# Blocks without rows
#

# a pass alone
$node->safe_psql(
	'postgres', q{
ALTER SYSTEM SET ttl_index.monitor_enabled = off;
SELECT pg_reload_conf();
CREATE TABLE hollow (at timestamptz, filler text) WITH (fillfactor = 10);
INSERT INTO hollow SELECT '2999-01-01', repeat('x', 500) FROM generate_series(1, 5500);
ALTER TABLE hollow SET (fillfactor = 100);
INSERT INTO hollow SELECT timestamptz '2001-01-01' + g * interval '1 s', repeat('x', 100)
FROM generate_series(1, 60000) AS g ORDER BY hashint4(g);
DELETE FROM hollow WHERE at = '2999-01-01';
ANALYZE hollow;
CREATE INDEX hollow_ttl ON hollow (at) WHERE ttl_index.expire_after_seconds(3600)});
my ($stdout, $stderr);
$node->psql(
	'postgres', q{
SET client_min_messages = log;
SET ttl_index.log_min_duration = 0;
SET ttl_index.index_delete_target_docs = 0;
SET ttl_index.index_delete_target_time = 0;
SET ttl_index.batch_target_docs = 1000;
SET ttl_index.batch_target_time = '1h';
CALL ttl_index.run_pass()},
	stdout => \$stdout, stderr => \$stderr);
like($stderr, qr/"hollow_ttl": deleted 60000 rows/, 'all that is due goes');
my ($batches) = $stderr =~ /"hollow_ttl": .* in (\d+) batches/;
# 3 by the index, 59 of rows: 62 if blocks were free
cmp_ok($batches, '>', 63, 'batches that find no rows end as well');

$node->stop;
done_testing();
