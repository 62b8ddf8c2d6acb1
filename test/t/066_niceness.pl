# Copyright (c) 2026, ttl_index contributors

# Where processors are short, other processes run before a worker.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Test::More;
use TtlNode;

# Has the kernel kill this process, or one that it starts, when it makes this system call.
sub forbid
{
	my ($name) = @_;
	my ($number, $prctl) = eval { require 'syscall.ph'; no strict 'refs'; (&{"SYS_$name"}(), SYS_prctl()) };
	return 0 unless defined $prctl;

	# load the number; if it is that one, kill; allow
	my $filter = pack('SCCL' x 4, 0x20, 0, 0, 0, 0x15, 0, 1, $number, 0x06, 0, 0, 0x80000000, 0x06, 0, 0, 0x7fff0000);
	# PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP, SECCOMP_MODE_FILTER
	return syscall($prctl, 38, 1, 0, 0, 0) == 0 && syscall($prctl, 22, 2, pack('Sx6P', 4, $filter)) == 0;
}

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
WHERE niceness(pid) = greatest(niceness(pg_backend_pid()), 5)
	AND (session_niceness(pid) = greatest(session_niceness(pg_backend_pid()), 5)) IS NOT FALSE},
	'a worker has a niceness of 5');
$node->set('delete_rate_limit', 0);
$node->empties('postgres', 'events', 'and deletes all rows');

# as a unit of systemd does that has SystemCallFilter = ~@resources
$node->stop;
SKIP:
{
	skip 'no system call can be forbidden', 1 unless forbid('setpriority');
	$node->start;
	$node->safe_psql('postgres', q{INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 10000)});
	$node->empties('postgres', 'events', 'where whoever changes a priority is killed, rows are deleted, too');
	$node->stop;
}
done_testing();
