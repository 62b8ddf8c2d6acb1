# Copyright (c) 2026, ttl_index contributors

# Where processors are short, other processes run before a worker.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TtlNode;

plan skip_all => 'the system has no /proc' unless -r '/proc/self/stat';

my $node = TtlNode->running("autovacuum = off\nttl_index.delete_rate_limit = 10");
$node->safe_psql(
	'postgres', q{
CREATE TABLE events (at timestamptz);
INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 10000);
-- the 19th field, behind a name that can have spaces
CREATE FUNCTION niceness(pid int) RETURNS int AS
	$$ SELECT split_part(regexp_replace(pg_read_file('/proc/' || pid || '/stat', 0, 4096, true), '.*\) ', ''), ' ', 17)::int $$
	LANGUAGE sql;
-- that of its session, where the kernel groups processes by session
CREATE FUNCTION session_niceness(pid int) RETURNS int AS
	$$ SELECT substring(pg_read_file('/proc/' || pid || '/autogroup', 0, 4096, true) FROM 'nice (-?\d+)')::int $$
	LANGUAGE sql;
CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->becomes('postgres',
	q{SELECT count(*) = 1 FROM ttl_index.current_op
WHERE niceness(pid) = least(niceness(pg_backend_pid()) + 5, 19)
	AND session_niceness(pid) IS NOT DISTINCT FROM session_niceness(pg_backend_pid()) + 5},
	'a worker is nicer than a session by 5');
$node->set('delete_rate_limit', 0);
$node->empties('postgres', 'events', 'and deletes all rows');

$node->stop;
done_testing();
