# Copyright (c) 2026, ttl_index contributors

# Code of users that raises errors, sleeps or never ends costs its own index the
# pass, and nobody else.  When it is tried again is in 004_canceled_batches.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
ttl_index.monitor_enabled = off
ttl_index.batch_timeout = '300ms'
});

# The indexes are visited in the order in which they are made: there is a good
# one before and a good one behind those with hostile code.
my $table = q{
CREATE TABLE %1$s (at timestamptz, note text);
INSERT INTO %1$s VALUES ('2000-01-01'), ('2000-01-02'), ('2100-01-01');
CREATE INDEX %1$s_ttl ON %1$s (%2$s) WHERE ttl_index.expire_after_seconds(3600);
};

sub make_table
{
	my ($db, $name, $key) = @_;

	$node->safe_psql($db, sprintf($table, $name, $key || 'at'));
	return;
}

sub make_trigger
{
	my ($db, $name, $body) = @_;

	$node->safe_psql(
		$db, qq{
CREATE FUNCTION trigger_of_$name() RETURNS trigger LANGUAGE plpgsql AS
	\$\$ BEGIN $body RETURN OLD; END \$\$;
CREATE TRIGGER hostile BEFORE DELETE ON $name FOR EACH ROW EXECUTE FUNCTION trigger_of_$name();
});
	return;
}

sub left_in
{
	my ($db, $name) = @_;

	return $node->safe_psql($db, "SELECT count(*) FROM $name");
}

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('postgres', 'CREATE DATABASE stubborn');
$node->safe_psql($_, 'CREATE EXTENSION ttl_index')
  foreach 'other', 'stubborn';

make_table('postgres', 'before');
make_table('postgres', 'loops');
make_trigger('postgres', 'loops', 'LOOP NULL; END LOOP;');
make_table('postgres', 'sleeps');
make_trigger('postgres', 'sleeps', 'PERFORM pg_sleep(3600);');
make_table('postgres', 'raises');
make_trigger('postgres', 'raises', q{RAISE 'not %', OLD.at USING ERRCODE = 'TT123';});

# A key that takes for ever, once a row is in the table of switches.
$node->safe_psql(
	'postgres', q{
CREATE TABLE switches (name text);
CREATE FUNCTION slow_key(at timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM public.switches) LOOP NULL; END LOOP;
	RETURN at;
END $$;
});
make_table('postgres', 'expression', 'slow_key(at)');
$node->safe_psql('postgres', "INSERT INTO switches VALUES ('on')");
make_table('postgres', 'behind');
make_table('other', 'elsewhere');

# Where each error ends a session, it does not end the worker.
make_table('other', 'one_raises');
make_trigger('other', 'one_raises',
	q{IF OLD.at < '2000-01-02' THEN RAISE 'not %', OLD.at; END IF;});
$node->safe_psql('other', 'ALTER DATABASE other SET exit_on_error = on');

# An index in error has been visited and its rows are still there.
sub is_in_error
{
	my ($name, $sqlstate, $message) = @_;

	$node->poll_query_until('postgres',
		"SELECT errors >= 1 FROM ttl_index.index_stats WHERE relname = '$name'")
	  or fail("rule 23: an error of table $name is counted");
	is( $node->safe_psql(
			'postgres', qq{
SELECT last_error_sqlstate, last_error LIKE '$message', last_error_time <= now(),
	deleted_documents, (SELECT count(*) FROM $name)
FROM ttl_index.index_stats WHERE relname = '$name'}),
		"$sqlstate|t|t|0|3",
		"rule 23: the error of table $name is shown and no row is gone");
	return;
}

my $offset = -s $node->logfile;
$node->safe_psql('postgres',
	'ALTER SYSTEM SET ttl_index.monitor_enabled = on');
$node->reload;
$node->drains('postgres', 'behind',
	'rule 23: an index behind those with hostile code drains');
