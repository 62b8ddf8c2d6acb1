# Copyright (c) 2026, ttl_index contributors

# archive_to a foreign table: rows go to another server.  None is lost, whatever fails there
# and whenever; after a crash between the two commits a row is there twice.

use strict;
use warnings;
use IPC::Run;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

plan skip_all => 'there is no postgres_fdw'
  unless -e TtlNode->new('look')->config_data('--sharedir') . '/extension/postgres_fdw.control';

# Passes are called by hand, so that a test knows whose they are.
my $cold = TtlNode->configured("ttl_index.monitor_enabled = off\n", name => 'cold');
my $hot = TtlNode->configured("ttl_index.monitor_enabled = off\nrestart_after_crash = on\n", name => 'hot');
my ($host, $port) = ($cold->host, $cold->port);

$cold->start;
$hot->start;
$cold->safe_psql(
	'postgres', q{
CREATE TABLE event (at timestamptz, id int, body text, arrived timestamptz DEFAULT now());
CREATE TABLE checked (id int, at timestamptz);
CREATE TABLE slow (id int, at timestamptz);
});
$hot->safe_psql(
	'postgres', qq{
CREATE EXTENSION ttl_index;
CREATE EXTENSION postgres_fdw;
CREATE SERVER cold FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '100');
CREATE USER MAPPING FOR CURRENT_USER SERVER cold;
CREATE TABLE event (id int, at timestamptz, body text);
CREATE FOREIGN TABLE event_cold (id int, at timestamptz, body text) SERVER cold OPTIONS (table_name 'event');
CREATE INDEX event_ttl ON event (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('event_cold');
INSERT INTO event SELECT g, '2001-01-01', repeat('x', g) FROM generate_series(1, 1000) AS g;
INSERT INTO event VALUES (0, '2999-01-01');
});

sub pass
{
	my ($node, $stderr) = ($hot, '');

	$node->psql('postgres', 'CALL ttl_index.run_pass()', stderr => \$stderr);
	return $stderr;
}

sub stats
{
	my ($index) = @_;

	return $hot->safe_psql('postgres',
		"SELECT deleted_documents, archived_documents, skipped_failed, errors FROM ttl_index.index_stats WHERE indexrelname = '$index'");
}

pass();
is($cold->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), sum(length(body)), count(arrived) FROM event'),
	'1000|1000|500500|1000', 'rows move to the other server, where its own columns have their defaults');
is($hot->safe_psql('postgres', 'SELECT id FROM event'), '0', 'what is not due stays');
is(stats('event_ttl'), '1000|1000|0|0', 'and they are counted');

$hot->safe_psql('postgres', 'DROP USER MAPPING FOR CURRENT_USER SERVER cold; CREATE USER MAPPING FOR PUBLIC SERVER cold');

# What the other server refuses at once, or only when it commits, stays, and is told.
$cold->safe_psql(
	'postgres', q{
ALTER TABLE checked ADD CHECK (id <> 3), ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED;
INSERT INTO checked VALUES (5);
});
$hot->safe_psql(
	'postgres', q{
CREATE TABLE checked (id int, at timestamptz);
CREATE FOREIGN TABLE checked_cold (id int, at timestamptz) SERVER cold OPTIONS (table_name 'checked');
CREATE INDEX checked_ttl ON checked (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('checked_cold');
INSERT INTO checked SELECT g, '2001-01-01' FROM generate_series(1, 7) AS g;
-- by an index behind it
CREATE TABLE other (at timestamptz);
CREATE INDEX other_ttl ON other (at) WHERE ttl_index.expire_after_seconds(60);
INSERT INTO other VALUES ('2001-01-01');
});
pass();
is($hot->safe_psql('postgres', 'SELECT id FROM checked ORDER BY 1'), "3\n5", 'what the other server refuses stays');
is($cold->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM checked'), '6|6', 'the others are there once');
like(stats('checked_ttl'), qr/^5\|5\|2\|/, 'both are counted');
is($hot->safe_psql('postgres', 'SELECT count(*) FROM other'), '0', 'and other tables go on');

# A server that is down is to blame itself, and no row.
$hot->safe_psql('postgres', q{
DELETE FROM checked;
SELECT ttl_index.stats_reset('event_ttl');
INSERT INTO event SELECT g, '2001-01-01' FROM generate_series(2001, 2100) AS g;
INSERT INTO other VALUES ('2001-01-01');
});
$cold->stop('immediate');
like(pass(), qr/could not expire rows by TTL index "event_ttl"/, 'a server that is down is told');
like(stats('event_ttl'), qr/^0\|0\|0\|1$/, 'but no row is blamed for it');
is($hot->safe_psql('postgres', q{SELECT state FROM ttl_index.indexes WHERE indexrelid = 'event_ttl'::regclass}),
	'failing', 'and shown');
is($hot->safe_psql('postgres', 'SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM other)'),
	'101|0', 'nothing is deleted there, and other tables go on');
$cold->start;
pass();
is($cold->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM event WHERE id > 2000'),
	'100|100', 'once it is back, the rows move');
is(stats('event_ttl'), '100|100|0|1', 'and are counted');

# The other server has committed, and this one crashes before it does: twice, not never.
$cold->safe_psql(
	'postgres', q{
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
});
$hot->safe_psql(
	'postgres', q{
CREATE TABLE slow (id int, at timestamptz);
CREATE FOREIGN TABLE slow_cold (id int, at timestamptz) SERVER cold OPTIONS (table_name 'slow');
CREATE INDEX slow_ttl ON slow (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.archive_to('slow_cold');
INSERT INTO slow VALUES (1, '2001-01-01');
ALTER SYSTEM SET ttl_index.batch_timeout = '10min';
SELECT pg_reload_conf();
});
my $gate = $cold->background_psql('postgres');
$gate->query_safe('SELECT pg_advisory_lock(1)');
my ($output, $errors) = ('', '');
my $running = IPC::Run::start(
	[
		$hot->installed_command('psql'), '-X', '-h', $hot->host, '-p', $hot->port,
		'-c', 'CALL ttl_index.run_pass()', 'postgres'
	],
	'>', \$output, '2>', \$errors);
$cold->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE 'COMMIT%'})
  or die 'the other server is not at its commit';
$hot->kill9;
eval { $running->finish };
$gate->query_safe('SELECT pg_advisory_unlock(1)');
$gate->quit;
$cold->poll_query_until('postgres', 'SELECT count(*) = 1 FROM slow')
  or die 'the other server did not commit';
$hot->start_after_kill;
$hot->wait_until_accepting;
is($hot->safe_psql('postgres', 'SELECT count(*) FROM slow'), '1',
	'after a crash between the two commits the row is in both');
is(stats('slow_ttl'), '0|0|0|0', 'and not counted');
pass();
is($hot->safe_psql('postgres', 'SELECT count(*) FROM slow'), '0', 'it goes with the next pass');
is($cold->safe_psql('postgres', 'SELECT count(*) FROM slow'), '2', 'and is there twice then');
is(stats('slow_ttl'), '1|1|0|0', 'and counted once');

done_testing();
