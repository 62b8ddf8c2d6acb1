# Copyright (c) 2026, ttl_index contributors

# How those who are not in the database tell the deletes of TTL indexes from others: by
# the messages of logical decoding, by application_name.  And that the setting for
# triggers cannot be made up before the library is loaded.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->configured(
	q{
autovacuum = off
ttl_index.monitor_enabled = off
},
	init => [ allows_streaming => 'logical' ]);
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION ttl_index;
CREATE TABLE plain (id int PRIMARY KEY, at timestamptz);
CREATE INDEX plain_ttl ON plain (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE fired (id int PRIMARY KEY, at timestamptz);
CREATE INDEX "Fired ttl" ON fired (at) WHERE ttl_index.expire_after_seconds(0);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.id = 13 THEN RAISE EXCEPTION 'kept'; END IF;
	RETURN OLD;
END $$;
CREATE TRIGGER keep BEFORE DELETE ON fired FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TABLE series (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE series_old PARTITION OF series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE TABLE series_rest PARTITION OF series DEFAULT;
SELECT ttl_index.create_index('series', 'at', 0, drop_expired_partitions => true);
CREATE UNLOGGED TABLE unlogged (at timestamptz);
CREATE INDEX unlogged_ttl ON unlogged (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE witness (at timestamptz);
CREATE PUBLICATION changes FOR TABLE plain, fired, series;
SELECT pg_create_logical_replication_slot('text', 'test_decoding');
SELECT pg_create_logical_replication_slot('binary', 'pgoutput');
});

# What test_decoding makes of a pass: a text for each transaction that has more than the
# extension's own table, of which only that rows are gone can be seen.  The checkpoint
# flushes the WAL of the workers, whose commits are asynchronous.
sub decoded_pass
{
	my $text = $node->safe_psql(
		'postgres', q{
CALL ttl_index.run_pass();
CHECKPOINT;
SELECT data FROM pg_logical_slot_get_changes('text', NULL, NULL)
WHERE data NOT LIKE 'table ttl_index.%: DELETE: (no-tuple-data)'});

	return grep { $_ ne '' }
	  map { s/\n?^COMMIT \d+\n?//mr } split /^BEGIN \d+\n?/m, $text;
}

# What it makes of a message, and of a deleted row
sub message
{
	my ($content) = @_;

	return 'message: transactional: 1 prefix: ttl_index, sz: '
	  . length($content)
	  . " content:$content";
}

sub deleted
{
	my ($table, $id) = @_;

	return "table public.$table: DELETE: id[integer]:$id";
}

my $rows = q{
INSERT INTO plain VALUES (1, '2000-01-01'), (2, '2000-01-01'), (3, '2100-01-01');
INSERT INTO fired VALUES (11, '2000-01-01'), (12, '2000-01-01');
INSERT INTO series VALUES (21, '2000-06-01'), (22, '1990-01-01');
INSERT INTO unlogged VALUES ('2000-01-01');
SELECT count(*) FROM pg_logical_slot_get_changes('text', NULL, NULL);
SELECT count(*) FROM pg_logical_slot_get_binary_changes('binary', NULL, NULL, 'proto_version', '1', 'publication_names', 'changes', 'messages', 'true');
};

#
# Off, and on
#

$node->safe_psql('postgres', $rows);
is_deeply(
	[ sort(decoded_pass()) ],
	[
		join("\n", deleted('fired', 11), deleted('fired', 12)),
		join("\n", deleted('plain', 1), deleted('plain', 2))
	],
	'there are no messages by default');

$node->safe_psql('postgres', 'TRUNCATE plain, fired, series, unlogged');
$node->safe_psql('postgres',
	"CREATE TABLE series_old PARTITION OF series FOR VALUES FROM ('2000-01-01') TO ('2001-01-01')"
);
$node->safe_psql('postgres', $rows);
$node->set('logical_messages', 'on');
is_deeply(
	[ sort(decoded_pass()) ],
	[
		sort join("\n",
			message('public."Fired ttl"'),
			deleted('fired', 11),
			deleted('fired', 12)),
		join("\n",
			message('public.plain_ttl'),
			deleted('plain', 1),
			deleted('plain', 2)),
		message("public.series_at_ttl\npublic.series_old")
	],
	'a message comes before the rows of a transaction, and with a partition that is dropped');

# The same through the plugin of subscriptions: B(egin), M(essage), R(elation), D(elete), C(ommit)
my $binary = $node->safe_psql(
	'postgres', q{
SELECT chr(get_byte(data, 0)) || CASE get_byte(data, 0) WHEN 77 THEN
	' ' || get_byte(data, 1) || ' ' || replace(encode(substring(data FROM 11), 'escape'), '\000', '|') ELSE '' END
FROM pg_logical_slot_get_binary_changes('binary', NULL, NULL,
	'proto_version', '1', 'publication_names', 'changes', 'messages', 'true')});
like($binary, qr/^B\nM 1 ttl_index\|.*public\.plain_ttl\nR\nD\nD\nC$/m,
	'pgoutput hands the message out before the deletes');
like($binary, qr/^B\nM 1 ttl_index\|.*public\."Fired ttl"\nR\nD\nD\nC$/m,
	'also where they are made by SQL');

#
# What was not done is not announced, and what others do neither
#

is(scalar(decoded_pass()), 0, 'a pass that deletes nothing says nothing');
$node->safe_psql(
	'postgres', q{
INSERT INTO fired VALUES (12, '2000-01-01'), (13, '2000-01-01'), (14, '2000-01-01');
DELETE FROM plain;
SELECT count(*) FROM pg_logical_slot_get_changes('text', NULL, NULL)});
is_deeply(
	[ decoded_pass() ],
	[ join("\n", message('public."Fired ttl"'), map { deleted('fired', $_) } (12, 14)) ],
	'the message comes once before the rows of a batch that can be deleted');
$node->safe_psql('postgres', 'TRUNCATE fired');

#
# What is kept elsewhere is announced with its place
#

$node->safe_psql(
	'postgres', q{
CREATE SCHEMA cold;
CREATE TABLE cold.kept (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE cold.kept_rest PARTITION OF cold.kept DEFAULT;
CREATE TABLE hot (id int PRIMARY KEY, at timestamptz);
SELECT ttl_index.create_index('hot', 'at', 0, archive_to => 'cold.kept');
INSERT INTO hot VALUES (31, '2000-01-01');
CREATE TABLE series_2001 PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
SELECT ttl_index.coll_mod('series', 'at', 0, drop_expired_partitions => true, archive_to => 'cold.kept');
SELECT count(*) FROM pg_logical_slot_get_changes('text', NULL, NULL)});
is_deeply(
	[ sort(decoded_pass()) ],
	[
		join("\n",
			message("public.hot_at_ttl\n\ncold.kept"),
			deleted('hot', 31),
			"table cold.kept_rest: INSERT: id[integer]:31 at[timestamp with time zone]:'2000-01-01 00:00:00+00'"),
		message("public.series_at_ttl\npublic.series_2001\ncold.kept")
	],
	'what is archived comes with the name of the archive');
$node->safe_psql(
	'postgres', q{
CREATE TABLE series_2002 PARTITION OF series FOR VALUES FROM ('2002-01-01') TO ('2003-01-01');
SELECT ttl_index.coll_mod('series', 'at', 0, archive_to => '-', detach_expired_partitions => true);
SELECT count(*) FROM pg_logical_slot_get_changes('text', NULL, NULL)});
is_deeply(
	[ decoded_pass() ],
	[ message("public.series_at_ttl\npublic.series_2002\npublic.series_2002") ],
	'a partition that is detached has its own name there');

#
# Whoever locks an index: the block of the row would be locked while core waits for that, to
# say which row was deleted, and nobody could cancel it
#

$node->safe_psql('postgres',
	"INSERT INTO plain VALUES (4, '2000-01-01'); SELECT ttl_index.stats_reset()");
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; ALTER INDEX plain_pkey SET TABLESPACE pg_default');
my $timed_out = 0;
$node->psql(
	'postgres', 'CALL ttl_index.run_pass()',
	timeout => $PostgreSQL::Test::Utils::timeout_default,
	timed_out => \$timed_out);
ok(!$timed_out, 'a pass does not wait for who has locked an index of the table');
$holder->query_safe('COMMIT');
$holder->quit;
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is( $node->safe_psql('postgres',
		"SELECT skipped_locked, deleted_documents, errors FROM ttl_index.index_stats WHERE relname = 'plain'"),
	'1|1|0',
	'it leaves the rows to the next one');

#
# application_name of the monitor's worker
#

$node->safe_psql(
	'postgres', q{
CREATE TABLE names (name text, expiring text);
CREATE FUNCTION name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO public.names VALUES (current_setting('application_name'), current_setting('ttl_index.expiring', true));
	RETURN OLD;
END $$;
CREATE TRIGGER name BEFORE DELETE ON fired FOR EACH ROW EXECUTE FUNCTION name();
ALTER DATABASE postgres SET application_name = 'another';
INSERT INTO fired VALUES (1, '2000-01-01')});
$node->set('monitor_enabled', 'on');
$node->empties('postgres', 'fired', 'the monitor deletes the row');
is( $node->safe_psql('postgres', 'TABLE names'),
	'ttl_index|public."Fired ttl"',
	'its trigger sees that it is the monitor, and the index');
$node->set('monitor_enabled', 'off');

#
# Without preload the setting is one that anybody can make up, until the library is
# there.
#

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
my ($ret, $stdout, $stderr) = $node->psql(
	'postgres', q{
SET ttl_index.expiring = 'made up';
INSERT INTO fired VALUES (2, '2000-01-01');
CALL ttl_index.run_pass();
SHOW ttl_index.expiring;
SELECT expiring FROM names;
SET ttl_index.expiring = 'again'});
is($stdout, "\npublic.\"Fired ttl\"\npublic.\"Fired ttl\"",
	'what was made up ends when the library is loaded');
like($stderr, qr/WARNING:  parameter "ttl_index.expiring" cannot be changed.*ERROR:  parameter "ttl_index.expiring" cannot be changed/s,
	'and cannot be made up again');

$node->stop;
done_testing();
