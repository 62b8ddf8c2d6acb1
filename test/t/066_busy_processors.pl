# Copyright (c) 2026, ttl_index contributors

# While others need the processors, deletion rests between its batches, and ends all the same.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $statistics = -r '/proc/self/schedstat' ? slurp_file('/proc/self/schedstat') : '';
plan skip_all => 'the system does not say for how long a process waits for a processor'
  unless $statistics =~ /^[1-9]/;

my $node = TtlNode->running("autovacuum = off\nttl_index.busy_share = 0.25");
$node->safe_psql(
	'postgres', q{
CREATE TABLE events (at timestamptz);
CREATE FUNCTION work() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM count(*) FROM generate_series(1, 1000); RETURN OLD; END $$;
CREATE TRIGGER work BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION work();
INSERT INTO events SELECT '2000-01-01' FROM generate_series(1, 30000);
});

# They end with this process.
my $test = $$;
my @busy;
foreach (1 .. 2 * `getconf _NPROCESSORS_ONLN`)
{
	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		1 while getppid == $test;
		POSIX::_exit(0);
	}
	push @busy, $pid;
}
$node->safe_psql('postgres', 'CREATE INDEX ON events (at) WHERE ttl_index.expire_after_seconds(3600)');
$node->becomes('postgres',
	q{SELECT count(*) = 1 FROM ttl_index.current_op WHERE operation = 'wait for processor'},
	'a worker rests while others wait for a processor');
kill 'KILL', @busy;
waitpid $_, 0 foreach @busy;
$node->empties('postgres', 'events', 'and deletes all rows');

$node->stop;
done_testing();
