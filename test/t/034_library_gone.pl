# Copyright (c) 2026, ttl_index contributors

# A database outlives the library: where the file is gone, DDL of others works with a WARNING,
# rows are read and written, and DROP EXTENSION works.  The test has an installation of its own.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Installation;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $installation = Installation->made_in(PostgreSQL::Test::Utils::tempdir);
my $node = TtlNode->running('ttl_index.monitor_enabled = off', install_path => $installation->prefix);

$node->safe_psql(
	'postgres', q{
CREATE ROLE app;
GRANT CREATE ON DATABASE postgres TO app;
CREATE SCHEMA app AUTHORIZATION app;
SET ROLE app;
SET search_path = app;
CREATE TABLE events (id int, at timestamptz);
SELECT ttl_index.create_index('events', 'at', 60);
CREATE TABLE parts (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.drop_expired_partitions();
CREATE TABLE documents (doc jsonb);
SELECT ttl_index.create_index('documents', 'doc.at', 60);
CREATE TABLE changes (id int);
SELECT ttl_index.track_last_modified('changes');
INSERT INTO events VALUES (1, '2001-01-01');
INSERT INTO documents VALUES ('{"at": "2001-01-01T00:00:00Z"}'), ('{"at": "2001-01-01T00:00:00Z"}');
INSERT INTO changes VALUES (1);
});

#
# The file is gone
#

$installation->drop_library;
$node->stop;
ok(!$node->start(fail_ok => 1), 'the server does not start while the library is preloaded');
like(slurp_file($node->logfile), qr/FATAL:  could not access file "ttl_index"/, 'and says so');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;

my $warning = qr/WARNING:  TTL indexes are not checked: could not access file "[^"]*ttl_index": No such file or directory
HINT:  Install ttl_index again, or drop the extension\. DROP EXTENSION ttl_index CASCADE drops the TTL indexes, too\.$/m;

foreach my $sql ('CREATE TABLE more (id int PRIMARY KEY, at timestamptz)',
	'CREATE INDEX more_at ON more (at)',
	'CREATE INDEX CONCURRENTLY more_id ON more (id)',
	'ALTER INDEX more_id RENAME TO more_ids',
	'ALTER INDEX more_ids SET (fillfactor = 80)',
	'CREATE SCHEMA another CREATE TABLE t (id int)',
	'ALTER TABLE events ADD COLUMN more int, DROP COLUMN id',
	'CREATE INDEX events_ttl ON events (at) WHERE more > 1 AND ttl_index.expire_after_seconds(60)',
	"CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2002-01-01') TO ('2003-01-01')",
	'ALTER TABLE parts DETACH PARTITION parts_2 CONCURRENTLY',
	"ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM ('2002-01-01') TO ('2003-01-01')",
	'BEGIN; CREATE TABLE inside (id int); COMMIT')
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $sql,
		connstr => $node->connstr('postgres') . " options='-c role=app -c search_path=app'");

	is($ret, 0, "works: $sql");
	like($stderr, $warning, 'with a WARNING');
}

# the error of a command as the role, or nothing
sub error_of
{
	my ($sql) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET ROLE app; SET search_path = app; $sql");

	return $ret == 0 ? '' : $stderr;
}

foreach my $sql ("INSERT INTO events VALUES ('2001-01-01')", 'UPDATE events SET more = 1', 'DELETE FROM documents WHERE ctid = \'(0,1)\'',
	'VACUUM documents', 'VACUUM ANALYZE events', 'REINDEX TABLE events', 'REINDEX INDEX CONCURRENTLY events_ttl',
	'DROP TABLE parts_2', 'DROP INDEX events_at_ttl', "SELECT ttl_index.seconds('1 day')")
{
	is(error_of($sql), '', "works: $sql");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM app.events WHERE at < '2002-01-01'}), 2, 'the rows are there');

# what calls a function of the library for each row
foreach my $sql (q{INSERT INTO documents VALUES ('{"at": null}')}, 'INSERT INTO changes VALUES (2)',
	'ANALYZE documents', 'CALL ttl_index.run_pass()')
{
	like(error_of($sql), qr/ERROR:  could not access file "[^"]*ttl_index"/, "needs the library: $sql");
}
is(error_of(q{DROP INDEX documents_doc_at_ttl; INSERT INTO documents VALUES ('{"at": null}')}),
	'', 'without the index rows are written');
is(error_of(q{SELECT ttl_index.untrack_last_modified('changes'); INSERT INTO changes VALUES (2)}),
	'', 'and without the trigger');

# Citus, which the event trigger of ALTER INDEX is for
my $before_alter = q{SELECT evtenabled FROM pg_event_trigger WHERE evtname = 'ttl_index_before_alter_index'};
is($node->safe_psql('postgres', $before_alter), 'D', 'ALTER INDEX needs no library without Citus');
my $citus = $installation->extensions . '/citus';
unlink "$citus.control";	# a link
append_to_file("$citus.control", "default_version = '0'\n");
append_to_file("$citus--0.sql", "-- stands in for Citus\n");
$node->safe_psql('postgres', 'CREATE EXTENSION citus');
is($node->safe_psql('postgres', $before_alter), 'O', 'CREATE EXTENSION citus enables it');
$node->safe_psql('postgres', 'CREATE DATABASE after_citus');

#
# The file is back
#

$installation->give_library_back;
like(error_of('CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(-1)'),
	qr/ERROR:  /, 'with the library, DDL is checked again');
$node->safe_psql('after_citus', 'CREATE EXTENSION citus; CREATE EXTENSION ttl_index');
is($node->safe_psql('after_citus', $before_alter), 'O', 'the event trigger is enabled where Citus was first');

#
# Dropping the extension needs no library
#

$installation->drop_library;
like(($node->psql('postgres', 'DROP EXTENSION ttl_index'))[2],
	qr/ERROR:  cannot drop extension ttl_index.*index app\.parts_ttl depends on function ttl_index\./s,
	'DROP EXTENSION names what still depends');
$node->safe_psql('postgres', 'DROP EXTENSION ttl_index CASCADE');
is($node->safe_psql('postgres', 'SELECT count(*) FROM app.events; SELECT count(*) FROM pg_event_trigger'),
	"2\n0", 'CASCADE drops the indexes and the event triggers, and no row');
$node->safe_psql('after_citus', 'DROP EXTENSION ttl_index');
my ($ret, $stdout, $stderr) = $node->psql('postgres', 'CREATE TABLE free (id int)');
is("$ret $stderr", '0 ', 'DDL works without a WARNING then');
$node->stop;
done_testing();
