# Copyright (c) 2026, ttl_index contributors

# Commands that want a database for themselves get it while a backlog drains there, also
# where a trigger sleeps in each batch, and would for an hour: PostgreSQL waits 5 s for others
# to leave the database before it gives up.  How long each command took is a note, as
# that tells more of what else the machine does: 0.2 to 0.5 s where it does nothing else,
# and most of it to copy files.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Fcntl;
use POSIX qw(mkfifo);
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;
use Time::HiRes qw(time);

# Tiny batches: a backlog of these rows takes longer than all the commands.
my $node = TtlNode->configured(
	q{
ttl_index.batch_target_docs = 1
ttl_index.batch_timeout = 0
max_prepared_transactions = 1
});
$node->start;

my $tablespace = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$tablespace'");

$node->safe_psql('postgres', 'CREATE DATABASE neighbour');
$node->safe_psql(
	'neighbour', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
});

# A transaction that has dropped the extension somewhere, and stays open.
$node->safe_psql('postgres', 'CREATE DATABASE dropping');
$node->safe_psql(
	'dropping', q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0);
BEGIN;
DROP EXTENSION ttl_index CASCADE;
PREPARE TRANSACTION 'dropping';
});
foreach my $row (1, 2)
{
	$node->safe_psql('neighbour', "INSERT INTO events VALUES ('2000-01-01')");
	ok( $node->poll_query_until('neighbour', 'SELECT count(*) = 0 FROM events'),
		"no worker waits for a transaction that drops the extension, row $row goes");
}
ok( $node->wait_for_log(
		qr/WARNING: .*could not make a TTL pass over database "dropping": table "ttl_index\.counters" is locked\b.*\n.*HINT:  .*pg_locks/
	),
	'and the log says why nothing goes in its own database');
$node->safe_psql('dropping', "ROLLBACK PREPARED 'dropping'");
$node->safe_psql('dropping', "INSERT INTO events VALUES ('2000-01-01')");
ok( $node->poll_query_until('dropping', 'SELECT count(*) = 0 FROM events'),
	'and those of its own database go when it is rolled back');
$node->safe_psql('postgres', 'DROP DATABASE dropping');

# A command that rewrites a system catalog, and waits for a transaction that has read it.
$node->safe_psql('postgres', 'CREATE DATABASE rewritten');
my $reader = $node->background_psql('rewritten');
$reader->query_safe('BEGIN; SELECT FROM pg_class LIMIT 1');
my $writer = $node->background_psql('rewritten');
$writer->query_until(qr/begins/, "\\echo begins\nVACUUM FULL pg_class;\n");
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'pg_class'::regclass AND NOT granted AND mode = 'AccessExclusiveLock'}
) or die 'nothing waits for the catalog';
my $log = -s $node->logfile;
$node->wait_for_log(qr/could not make a TTL pass over database "rewritten"/, $log);
$node->safe_psql('neighbour', "INSERT INTO events VALUES ('2000-01-01')");
$node->empties('neighbour', 'events',
	'a database to which no worker can connect keeps no other one waiting');
$reader->quit;
$writer->quit;
$node->safe_psql('postgres', 'DROP DATABASE rewritten');

# One that a worker needs first when it has connected, to look at the extension's tables.
$node->safe_psql('postgres', 'CREATE DATABASE triggers');
$node->safe_psql('triggers', 'CREATE EXTENSION ttl_index');
my $holder = $node->background_psql('triggers');
$holder->query_safe('BEGIN; LOCK TABLE pg_trigger IN ACCESS EXCLUSIVE MODE');
ok( $node->wait_for_log(
		qr/could not make a TTL pass over database "triggers"\n/),
	'nor does one in which it can do nothing but that');
$holder->quit;
$node->safe_psql('postgres', 'DROP DATABASE triggers');

sub make_backlog
{
	my ($db, $slow) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql(
		$db, q{
CREATE EXTENSION ttl_index;
CREATE TABLE events (at timestamptz);
INSERT INTO events SELECT timestamptz '2000-01-01' + i * interval '1 s' FROM generate_series(1, 100000) i;
});
	$node->safe_psql($db, 'CREATE TABLE nap (seconds float); INSERT INTO nap VALUES (3600)');
	$node->add_trigger($db, 'events', 'slow',
		'PERFORM pg_sleep(seconds) FROM public.nap;')
	  if $slow;
	$node->safe_psql($db,
		'CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0)'
	);
	return;
}