$node->drains('postgres', 'before', 'rule 23: so does one before them');
$node->drains('other', 'elsewhere', 'rule 23: and one in another database');
$node->becomes('other', q{
SELECT array_agg(at ORDER BY at) = '{2000-01-01, 2100-01-01}' FROM one_raises},
	'rule 23: so does what is in an index beside a row that raises an error');
is_in_error('loops', '57014', '%batch_timeout%');
is_in_error('sleeps', '57014', '%batch_timeout%');
is_in_error('expression', '57014', '%batch_timeout%');
is_in_error('raises', 'TT123', 'not 2000-01-0%');

# One error a visit, whatever was tried in it.
is( $node->safe_psql(
		'postgres', q{
SELECT bool_and(errors <= sub_passes), sum(errors) = (SELECT errors FROM ttl_index.stats),
	min(skipped_failed) FILTER (WHERE relname = 'raises') > 0, passes > 0
FROM ttl_index.index_stats, (SELECT sub_passes, passes FROM ttl_index.stats) s
GROUP BY sub_passes, passes}),
	't|t|t|t',
	'rule 24: passes with errors count, and at most one error for each visit');
foreach my $name ('loops', 'sleeps', 'expression', 'raises')
{
	$node->wait_for_log(qr/could not expire rows by TTL index "${name}_ttl"/,
		$offset);
}
pass('rule 23: the errors are logged');

# The worker survives all of this.
unlike(slurp_file($node->logfile, $offset),
	qr/FATAL|PANIC|TRAP/, 'no process ends by an error');

# As soon as the code behaves, the rows go.
$node->safe_psql(
	'postgres', q{
TRUNCATE switches;
DROP TRIGGER hostile ON loops;
DROP TRIGGER hostile ON sleeps;
DROP TRIGGER hostile ON raises;
});
$node->safe_psql('postgres', 'CALL ttl_index.run_pass()');
$node->drains('postgres', $_, "rule 23: table $_ need not wait for the monitor")
  foreach 'loops', 'sleeps', 'expression', 'raises';

# So they are counted once.
ok( $node->poll_query_until(
		'postgres', 'SELECT deleted_documents = 12 FROM ttl_index.stats'),
	'rule 27: exactly the rows that are gone are counted')
  or diag $node->safe_psql('postgres',
	'SELECT relname, deleted_documents FROM ttl_index.index_stats');

#
# Code that catches the cancellation and goes on costs the worker its life.
#

my $launcher = $node->pid_of('launcher');
$node->safe_psql(
	'stubborn', q{
CREATE FUNCTION trigger_of_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		BEGIN
			PERFORM pg_sleep(3600);
		EXCEPTION WHEN query_canceled THEN
			NULL;
		END;
	END LOOP;
END $$});

# in one transaction, as the monitor is at work
sub make_refusing_table
{
	my ($name) = @_;

	$node->safe_psql('stubborn',
		"BEGIN;\n"
		  . sprintf($table, $name, 'at')
		  . "CREATE TRIGGER hostile BEFORE DELETE ON $name FOR EACH ROW EXECUTE FUNCTION trigger_of_refuses();\nCOMMIT;"
	);
	return;
}
make_refusing_table('refuses');
make_table('stubborn', 'behind');
$node->safe_psql('other', "INSERT INTO elsewhere VALUES ('2000-01-01')");
$node->drains('stubborn', 'behind',
	'rule 23: an index behind one that refuses to be canceled drains');
$node->drains('other', 'elsewhere', 'rule 23: another database goes on');
is(left_in('stubborn', 'refuses'), 3, 'rule 23: no row of its own is gone');
is($node->pid_of('launcher'), $launcher, 'the launcher goes on');
ok( $node->poll_query_until(
		'stubborn',
		"SELECT errors > 0 FROM ttl_index.index_stats WHERE relname = 'refuses'"),
	'rule 23: the error of an index that costs the worker its life is counted'
);

