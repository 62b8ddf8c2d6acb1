# Copyright (c) 2026, ttl_index contributors

# While others write, a worker waits for the disk after about half a megabyte of its WAL: their
# commits would wait for all of it.  Where nobody else writes, it does not wait.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TtlNode;

# nothing else writes WAL to disk, but the end of a segment of 16 MB
my $node = TtlNode->running(
	q{fsync = on
wal_sync_method = fdatasync
autovacuum = off
ttl_index.monitor_enabled = off
checkpoint_timeout = 1d
max_wal_size = 10GB
wal_writer_delay = 10s
wal_writer_flush_after = 1GB
});
my $syncs = $node->safe_psql('postgres', 'SHOW server_version_num') < 180000 ?
  'SELECT wal_sync FROM pg_stat_wal' : q{SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'};

$node->safe_psql(
	'postgres', q{
CREATE TABLE events (at timestamptz);
CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});

# How often WAL was written to disk while 50 MB of it came from deleting rows.
sub syncs_of_drain
{
	$node->safe_psql('postgres', q{INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 500000)});
	my $before = $node->safe_psql('postgres', $syncs);
	$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM events'), 0, 'all rows are deleted');
	return $node->safe_psql('postgres', $syncs) - $before;
}

my $alone = syncs_of_drain();

my $writer = $node->background_psql('postgres');
$writer->query_safe('SET synchronous_commit = off');
$writer->query_until(qr/writes/, q{\echo writes
DO $$ BEGIN LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$;
});
my $beside = syncs_of_drain();
$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO%'});
eval { $writer->quit };

cmp_ok($beside, '>=', 20, 'beside others, WAL is written to disk as it comes');
cmp_ok($alone, '<', $beside / 2, 'and seldom without them');

$node->stop;
done_testing();