sub wait_for_worker
{
	my ($db, $slow) = @_;

	return $node->pid_of('worker',
		"datname = '$db'" . ($slow ? " AND wait_event = 'PgSleep'" : ''));
}

# Where CREATE DATABASE takes as long as the monitor sleeps, a pass may have begun before the
# copy was to be seen, and the next worker sleeps for an hour in the database itself.
sub leave
{
	my ($db) = @_;

	$node->poll_query_until(
		'postgres', qq{
SELECT coalesce(bool_or(CASE datname WHEN '$db' THEN NOT pg_terminate_backend(pid) ELSE true END), false)
FROM pg_stat_activity WHERE backend_type = 'ttl_index worker' AND wait_event = 'PgSleep'})
	  or die "no worker leaves $db";
	return;
}

sub count_errors
{
	my ($db) = @_;

	return $node->safe_psql($db, 'SELECT sum(errors) FROM ttl_index.index_stats');
}

sub check_command
{
	my ($db, $slow, $command) = @_;
	my $how = $slow ? 'with a trigger that sleeps' : 'row by row';
	my ($begun, $status, $stderr);

	wait_for_worker($db, $slow);
	$begun = time;
	$status = $node->psql('postgres', $command, stderr => \$stderr);
	note(sprintf('%.1f s', time - $begun));
	is($status, 0, "$command while a backlog drains $how") or diag $stderr;
	return;
}

foreach my $slow (0, 1)
{
	my $db = $slow ? 'slow' : 'quick';

	make_backlog($db, $slow);
	check_command($db, $slow, "CREATE DATABASE ${db}_copy TEMPLATE $db");

	# The copy has a backlog as well, and another worker would come there.
	leave($db) if $slow;
	check_command("${db}_copy", $slow, "DROP DATABASE ${db}_copy");
	wait_for_worker($db, $slow);
	my $errors = count_errors($db);
	check_command($db, $slow, "ALTER DATABASE $db RENAME TO ${db}_renamed");

	# The worker that is there sleeps for an hour, and those that follow it do not.
	wait_for_worker("${db}_renamed", $slow);
	is(count_errors("${db}_renamed"),
		$errors, 'no error is counted of an index whose worker makes room');
	$node->safe_psql("${db}_renamed", 'UPDATE nap SET seconds = 3');
	check_command("${db}_renamed", $slow,
		"ALTER DATABASE ${db}_renamed SET TABLESPACE elsewhere");

	# The worker comes back; for how far it has come see the counters.
	$node->pid_of('worker', "datname = '${db}_renamed'");
	is( $node->safe_psql(
			"${db}_renamed", q{
SELECT (SELECT count(*) FROM events) + deleted_documents,
	(SELECT count(*) FROM events) > 0
FROM ttl_index.stats}),
		'100000|t',
		'rule 27: exactly the rows that are gone are counted, and there is a backlog still'
	);

	# It does not end within this test where the trigger sleeps: a round of
	# visits must be enough for the others.
	if ($slow)
	{
		$node->safe_psql('neighbour',
			"INSERT INTO events VALUES ('2000-01-01')");
		$node->empties('neighbour', 'events',
			'rule 26: a row that falls due in another database in the middle of a long pass need not wait for its end'
		);
		make_backlog('newcomer', 0);
		ok( $node->poll_query_until(
				'newcomer',
				'SELECT deleted_documents > 0 FROM ttl_index.stats'),
			'rule 16: a database that is created in the middle of a long pass need not wait for its end'
		);
	}
	check_command("${db}_renamed", $slow, "DROP DATABASE ${db}_renamed");
}

# Core asks for no cancellation while it opens a FIFO that nobody writes to.  So nothing ends
# the worker but a writer, or a signal that ends the server.  That costs its owner, and nobody else.
$node->safe_psql('postgres', 'CREATE DATABASE hangs; CREATE ROLE bob; GRANT pg_read_server_files TO bob');
$node->safe_psql('hangs', 'CREATE EXTENSION ttl_index; GRANT EXECUTE ON FUNCTION pg_read_file(text) TO bob');
$node->safe_psql('postgres', 'ALTER DATABASE hangs SET ttl_index.batch_timeout = 100');