# A trigger that writes the rows again, due as they were: they go again and again, but
# each pass ends.
$node->safe_psql('postgres', 'CREATE DATABASE again');
$node->safe_psql(
	'again', q{
ALTER DATABASE again SET ttl_index.index_delete_target_docs = 10;
CREATE EXTENSION ttl_index;
CREATE TABLE again (at timestamptz);
INSERT INTO again SELECT '2000-01-01' FROM generate_series(1, 20);
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.again VALUES (OLD.at + interval '1 s'); RETURN NULL; END $$;
CREATE TRIGGER again AFTER DELETE ON again FOR EACH ROW EXECUTE FUNCTION again();
CREATE INDEX again_ttl ON again (at) WHERE ttl_index.expire_after_seconds(3600);
});
make_table('again', 'beside');
$node->drains('again', 'beside', 'a table beside a trigger that writes rows again drains');
ok( $node->poll_query_until('again', 'SELECT passes > 1 FROM ttl_index.stats'),
	'rule 26: passes end where a trigger writes the rows again');

# Advisory locks of the session, as many as the lock table has room for, do not stay after an error.
$node->safe_psql('postgres', 'CREATE DATABASE locks');
$node->safe_psql(
	'locks', 'CREATE EXTENSION ttl_index; BEGIN;' . sprintf($table, 'locking', 'at') . q{
CREATE FUNCTION trigger_of_locking() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN FOR i IN 1 .. 30000 LOOP PERFORM pg_advisory_lock(i); END LOOP; RETURN OLD; END';
CREATE TRIGGER t BEFORE DELETE ON locking FOR EACH ROW EXECUTE FUNCTION trigger_of_locking();
} . sprintf($table, 'behind', 'at') . 'COMMIT');
$node->drains('locks', 'behind', 'rows behind code that takes advisory locks go');
# a session can also fail for lack of locks while that code has them
$node->becomes('locks',
	"SELECT errors > 0 AND (SELECT count(*) = 3 FROM locking) FROM ttl_index.index_stats WHERE relname = 'locking'",
	'the rows of that code stay');

