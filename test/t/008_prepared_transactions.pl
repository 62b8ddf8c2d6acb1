# Copyright (c) 2026, ttl_index contributors

# Prepared transactions hold locks without a session, for hours and over restarts:
# what they hold is left, and stalls nothing else.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
max_prepared_transactions = 5
ttl_index.monitor_enabled = off
});
$node->safe_psql(
	'postgres', q{
CREATE TABLE rows (id int PRIMARY KEY, at timestamptz);
CREATE TABLE whole (at timestamptz);
CREATE TABLE parent (id int PRIMARY KEY, at timestamptz);
CREATE TABLE child (id int REFERENCES parent ON DELETE CASCADE);
CREATE TABLE free (at timestamptz);
CREATE INDEX rows_ttl ON rows (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX whole_ttl ON whole (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX parent_ttl ON parent (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX free_ttl ON free (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO rows SELECT g, '2000-01-01' FROM generate_series(1, 4) AS g;
INSERT INTO whole VALUES ('2000-01-01');
INSERT INTO parent SELECT g, '2000-01-01' FROM generate_series(1, 2) AS g;
INSERT INTO free VALUES ('2000-01-01');

-- a row each that is locked, pushed forward, deleted and referenced, and a table
BEGIN;
SELECT FROM rows WHERE id = 1 FOR UPDATE;
UPDATE rows SET at = '2100-01-01' WHERE id = 2;
DELETE FROM rows WHERE id = 3;
INSERT INTO child VALUES (1);
PREPARE TRANSACTION 'rows';
BEGIN;
LOCK TABLE whole IN ACCESS EXCLUSIVE MODE;
PREPARE TRANSACTION 'whole';
ALTER SYSTEM SET ttl_index.monitor_enabled = on;
});

# They are there again before the monitor is.
$node->restart;

my $rest = q{
SELECT (SELECT string_agg(id::text, ',' ORDER BY id) FROM rows),
	(SELECT string_agg(id::text, ',' ORDER BY id) FROM parent)};

sub wait_for_pass
{
	$node->safe_psql('postgres', "INSERT INTO free VALUES ('2000-01-01')");
	$node->empties('postgres', 'free',
		'the monitor works beside the prepared transactions');
	return;
}
wait_for_pass();
wait_for_pass();
is($node->safe_psql('postgres', $rest),
	'1,2,3|1', 'what they hold is left, and all else gone');
is( $node->safe_psql(
		'postgres', q{
SELECT relname, skipped_locked > 1, errors FROM ttl_index.index_stats
WHERE relname <> 'free' ORDER BY relname}),
	"parent|t|0\nrows|t|0\nwhole|t|0",
	'it is counted as locked in each pass, and no error');
is( $node->safe_psql('postgres',
		"SELECT state FROM ttl_index.indexes WHERE indexrelid = 'whole_ttl'::regclass"
	),
	'table_locked',
	'the table that is locked is shown as such');

$node->safe_psql('postgres', "COMMIT PREPARED 'rows'");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'whole'");
ok( $node->poll_query_until(
		'postgres',
		'SELECT NOT EXISTS (SELECT FROM whole) AND NOT EXISTS (SELECT FROM parent)'
	),
	'once they are gone, the rest goes');
wait_for_pass();
is($node->safe_psql('postgres', $rest),
	'2|', 'but for the row that was pushed forward');
is($node->safe_psql('postgres', 'SELECT count(*) FROM child'),
	0, 'a referencing row goes with its parent');

# Names of buckets that are to be made, as anybody can take who may create tables in the
# schema.
$node->safe_psql(
	'postgres', q{
BEGIN;
CREATE TABLE series (at timestamptz NOT NULL) PARTITION BY RANGE (at);
SELECT ttl_index.create_time_series('series', 'at', granularity => 'seconds', expire_after_seconds => 0);
CREATE TABLE taken AS SELECT inhrelid::regclass::text AS name FROM pg_inherits
WHERE inhparent = 'series'::regclass ORDER BY inhrelid DESC LIMIT 4;
DROP TABLE series;
COMMIT;
BEGIN;
SELECT format('CREATE TABLE %s ()', name) FROM taken \gexec
PREPARE TRANSACTION 'names';
CREATE TABLE series (at timestamptz NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE due PARTITION OF series FOR VALUES FROM ('2000-01-01') TO ('2000-01-02');
CREATE INDEX ON series (at) WHERE ttl_index.expire_after_seconds(0)
	AND ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(3600);
});
$node->becomes('postgres', q{SELECT to_regclass('due') IS NULL},
	'where new buckets cannot be made, those that are due go');
is( $node->safe_psql('postgres', 'SELECT count(to_regclass(name)) FROM taken'),
	0, 'their names are taken still');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'names'");
$node->becomes('postgres', 'SELECT count(to_regclass(name)) = 4 FROM taken',
	'and new ones come when their names are free');

$node->stop;
done_testing();