my $fifo = PostgreSQL::Test::Utils::tempdir . '/fifo';

mkfifo($fifo, 0600) or die "could not make a FIFO: $!";
my $position = -s $node->logfile;
$node->safe_psql('hangs', qq{
CREATE TABLE others (at timestamptz);
CREATE INDEX others_ttl ON others (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE of_bob (LIKE others INCLUDING INDEXES);
ALTER TABLE of_bob OWNER TO bob;
CREATE TABLE events (at timestamptz);
INSERT INTO events VALUES ('2000-01-01'), ('2001-01-01')});
$node->add_trigger('hangs', 'events', 'wait_for_writer',
	"IF OLD.at = '2000-01-01' THEN PERFORM pg_read_file('$fifo'); END IF;");
$node->safe_psql('hangs',
	'ALTER TABLE events OWNER TO bob; CREATE INDEX events_ttl ON events (at) WHERE ttl_index.expire_after_seconds(0)');
my $is_at_events = "SELECT count(*) = 1 FROM ttl_index.current_op WHERE indexrelid = 'events_ttl'::regclass";
$node->becomes('hangs', $is_at_events, 'a worker is at a row for which it waits without an end');
ok( $node->wait_for_log(
		qr/WARNING: .*could not end the ttl_index worker with PID \d+ in database "hangs"\n.*DETAIL:  .*no rows of its owner/,
		$position),
	'the log says so when it cannot be ended');
$node->safe_psql('hangs', "INSERT INTO of_bob VALUES ('2000-01-01'); INSERT INTO others VALUES ('2000-01-01')");
$node->safe_psql('neighbour', "INSERT INTO events VALUES ('2000-01-01')");
$node->empties('hangs', 'others', 'rows of another owner in the database are deleted');
$node->empties('neighbour', 'events', 'so are those in other databases');
$node->wait_for_passes(2);
is($node->safe_psql('hangs', 'SELECT count(*) FROM of_bob'), 1, 'other rows of its owner wait');
is( $node->safe_psql(
		'hangs',
		'SELECT status, relid, state FROM ttl_index.monitor_status(), ttl_index.indexes ORDER BY relid::text'
	),
	"monitor|events|failing\nmonitor|of_bob|active\nmonitor|others|active",
	'and its index has a state');

# When it ends, what it has learned is not lost.
sysopen(my $pipe, $fifo, O_WRONLY | O_NONBLOCK) or die "nobody reads the FIFO: $!";
close($pipe);
$node->empties('hangs', 'of_bob', 'when it has ended, the rows of its owner are deleted');
$node->becomes('hangs', "SELECT min(at) = '2000-01-01' AND count(*) = 1 FROM events",
	'also those after the row that took so long');

# Another launcher tries that row again, and one more does not wait for the worker of that one.
sub end_launcher
{
	my $offset = -s $node->logfile;

	$node->safe_psql('postgres',
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'ttl_index launcher'"
	);
	$node->wait_for_log(qr/ttl_index launcher started/, $offset);
	return;
}

end_launcher();
$node->becomes('hangs', $is_at_events, 'a worker of the next launcher waits at that row');
end_launcher();
$node->safe_psql('hangs', "INSERT INTO of_bob VALUES ('2000-01-01')");
$node->empties('hangs', 'of_bob', 'beside it a worker of another launcher deletes rows of its owner');

# a writer ends the wait, and there is a file for those who come later
sysopen($pipe, $fifo, O_RDWR) or die "no FIFO: $!";
append_to_file("$fifo.file", 'go on');
rename("$fifo.file", $fifo) or die "no file: $!";
close($pipe);
$node->empties('hangs', 'events', 'the row is deleted when its trigger ends');
unlike(slurp_file($node->logfile),
	qr/the server crashed during a visit/, 'no worker is taken for one that has crashed the server');

# The monitor is none the worse for it.
unlike(slurp_file($node->logfile),
	qr/PANIC|TRAP|could not expire rows by TTL index "(?!events_ttl" of table "hangs)/,
	'nothing else has failed');

$node->stop('immediate');
done_testing();