# Text of an error that has no encoding can be read by a client that has one.
$node->safe_psql('postgres', "CREATE DATABASE odd ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
$node->safe_psql(
	'odd', q{
CREATE EXTENSION ttl_index;
CREATE TABLE odd (at timestamptz);
CREATE FUNCTION raise_odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE E'\xe9\xff odd'; END $$;
CREATE TRIGGER t BEFORE DELETE ON odd FOR EACH ROW EXECUTE FUNCTION raise_odd();
CREATE INDEX odd_ttl ON odd (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO odd VALUES ('2001-01-01');
});
{
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	$node->becomes('odd', "SELECT last_error = '?? odd' FROM ttl_index.index_stats", 'an error without an encoding is shown');
}
$node->safe_psql('postgres', 'DROP DATABASE odd');

# A commit that fails, or never ends, as where the code has changed something on a server of its
# own by a foreign table, costs its own index the pass: behind a batch, a partition that is
# made, and what is read to prepare an index.  So does code that does not let
# the process end, as an END block of PL/Perl.
my $library = TtlNode::rights_library();

SKIP:
{
	skip 'make test/perl/rights.so was not run', 12 unless $library;
	$node->safe_psql('postgres', 'CREATE DATABASE commits');
	$node->safe_psql(
		'commits', qq{
CREATE EXTENSION ttl_index;
CREATE FUNCTION fail_commit(hangs bool) RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION hang_at_exit() RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION fails() RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN IF current_setting(''application_name'') = ''ttl_index'' THEN PERFORM public.fail_commit(false); END IF; RETURN true; END';
CREATE FUNCTION hangs() RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN IF current_setting(''application_name'') = ''ttl_index'' THEN PERFORM public.fail_commit(true); END IF; RETURN true; END';
BEGIN;
} . sprintf($table, 'before', 'at') . q{
DO $do$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY '{fails, hangs}'::text[]
	LOOP
		EXECUTE format('CREATE TABLE rows_%1$s (at timestamptz);
CREATE FUNCTION trigger_of_rows_%1$s() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN PERFORM public.%1$s(); RETURN OLD; END'';
CREATE TRIGGER t BEFORE DELETE ON rows_%1$s FOR EACH ROW EXECUTE FUNCTION trigger_of_rows_%1$s();
CREATE INDEX rows_%1$s_ttl ON rows_%1$s (at) WHERE ttl_index.expire_after_seconds(3600);
INSERT INTO rows_%1$s VALUES (''2000-01-01''), (''2100-01-01'');
CREATE TABLE pair_%1$s (at timestamptz, doc jsonb);
INSERT INTO pair_%1$s VALUES (''2000-01-01'', ''{}''), (''2100-01-01'', ''{}'');
SELECT ttl_index.create_index(''pair_%1$s'', ''at'', 3600, ''%1$s()'', document_ttl_field => ''doc.ttl'');
CREATE TABLE series_%1$s (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE series_%1$s_others PARTITION OF series_%1$s (CHECK (%1$s() OR id < 0)) DEFAULT;
CREATE INDEX series_%1$s_ttl ON series_%1$s (at) WHERE ttl_index.expire_after_seconds(864000)
	AND ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(864000);', name);
	END LOOP;
END $do$;
} . sprintf($table, 'behind', 'at') . 'COMMIT');
	my $from = -s $node->logfile;
	$node->safe_psql('commits', 'ALTER DATABASE commits SET ttl_index.monitor_enabled = on');
	$node->drains('commits', $_, "$_ those whose commits fail or hang, rows go") foreach 'before', 'behind';
	foreach my $kind ('rows', 'pair', 'series')
	{
		foreach (
			[ 'fails', 'the commit fails' ],
			[ 'hangs', 'canceled after ttl_index.batch_timeout' ])
		{
			my ($how, $error) = @$_;

			$node->becomes(
				'commits', qq{
SELECT count(*) > 0 FROM ttl_index.index_stats WHERE relname = '${kind}_$how' AND last_error = '$error'},
				"the error of a commit that $how is shown ($kind)");
		}
	}
	unlike(slurp_file($node->logfile, $from), qr/exited with exit code|FATAL|TRAP/, 'no worker ends by that');

	# by a session, too
	$node->safe_psql('commits', 'ALTER DATABASE commits SET ttl_index.monitor_enabled = off');
	is( $node->safe_psql(
			'commits', q{
INSERT INTO behind VALUES ('2000-01-01');
SET application_name = ttl_index;
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT count(*) FROM behind}),
		'1', 'a session gets past them as well');
	$node->safe_psql('commits', 'ALTER DATABASE commits SET ttl_index.monitor_enabled = on');

	$node->safe_psql(
		'commits', q{
CREATE TABLE staying (at timestamptz);
INSERT INTO staying VALUES ('2000-01-01'), ('2100-01-01');
CREATE FUNCTION trigger_of_staying() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.hang_at_exit(); RETURN OLD; END';
CREATE TRIGGER t BEFORE DELETE ON staying FOR EACH ROW EXECUTE FUNCTION trigger_of_staying();
CREATE INDEX staying_ttl ON staying (at) WHERE ttl_index.expire_after_seconds(3600);
});
	$node->drains('commits', 'staying', 'rows of a trigger that does not let the process end go');
	$node->safe_psql('commits', q{INSERT INTO behind VALUES ('2000-01-01')});
	$node->drains('commits', 'behind', 'so do those of others in the next pass');
}

# The server can be stopped all the same: another one, which is not waiting yet.
make_refusing_table('refuses_too');
$node->pid_of('worker', "wait_event = 'PgSleep'");
$node->stops_fast('fast shutdown while a trigger refuses to be canceled');

done_testing();
