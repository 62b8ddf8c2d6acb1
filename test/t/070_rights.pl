# Copyright (c) 2026, ttl_index contributors

# Whose functions run with whose rights: a table that carries a function of another
# role in every place where a definition can hold one, partitions of somebody else,
# and a superuser, or the monitor, who does everything that the extension can do.
# Each function is named after the role that it has to run as.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $library = TtlNode::rights_library();
plan skip_all => 'make test/perl/rights.so was not run' unless $library;

my $node = TtlNode->running(
	qq{
shared_preload_libraries = 'ttl_index,$library'
rights.log_all = on
ttl_index.monitor_enabled = off
ttl_index.count_dropped_documents = on
});

# The functions belong to the author, who owns nothing else.  make(name, arguments,
# result, body) makes one that is declared immutable, whatever it is.
$node->safe_psql(
	'postgres', q{
CREATE ROLE author;
CREATE ROLE alice;
CREATE ROLE bob;
CREATE ROLE carol;
CREATE ROLE watcher IN ROLE pg_monitor;
CREATE SCHEMA m;
GRANT ALL ON SCHEMA m TO PUBLIC;
CREATE FUNCTION make(name text, arguments text, result text, body text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FUNCTION m.%s(%s) RETURNS %s IMMUTABLE LANGUAGE plpgsql AS %L',
		name, arguments, result, 'BEGIN ' || body || ' END');
	EXECUTE format('ALTER FUNCTION m.%s OWNER TO author', name);
END $$;

-- a type with all that a type can have; only a superuser can make one
CREATE TYPE m.kind;
CREATE FUNCTION m.alice_kind_in(cstring) RETURNS m.kind LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION m.alice_kind_out(m.kind) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
ALTER FUNCTION m.alice_kind_in OWNER TO author;
ALTER FUNCTION m.alice_kind_out OWNER TO author;
CREATE TYPE m.kind (INPUT = m.alice_kind_in, OUTPUT = m.alice_kind_out, LIKE = int4);
CREATE CAST (m.kind AS int4) WITHOUT FUNCTION;
SELECT make('alice_kind_compare', 'm.kind, m.kind', 'int', 'RETURN $1::int - $2::int;');
DO $$
DECLARE
	op text;
BEGIN
	FOREACH op IN ARRAY ARRAY['<', '<=', '=', '>=', '>'] LOOP
		PERFORM make('alice_kind_' || encode(op::bytea, 'hex'), 'm.kind, m.kind', 'bool', 'RETURN $1::int ' || op || ' $2::int;');
		EXECUTE format('CREATE OPERATOR m.%s (LEFTARG = m.kind, RIGHTARG = m.kind, FUNCTION = m.%I)', op,
			'alice_kind_' || encode(op::bytea, 'hex'));
	END LOOP;
END $$;
CREATE OPERATOR CLASS m.kind_ops DEFAULT FOR TYPE m.kind USING btree AS
	OPERATOR 1 m.<, OPERATOR 2 m.<=, OPERATOR 3 m.=, OPERATOR 4 m.>=, OPERATOR 5 m.>,
	FUNCTION 1 m.alice_kind_compare(m.kind, m.kind);
SELECT make('alice_domain', 'timestamptz', 'bool', 'RETURN true;');
CREATE DOMAIN m.moment AS timestamptz CHECK (m.alice_domain(VALUE));

SELECT make('alice_word', 'text', 'bool', 'RETURN true;');
CREATE DOMAIN m.word AS text CHECK (m.alice_word(VALUE));

-- xxx_fold(1) is computed when the expression is folded, xxx(column) for a row
SELECT make('alice_' || place || suffix, 'int', 'bool', 'RETURN true;')
FROM unnest(ARRAY['filter', 'check', 'constraint', 'policy', 'trigger_when', 'rule_when', 'statistics']) AS place,
	unnest(ARRAY['', '_fold']) AS suffix;
SELECT make('alice_' || place, 'int', 'int', 'RETURN $1;')
FROM unnest(ARRAY['generated', 'default', 'partition_key', 'partition_key_fold', 'bound', 'rule', 'exclude',
	'exclude_fold', 'key_fold', 'statistics_value']) AS place;
SELECT make('alice_key', 'timestamptz, int', 'timestamptz', 'RETURN $1;'),
	make('bob_filter_fold', 'int', 'bool', 'RETURN true;'),
	make('bob_check_fold', 'int', 'bool', 'RETURN true;'),
	make('bob_partition_key', 'int', 'int', 'RETURN $1;'),
	make('bob_partition_key_fold', 'int', 'int', 'RETURN 0;'),
	make('carol_trigger', '', 'trigger', 'RETURN OLD;'),
	make('alice_trigger', '', 'trigger', 'RETURN OLD;');

SET SESSION AUTHORIZATION alice;
SET search_path = m;
CREATE TABLE whole (
	id int UNIQUE DEFAULT alice_default(1),
	kind m.kind DEFAULT '1',
	at moment,
	gen int GENERATED ALWAYS AS (alice_generated(id)) STORED,
	doc jsonb,
	words word[],
	CHECK (alice_check(id) AND alice_check_fold(1) OR id < 0),
	EXCLUDE USING btree ((alice_exclude(id) + alice_exclude_fold(0)) WITH =));
CREATE INDEX ON whole (kind kind_ops);
CREATE INDEX ON whole ((kind = '1'));
CREATE STATISTICS whole_statistics ON (alice_statistics_value(id)), (alice_statistics_fold(1)), id FROM whole;
CREATE POLICY p ON whole USING (alice_policy(id) AND alice_policy_fold(1));
ALTER TABLE whole ENABLE ROW LEVEL SECURITY;
CREATE TRIGGER t BEFORE DELETE ON whole FOR EACH ROW WHEN (alice_trigger_when(OLD.id) AND alice_trigger_when_fold(1))
	EXECUTE FUNCTION alice_trigger();
CREATE TABLE echo (id int);
CREATE RULE r AS ON DELETE TO whole WHERE alice_rule_when(OLD.id) AND alice_rule_when_fold(1)
	DO ALSO INSERT INTO m.echo VALUES (alice_rule(OLD.id));
GRANT REFERENCES ON whole TO carol;
INSERT INTO whole (id, at, doc) SELECT g, '2001-01-01', '{"at": "2001-01-01T00:00:00Z"}' FROM generate_series(1, 5) AS g;
ANALYZE whole;
CREATE INDEX whole_ttl ON whole (alice_key(at, alice_key_fold(1)))
	WHERE alice_filter(id) AND alice_filter_fold(1) AND kind = '1' AND ttl_index.expire_after_seconds(2000000000);

-- a partitioned table by an expression, with partitions of bob that are, too
CREATE TABLE parent (id int, kind m.kind, at timestamptz, CHECK (alice_constraint(id) AND alice_constraint_fold(1) OR id < 0))
	PARTITION BY RANGE ((id + alice_partition_key(0) + alice_partition_key_fold(0)), kind);
CREATE TABLE parent_low PARTITION OF parent FOR VALUES FROM (alice_bound(0), '0') TO (10, '0');
CREATE TABLE parent_high PARTITION OF parent FOR VALUES FROM (10, '0') TO (20, '0')
	PARTITION BY LIST ((id + bob_partition_key(0) + bob_partition_key_fold(0)));
CREATE TABLE parent_high_leaf PARTITION OF parent_high FOR VALUES IN (11, 12, 13);
CREATE TABLE parent_rest PARTITION OF parent DEFAULT;
INSERT INTO parent SELECT g, '1', '2001-01-01' FROM unnest('{1,2,11,12,21,22}'::int[]) AS g;

CREATE TABLE tracked (id int, at timestamptz) PARTITION BY RANGE ((id + alice_partition_key(0) + alice_partition_key_fold(0)));
CREATE TABLE tracked_low PARTITION OF tracked FOR VALUES FROM (alice_bound(0)) TO (10);

-- a series: its partitions are made and dropped
CREATE TABLE series (id int DEFAULT alice_default(1), at timestamptz,
	gen int GENERATED ALWAYS AS (alice_generated(id)) STORED,
	CHECK (alice_check(id) AND alice_check_fold(1) OR id < 0)) PARTITION BY RANGE (at);
CREATE STATISTICS series_statistics ON (alice_statistics_fold(1)), id FROM series;

-- one whose partitions are bob's, and partitioned: the monitor cannot make others
CREATE TABLE spread (id int, at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE spread_rest PARTITION OF spread DEFAULT
	PARTITION BY LIST ((id + bob_partition_key(0) + bob_partition_key_fold(0)));
CREATE TABLE spread_rest_1 PARTITION OF spread_rest (CHECK (bob_check_fold(1) OR id < 0)) FOR VALUES IN (1);
CREATE TABLE spread_2001 PARTITION OF spread FOR VALUES FROM ('2001-01-01') TO ('2002-01-01')
	PARTITION BY LIST ((id + bob_partition_key(0) + bob_partition_key_fold(0)));
CREATE TABLE spread_2001_1 PARTITION OF spread_2001 (CHECK (bob_check_fold(1) OR id < 0)) FOR VALUES IN (1);
INSERT INTO spread VALUES (1, '2001-06-01'), (1, '2101-06-01');
CREATE INDEX spread_ttl ON spread (at) WHERE ttl_index.expire_after_seconds(2000000000)
	AND ttl_index.drop_expired_partitions() AND ttl_index.bucket_max_span_seconds(864000);
RESET SESSION AUTHORIZATION;
DO $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['rest', 'rest_1', '2001', '2001_1'] LOOP
		EXECUTE format('ALTER TABLE m.spread_%s OWNER TO bob', name);
	END LOOP;
END $$;

ALTER TABLE m.parent_high OWNER TO bob;
ALTER TABLE m.parent_high_leaf OWNER TO bob;
SET SESSION AUTHORIZATION bob;
SET search_path = m;
-- these fit the plain index of the parent
CREATE INDEX ON ONLY parent_high (at) WHERE bob_filter_fold(1);
CREATE INDEX ON parent_high_leaf (at) WHERE bob_filter_fold(1);
ALTER INDEX parent_high_at_idx ATTACH PARTITION parent_high_leaf_at_idx;
RESET SESSION AUTHORIZATION;

CREATE PUBLICATION p FOR TABLE m.parent WHERE (id > 0) WITH (publish_via_partition_root = true, publish = 'insert');
-- else no cascade leads there
GRANT alice TO carol;
SET SESSION AUTHORIZATION carol;
CREATE TABLE m.child (id int REFERENCES m.whole (id) ON DELETE CASCADE);
CREATE TRIGGER t BEFORE DELETE ON m.child FOR EACH ROW EXECUTE FUNCTION m.carol_trigger();
INSERT INTO m.child VALUES (1), (2);
RESET SESSION AUTHORIZATION;
});

my %ran;

# What the log says since an offset: every function has run as the role it is named
# after.  Returns them.
sub check_rights
{
	my ($offset, $title) = @_;
	my @wrong;

	foreach my $line (split /\n/, slurp_file($node->logfile, $offset))
	{
		next
		  unless $line =~ /rights: function "((\w+?)_\w+)" of "(\w+)" runs as "(\w+)"/;
		$ran{$1} = 1;
		push @wrong, "$1 runs as $4" unless $4 eq $2;
	}
	is(join("\n", @wrong), '', $title);
	return;
}

# Each in a session of its own: nothing is folded yet there.  Also what others may do
# with tables that are not theirs.
sub superuser_runs
{
	my ($sql, $error) = @_;
	my $offset = -s $node->logfile;
	my ($status, $stdout, $stderr) =
	  $node->psql('postgres', "SET client_min_messages = error; $sql");

	$stderr =~ s/^psql:<stdin>:\d+: |\nLINE.*|\nCONTEXT.*|\nSQL.*//g;
	is($stderr, $error || '', $sql);
	check_rights($offset, "with the owner's rights: $sql");
	return;
}

superuser_runs($_)
  foreach (
	q{SELECT ttl_index.create_index('m.parent', 'at', 2000000000)},
	q{SELECT ttl_index.create_index_command('m.whole', 'doc.at', 5, 'm.alice_filter(id) AND m.alice_filter_fold(1)')},
	q{SELECT ttl_index.create_index('m.whole', 'doc.at', 2000000000, 'm.alice_filter(id) AND m.alice_filter_fold(1)')},
	q{SELECT ttl_index.create_index('m.whole', 'doc.at', 2000000000, 'm.alice_filter(id) AND m.alice_filter_fold(1)')},
	q{SELECT ttl_index.create_index('m.whole', 'at', 2000000000)},
	q{SET ROLE alice; SELECT ttl_index.create_index_command('m.whole', 'doc.spoken', 5, $$words = '{a}' AND '1'::m.kind IS NOT NULL$$)},
	q{SET ROLE alice; SELECT ttl_index.create_index('m.whole', 'doc.spoken', 2000000000, $$words <> '{a}'$$)},
	q{SET ROLE alice; SELECT ttl_index.create_time_series('m.series', 'at', 'id', 'hours', 2000000000)},
	q{SELECT ttl_index.due_count(indexrelid) FROM ttl_index.indexes},
	q{SELECT ttl_index.oldest_due(indexrelid) FROM ttl_index.indexes},
	q{SELECT ttl_index.preview(indexrelid), ttl_index.forecast(indexrelid) FROM ttl_index.indexes},
	q{SELECT ttl_index.lag(indexrelid), ttl_index.cutoff(indexrelid) FROM ttl_index.indexes},
	q{SELECT * FROM ttl_index.indexes},
	q{SELECT * FROM ttl_index.index_stats},
	q{SET ROLE carol; SELECT * FROM ttl_index.indexes},
	q{SET ROLE watcher; SELECT ttl_index.due_count(indexrelid), ttl_index.oldest_due(indexrelid), ttl_index.lag(indexrelid) FROM ttl_index.indexes},
	q{SET ROLE bob; CALL ttl_index.run_pass()},
	q{SELECT ttl_index.pause_index('m.whole_ttl'), ttl_index.unpause_index('m.whole_ttl')},
	q{SELECT ttl_index.coll_mod('m.parent', 'at', 1000000000)},
	q{SELECT ttl_index.coll_mod('m.whole', 'doc.at', 1000000000)},
	q{SELECT ttl_index.coll_mod_index('m.whole_ttl', 1000000000)},
	q{SELECT ttl_index.coll_mod('m.series', 'at', 1000000000)},
	q{SET ROLE alice; SELECT ttl_index.track_last_modified('m.tracked', 'changed')},
	q{SET ROLE alice; SELECT ttl_index.track_last_modified('m.tracked', 'at')},
	q{SELECT ttl_index.track_last_modified('m.whole', 'changed')},
	q{SELECT ttl_index.untrack_last_modified('m.tracked', 'changed')},
	q{SELECT ttl_index.untrack_last_modified('m.tracked', 'at')},
	q{REINDEX INDEX CONCURRENTLY m.whole_ttl},
	q{ALTER TABLE m.parent DETACH PARTITION m.parent_rest},
	q{ALTER TABLE m.parent ATTACH PARTITION m.parent_rest DEFAULT},
	q{SELECT ttl_index.remove_ttl('m.parent_at_ttl')},
	q{SELECT ttl_index.coll_mod('m.parent', 'at', 0)},
	q{SELECT ttl_index.remove_ttl('m.whole_at_ttl')});

# One pass deletes, one makes partitions, and one drops them.
sub arm
{
	$node->safe_psql(
		'postgres', q{
SET client_min_messages = error;
SELECT ttl_index.coll_mod_index(i, 0) FROM unnest(ARRAY['m.whole_ttl', 'm.series_at_ttl', 'm.spread_ttl']::regclass[]) AS i;
INSERT INTO m.parent SELECT g, '1', '2001-01-01' FROM unnest('{1,2,11,12,21,22}'::int[]) AS g;
SET ROLE alice;
ALTER TABLE m.whole DISABLE ROW LEVEL SECURITY;
INSERT INTO m.whole (id, at, doc) SELECT g, '2001-01-01', '{"at": "2001-01-01T00:00:00Z"}' FROM generate_series(1, 5) AS g ON CONFLICT DO NOTHING;
ALTER TABLE m.whole ENABLE ROW LEVEL SECURITY;
SET client_min_messages = error;
CREATE TABLE m.series_2001 PARTITION OF m.series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO m.series (at) VALUES ('2001-06-01');
DO $$ BEGIN
	EXECUTE (SELECT format('DROP TABLE %s', max(inhrelid::regclass::text)) FROM pg_inherits
		WHERE inhparent = 'm.series'::regclass AND inhrelid::regclass::text LIKE 'm.series_2___\_%');
END $$;
RESET ROLE;
INSERT INTO m.child VALUES (1), (2) ON CONFLICT DO NOTHING;
SELECT ttl_index.stats_reset();
});
	return;
}

my $left = q{SELECT (SELECT count(*) FROM m.whole), (SELECT count(*) FROM m.parent), to_regclass('m.series_2001') IS NULL,
	(SELECT count(*) FROM m.child), (SELECT string_agg(last_error, ', ') FROM ttl_index.index_stats),
	(SELECT string_agg(indexrelid || ' ' || state, ', ') FROM ttl_index.indexes WHERE state <> 'active'),
	to_regclass('m.spread_2001') IS NULL};
my $done =
  '0|0|t|0|table "spread_rest" does not belong to role "alice"|m.spread_ttl bucket_missing|t';
arm();
superuser_runs('CALL ttl_index.run_pass()');
is($node->safe_psql('postgres', $left),
	$done, 'everything that was due is gone');

arm();
my $offset = -s $node->logfile;
$node->set('monitor_enabled', 'on');
$node->poll_query_until('postgres', $left, $done)
  or fail('the monitor does the same');
$node->set('monitor_enabled', 'off');
check_rights($offset, "with the owner's rights: the monitor");

superuser_runs($_)
  foreach (
	q{SELECT ttl_index.drop_index('m.whole', 'doc.at')},
	q{SELECT ttl_index.remove_all_ttl()});

# An archive of somebody who has the rights of the rows' owner: its functions run as the
# latter, who writes there.  Whole partitions go to another one.
$node->safe_psql(
	'postgres', q{
SELECT make('alice_moved_trigger', '', 'trigger', 'RETURN NEW;');
SELECT make('alice_moved_' || place, 'int', 'int', 'RETURN $1;')
FROM unnest(ARRAY['default', 'default_fold', 'check', 'check_fold', 'generated', 'index', 'index_fold', 'key', 'key_fold']) AS place;
SELECT make('alice_stored_' || place, 'int', 'int', 'RETURN $1;')
FROM unnest(ARRAY['default', 'default_fold', 'check', 'check_fold', 'generated', 'index', 'index_fold', 'filter', 'filter_fold']) AS place;
SET SESSION AUTHORIZATION carol;
SET search_path = m;
CREATE TABLE gone (id int, at moment, kind m.kind,
	extra int DEFAULT alice_moved_default(1) + alice_moved_default_fold(1),
	gen int GENERATED ALWAYS AS (alice_moved_generated(id)) STORED,
	CHECK (alice_moved_check(id) > 0 AND alice_moved_check_fold(1) > 0))
	PARTITION BY RANGE ((id + alice_moved_key(0) + alice_moved_key_fold(0)));
CREATE TABLE gone_low PARTITION OF gone FOR VALUES FROM (0) TO (3);
CREATE TABLE gone_rest PARTITION OF gone DEFAULT;
CREATE INDEX ON gone ((alice_moved_index(id) + alice_moved_index_fold(1)));
CREATE TRIGGER t BEFORE INSERT ON gone FOR EACH ROW EXECUTE FUNCTION alice_moved_trigger();
-- rows go into one to which nothing is attached without a command
CREATE TABLE stored (id int, at moment, kind m.kind,
	extra int DEFAULT alice_stored_default(1) + alice_stored_default_fold(1),
	gen int GENERATED ALWAYS AS (alice_stored_generated(id)) STORED,
	CHECK (alice_stored_check(id) > 0 AND alice_stored_check_fold(1) > 0));
CREATE INDEX ON stored ((alice_stored_index(id) + alice_stored_index_fold(1)))
	WHERE alice_stored_filter(id) > 0 AND alice_stored_filter_fold(1) > 0;
GRANT INSERT, SELECT ON gone, stored TO alice;
SET SESSION AUTHORIZATION alice;
CREATE TABLE going (id int, at moment, kind m.kind);
INSERT INTO going SELECT g, '2001-01-01', '1' FROM generate_series(1, 5) AS g;
CREATE TABLE storing (LIKE going);
INSERT INTO storing TABLE going;
CREATE TABLE cold (id int DEFAULT alice_moved_default_fold(1), at timestamptz,
	CHECK (alice_moved_check(id) > 0 AND alice_moved_check_fold(1) > 0)) PARTITION BY RANGE (at);
CREATE TABLE cold_rest PARTITION OF cold DEFAULT;
CREATE INDEX ON cold (at) WHERE alice_filter(id) AND alice_filter_fold(1);
CREATE TABLE hot (LIKE cold INCLUDING ALL) PARTITION BY RANGE (at);
CREATE TABLE hot_2001 PARTITION OF hot FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO hot VALUES (1, '2001-06-01');
});
superuser_runs($_)
  foreach (
	q{SELECT ttl_index.create_index('m.going', 'at', 0, archive_to => 'm.gone')},
	q{SELECT ttl_index.create_index('m.storing', 'at', 0, archive_to => 'm.stored')},
	q{SELECT ttl_index.create_index('m.hot', 'at', 0, name => 'hot_ttl', drop_expired_partitions => true)},
	q{SELECT ttl_index.coll_mod_index('m.hot_ttl', 0, archive_to => 'm.cold')},
	q{SELECT ttl_index.due_count(indexrelid) FROM ttl_index.indexes},
	q{SELECT state, reason FROM ttl_index.indexes},
	q{CALL ttl_index.run_pass()});
is( $node->safe_psql(
		'postgres', q{
SELECT (SELECT count(*) FROM m.going), (SELECT count(*) FROM m.gone), (SELECT count(*) FROM m.storing),
	(SELECT count(*) FROM m.stored), (SELECT count(*) FROM m.hot),
	(SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = 'm.hot_2001'::regclass)}),
	'0|5|0|5|0|m.cold', 'rows and partitions are in the archives');

# A cursor that code of an owner leaves pinned, as spi_query() of PL/Perl does, is of nobody
# when that code is over: a COMMIT would read it to the end as the session's user.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.leave_cursor(text, failed bool DEFAULT false) RETURNS void LANGUAGE C STRICT AS '$library', 'leave_cursor';
SELECT make('alice_left', 'int', 'int', 'RETURN \$1;');
SELECT make('alice_leaves', 'int', 'bool', 'RETURN true;');
SELECT make('alice_leaving', '', 'trigger', 'PERFORM m.alice_leaves(1); RETURN OLD;');
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.leaving (id int, at timestamptz);
CREATE TRIGGER t BEFORE DELETE ON m.leaving FOR EACH ROW EXECUTE FUNCTION m.alice_leaving();
CREATE INDEX leaving_ttl ON m.leaving (at) WHERE m.alice_leaves(id) AND m.alice_leaves(1)
	AND ttl_index.expire_after_seconds(315360000);
INSERT INTO m.leaving VALUES (1, '2001-01-01'), (2, '2020-01-01');
RESET SESSION AUTHORIZATION;
CREATE OR REPLACE FUNCTION m.alice_leaves(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN PERFORM m.leave_cursor(''SELECT m.alice_left(g) FROM generate_series(1, 3) AS g''); RETURN true; END';
});
superuser_runs($_)
  foreach (
	q{DO $$ BEGIN PERFORM ttl_index.due_count('m.leaving_ttl'); COMMIT; END $$},
	q{DO $$ BEGIN PERFORM * FROM ttl_index.indexes; COMMIT; END $$},
	q{DO $$ BEGIN PERFORM ttl_index.preview('m.leaving_ttl'); COMMIT; END $$},
	q{CALL ttl_index.run_pass()});
# a query of the table would leave cursors as well
my $gone = q{SELECT deleted_documents FROM ttl_index.index_stats WHERE indexrelid = 'm.leaving_ttl'::regclass};
is($node->safe_psql('postgres', $gone),
	1, 'the row of a trigger that leaves a cursor goes');
superuser_runs(q{DO $$ BEGIN PERFORM ttl_index.coll_mod_index('m.leaving_ttl', 0); COMMIT; END $$});
$offset = -s $node->logfile;
$node->set('monitor_enabled', 'on');
$node->poll_query_until('postgres', $gone, 2)
  or fail('by the monitor as well');
$node->set('monitor_enabled', 'off');
check_rights($offset, "with the owner's rights: the monitor, behind a cursor that is left");

# Nor does it close that of a loop of its caller, which would go on with one that it opens in its place.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.close_cursor(text) RETURNS void LANGUAGE C AS '$library';
CREATE OR REPLACE FUNCTION m.alice_leaves(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'DECLARE
		name text;
	BEGIN
		FOR name IN SELECT c.name FROM pg_cursors AS c LOOP
			BEGIN
				PERFORM m.close_cursor(name);
				PERFORM m.leave_cursor(''SELECT -1 FROM generate_series(1, 100)'');
			EXCEPTION
				WHEN OTHERS THEN NULL;
			END;
		END LOOP;
		RETURN true;
	END';
});
foreach my $loop (
	[
		'a loop goes on with its own cursor',
		'SELECT * FROM generate_series(1, 100)',
		q{PERFORM ttl_index.preview('m.leaving_ttl')}
	],
	# what core keeps over a COMMIT of the loop is that which is pinned
	[
		'also where its query calls the extension',
		q{SELECT g FROM generate_series(1, 100) AS g
			WHERE (SELECT count(*) FROM ttl_index.preview('m.leaving_ttl') WHERE g > 0) >= 0},
		'COMMIT'
	])
{
	my ($name, $query, $command) = @$loop;
	is( $node->safe_psql(
			'postgres', qq{
CREATE TEMP TABLE seen (id int);
DO \$\$
DECLARE
	id int;
BEGIN
	FOR id IN $query LOOP
		INSERT INTO seen VALUES (id);
		$command;
	END LOOP;
END \$\$;
SELECT count(*), sum(id) FROM seen}),
		'100|5050',
		$name);
}

# Signals that code of an owner ignores, as PL/Perl lets it do, are not ignored behind it, also
# where that ends with an error: nothing would end the code of others, or the process.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.ignore_signals() RETURNS void LANGUAGE C AS '$library', 'ignore_signals';
CREATE FUNCTION m.ignores() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN PERFORM m.ignore_signals(); IF OLD.id = 2 THEN RAISE ''no''; END IF; RETURN OLD; END';
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.ignoring (id int, at timestamptz);
CREATE TRIGGER t BEFORE DELETE ON m.ignoring FOR EACH ROW EXECUTE FUNCTION m.ignores();
CREATE INDEX ignoring_ttl ON m.ignoring (at) WHERE ttl_index.expire_after_seconds(0);
});
foreach my $id (1, 2)
{
	my ($status, $stdout, $stderr) = $node->psql(
		'postgres', qq{
SET client_min_messages = error;
INSERT INTO m.ignoring VALUES ($id, '2001-01-01');
SELECT substring(pg_read_file('/proc/self/status') FROM 'SigIgn:.*SigCgt:\\s*\\w+') AS signals \\gset
CALL ttl_index.run_pass();
SELECT count(*), substring(pg_read_file('/proc/self/status') FROM 'SigIgn:.*SigCgt:\\s*\\w+') = :'signals' FROM m.ignoring;
SET statement_timeout = 100;
SELECT pg_sleep(20)});
	is( $stdout,
		($id - 1) . '|t',
		$id == 1 ? 'a row goes, and signals are as before' : 'a row stays, likewise');
	like(
		$stderr,
		qr/canceling statement due to statement timeout/,
		'the session obeys signals behind a trigger that ignores them');
}

# Nor do the locks of pages stay that an error leaves which is caught by return_next() of PL/Perl.
SKIP:
{
	skip '19 tells nobody what is locked', 1 if $node->pg_version->major >= 19;
	is( $node->safe_psql(
			'postgres', qq{
CREATE FUNCTION m.leave_lock() RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION m.is_unlocked() RETURNS bool LANGUAGE C AS '$library';
CREATE FUNCTION m.locks() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.leave_lock(); RETURN OLD; END';
CREATE TABLE m.locking (at timestamptz);
ALTER TABLE m.locking OWNER TO alice;
CREATE TRIGGER t BEFORE DELETE ON m.locking FOR EACH ROW EXECUTE FUNCTION m.locks();
CREATE INDEX locking_ttl ON m.locking (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO m.locking VALUES ('2001-01-01');
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT count(*), m.is_unlocked() FROM m.locking}),
		'0|t',
		'nothing is locked behind a trigger that leaves a lock');
}

# Nor does a type of pg_temp stay that was refused, where that error is caught in this way: behind
# what a superuser calls, and behind a CREATE INDEX of core.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.catches(text) RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION m.hides() RETURNS void LANGUAGE plpgsql AS
	'BEGIN
		PERFORM m.catches(''CREATE DOMAIN pg_temp.text AS pg_catalog.text'');
		BEGIN
			CREATE DOMAIN pg_temp.another AS int;
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END';
CREATE FUNCTION m.hides_in_key(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN IF current_setting(''application_name'') <> ''quiet'' THEN PERFORM m.hides(); END IF; RETURN \$1; END';
CREATE FUNCTION m.hides_in_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.hides(); RETURN OLD; END';
SET application_name = quiet;
CREATE TABLE m.hiding (id int, at timestamptz);
ALTER TABLE m.hiding OWNER TO alice;
CREATE TRIGGER t BEFORE DELETE ON m.hiding FOR EACH ROW EXECUTE FUNCTION m.hides_in_trigger();
INSERT INTO m.hiding VALUES (1, '2001-01-01');
CREATE INDEX hiding_ttl ON m.hiding (at) WHERE m.hides_in_key(id) > 0 AND ttl_index.expire_after_seconds(0);
});
foreach my $command (
	'CREATE INDEX hiding_id ON m.hiding (m.hides_in_key(id))',
	q{SELECT FROM ttl_index.preview('m.hiding_ttl')},
	'CALL ttl_index.run_pass()')
{
	my ($status, $stdout) = $node->psql('postgres',
		"SET client_min_messages = panic; $command;\n
SELECT count(*) FROM pg_type WHERE typname = 'text' AND typnamespace = pg_my_temp_schema()",
		on_error_stop => 0);

	is($stdout =~ s/^\n*//r, '0', "no type of pg_temp is left by $command");
}
$node->safe_psql('postgres', 'DROP TABLE m.hiding');

# What core caches with a function in SQL inlined, by the search_path of alice here, is dropped
# behind code that is called where core tells nobody: in a cast to json.  Else her function
# would run as the superuser when that has a value of the domain.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION is_lower(text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT lower(\$1) = \$1';
CREATE DOMAIN lower_word AS text CHECK (is_lower(VALUE));
SET SESSION AUTHORIZATION alice;
CREATE FUNCTION m.lower(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
	'BEGIN RAISE ''the trap is called as %'', current_user; END';
CREATE TYPE m.mood AS ENUM ('good');
RESET SESSION AUTHORIZATION;
CREATE FUNCTION m.mood_as_json(m.mood) RETURNS json LANGUAGE C STRICT AS '$library', 'run_commands';
ALTER FUNCTION m.mood_as_json OWNER TO alice;
SET SESSION AUTHORIZATION alice;
CREATE CAST (m.mood AS json) WITH FUNCTION m.mood_as_json(m.mood);
CREATE TABLE m.junk (word text);
CREATE TABLE m.moody (at timestamptz, mood m.mood);
CREATE INDEX moody_ttl ON m.moody (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO m.moody VALUES ('2001-01-01', 'good');
});
is( $node->safe_psql(
		'postgres', q{
SET rights.watch = off;
SET rights.commands = 'SET search_path = m, pg_catalog; CREATE INDEX junk_word ON m.junk ((word::public.lower_word))';
SELECT count(*) FROM ttl_index.preview('m.moody_ttl');
SELECT 'abc'::lower_word;
SELECT to_regclass('m.junk_word')}),
	"1\nabc\n", 'no cache keeps what unnoticed code has put there');

# A trigger of alice's calls a SECURITY DEFINER function of bob's, who calls a function of hers
# first, with his domain in the place of "date".  That is over for her other tables.
$node->safe_psql(
	'postgres', q{
CREATE TABLE m.called_as (name name DEFAULT current_user);
GRANT INSERT ON m.called_as TO PUBLIC;
CREATE SCHEMA bobs AUTHORIZATION bob;
GRANT USAGE ON SCHEMA bobs TO PUBLIC;
CREATE FUNCTION bobs.is_date(date) RETURNS bool LANGUAGE plpgsql AS 'BEGIN INSERT INTO m.called_as DEFAULT VALUES; RETURN true; END';
CREATE DOMAIN bobs.date AS pg_catalog.date CHECK (bobs.is_date(VALUE));
SET SESSION AUTHORIZATION alice;
CREATE FUNCTION m.compiled() RETURNS void LANGUAGE plpgsql AS 'DECLARE d date := ''2001-01-01''; BEGIN END';
CREATE FUNCTION m.alice_compiles() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.compiled(); RETURN OLD; END';
SET SESSION AUTHORIZATION bob;
CREATE FUNCTION m.bob_helps() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = bobs, pg_catalog AS 'BEGIN PERFORM m.compiled(); END';
SET SESSION AUTHORIZATION alice;
CREATE FUNCTION m.alice_is_helped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.bob_helps(); RETURN OLD; END';
CREATE TABLE m.helped (id int, at timestamptz);
CREATE TRIGGER t BEFORE DELETE ON m.helped FOR EACH ROW EXECUTE FUNCTION m.alice_is_helped();
CREATE TABLE m.not_helped (id int, at timestamptz);
CREATE TRIGGER t BEFORE DELETE ON m.not_helped FOR EACH ROW EXECUTE FUNCTION m.alice_compiles();
CREATE INDEX ON m.helped (at) WHERE ttl_index.expire_after_seconds(0);
CREATE INDEX ON m.not_helped (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO m.helped VALUES (1, '2001-01-01');
INSERT INTO m.not_helped VALUES (1, '2001-01-01');
});
$node->set('monitor_enabled', 'on');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM m.not_helped})
  or fail('the monitor deletes behind a function of another role');
$node->set('monitor_enabled', 'off');
is($node->safe_psql('postgres', q{TABLE m.called_as}),
	'bob', 'a function that another role had compiled is compiled anew for other tables');

# Functions that plan nothing are not called either, where a foreign key reads bob's table, nor
# is anything planned.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.silent_handler() RETURNS language_handler LANGUAGE C AS '$library', 'silent_handler';
CREATE TRUSTED LANGUAGE silent HANDLER m.silent_handler;
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.read (id int PRIMARY KEY, at timestamptz);
CREATE INDEX read_ttl ON m.read (at) WHERE ttl_index.expire_after_seconds(0);
GRANT REFERENCES ON m.read TO bob;
SET SESSION AUTHORIZATION bob;
CREATE FUNCTION m.bob_silent(int) RETURNS bool IMMUTABLE LANGUAGE silent AS '';
CREATE FUNCTION m.bob_silent_set(int) RETURNS bool IMMUTABLE LANGUAGE silent SET search_path = m AS '';
CREATE FUNCTION m.bob_silent_less(int, int) RETURNS bool LANGUAGE silent SET search_path = m AS '';
CREATE OPERATOR m.<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = m.bob_silent_less, RESTRICT = scalarltsel);
CREATE TABLE m.reads (id int REFERENCES m.read, z int);
INSERT INTO m.reads SELECT NULL, g % 3 FROM generate_series(1, 300) AS g;
ANALYZE m.reads;
CREATE INDEX reads_filter ON m.reads (id);
RESET SESSION AUTHORIZATION;
CREATE FUNCTION m.plans(int) RETURNS text IMMUTABLE LANGUAGE C AS '$library', 'run_commands';
INSERT INTO m.read VALUES (1, '2001-01-01');
});
foreach my $filter ('m.bob_silent(1)', 'm.bob_silent_set(1)', q{m.plans(1) <> ''},
	'id IS NOT NULL OR z OPERATOR(m.<<<) 5')
{
	is( $node->safe_psql(
			'postgres', qq{
SET client_min_messages = error;
SET rights.commands = 'SELECT';
DROP INDEX m.reads_filter;
ALTER FUNCTION m.bob_silent_less IMMUTABLE;
CREATE INDEX reads_filter ON m.reads (z) WHERE $filter;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM m.read) FROM ttl_index.index_stats WHERE relname = 'read'}),
		qq{
a foreign key reads table "reads" of another owner, whose definition may call functions of users|1},
		"not computed: $filter");
}

# Nor does anybody go on as an owner who catches an error without the end of a subtransaction.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.goes_on(text) RETURNS void LANGUAGE C AS '$library', 'goes_on';
SET SESSION AUTHORIZATION alice;
CREATE FUNCTION m.alice_fails(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM set_config(''search_path'', ''m'', false); RETURN 1 / \$1 > 0; END';
CREATE TABLE m.failing (id int, at timestamptz);
INSERT INTO m.failing VALUES (1, '1901-01-01');
CREATE INDEX failing_ttl ON m.failing (at) WHERE m.alice_fails(id) AND ttl_index.expire_after_seconds(2000000000);
CREATE OR REPLACE FUNCTION m.alice_fails(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM set_config(''search_path'', ''m'', false); RETURN 1 / (\$1 - 1) > 0; END';
});
my ($status, $stdout, $stderr) =
  $node->psql('postgres', q{SELECT m.goes_on('SELECT ttl_index.preview(''m.failing_ttl'')')});
like(
	$stderr,
	qr/goes on as \w+, by "\$user", public/,
	'who catches an error goes on as the same user, by the same settings');
unlike($stderr, qr/goes on as alice/, 'and not as the owner');

# Nobody goes on where that is refused which a foreign key would read, or change, as bob, either.
$node->safe_psql(
	'postgres', q{
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.reading (command text, at timestamptz);
CREATE FUNCTION m.alice_goes_on() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.goes_on(OLD.command); RETURN OLD; END';
CREATE TRIGGER t BEFORE DELETE ON m.reading FOR EACH ROW EXECUTE FUNCTION m.alice_goes_on();
CREATE INDEX reading_ttl ON m.reading (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE m.changed (id int PRIMARY KEY);
INSERT INTO m.changed VALUES (1);
GRANT REFERENCES ON m.changed TO bob;
SET SESSION AUTHORIZATION bob;
CREATE TABLE m.changes (id int REFERENCES m.changed ON DELETE CASCADE);
RESET SESSION AUTHORIZATION;
});
# The role as which the code of the trigger goes on that deletes from a table.
sub goes_on_as
{
	my ($role, $table, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	like(
		$node->safe_psql(
			'postgres', qq{
SET client_min_messages = error;
TRUNCATE m.reading;
INSERT INTO m.reading VALUES ('DELETE FROM m.$table', '2001-01-01');
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error FROM ttl_index.index_stats WHERE relname = 'reading'}),
		qr/^\s*goes on as $role,/,
		$name);
	return;
}

goes_on_as('nobody', $_, "nobody goes on who deletes from $_")
  foreach 'read', 'changed';

# Nor is bob's code called before that, where the command of the foreign key is planned, or what a
# rule makes of it.
$node->safe_psql(
	'postgres', q{
SET SESSION AUTHORIZATION bob;
CREATE SEQUENCE m.bob_calls;
CREATE FUNCTION m.bob_counts() RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''m.bob_calls''); RETURN true; END';
CREATE INDEX ON m.changes (id) WHERE m.bob_counts();
CREATE TABLE m.changes_by_rule (id int REFERENCES m.changed ON DELETE SET NULL);
CREATE RULE r AS ON UPDATE TO m.changes_by_rule DO ALSO DELETE FROM m.changes WHERE m.bob_counts();
INSERT INTO m.changes_by_rule VALUES (1);
SELECT setval('m.bob_calls', 1000);
RESET SESSION AUTHORIZATION;
});
goes_on_as('nobody', 'changed', 'nor where bob has code');
$node->safe_psql('postgres', 'ALTER TABLE m.changes DROP CONSTRAINT changes_id_fkey');
goes_on_as('nobody', 'changed', 'nor where a rule has some');
is($node->safe_psql('postgres', 'SELECT last_value FROM m.bob_calls'), 1000, 'which is not called');

# Nor as the owner of the rows, or who gave the last command, where a function of carol's catches the
# error of a query like those of foreign keys; nor as a superuser, whose function ends with an error.
$node->safe_psql(
	'postgres', q{
SET SESSION AUTHORIZATION bob;
CREATE TABLE m.like_a_reference (id int);
CREATE FUNCTION m.bob_agrees() RETURNS bool IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
CREATE INDEX ON m.like_a_reference (id) WHERE m.bob_agrees();
GRANT SELECT, UPDATE ON m.like_a_reference TO carol;
SET SESSION AUTHORIZATION carol;
CREATE FUNCTION m.carol_asks() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
	'BEGIN PERFORM m.goes_on(''SELECT 1 FROM ONLY "m"."like_a_reference" x WHERE id OPERATOR(pg_catalog.=) 1 FOR KEY SHARE OF x -- $1''); END';
CREATE FUNCTION m.carol_locks() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
	'BEGIN PERFORM m.goes_on(''SELECT 1 FROM ONLY m.like_a_reference x WHERE id OPERATOR(pg_catalog.=) 1 FOR KEY SHARE OF x -- $1''); END';
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.builds (v int) PARTITION BY LIST (v);
CREATE TABLE m.builds_0 PARTITION OF m.builds FOR VALUES IN (0);
INSERT INTO m.builds VALUES (0);
RESET SESSION AUTHORIZATION;
ALTER TABLE m.builds_0 OWNER TO bob;
CREATE FUNCTION m.superuser_fails() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RAISE ''no''; END';
CREATE OR REPLACE FUNCTION m.alice_goes_on() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN IF OLD.command ~ ''asks'' THEN PERFORM m.carol_asks(); ELSIF OLD.command ~ ''locks'' THEN PERFORM m.carol_locks(); ELSIF OLD.command ~ ''builds'' THEN PERFORM m.goes_on(''CREATE INDEX ON m.builds ((1 / v))''); ELSE PERFORM m.goes_on(''SELECT m.superuser_fails()''); END IF; RETURN OLD; END';
});
goes_on_as('nobody', 'asks', 'nor who asks as a foreign key does');
goes_on_as('carol', 'locks', 'but who locks rows otherwise is not refused that');
goes_on_as('nobody', 'builds', 'nor who builds an index of a partition of another role');
goes_on_as('nobody', 'fails', 'nor who calls a function of a superuser that fails');

# Nor as the owner of the rows, for whose trigger carol deletes.
$node->safe_psql(
	'postgres', q{
GRANT DELETE ON m.read, m.changed TO carol;
CREATE FUNCTION m.carol_goes_on(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN PERFORM m.goes_on($1); END';
ALTER FUNCTION m.carol_goes_on OWNER TO carol;
CREATE OR REPLACE FUNCTION m.alice_goes_on() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.carol_goes_on(OLD.command); RETURN OLD; END';
});
goes_on_as('nobody', $_, "nor who does so for somebody else: $_")
  foreach 'read', 'changed';

# Nor outside of a batch, where a function of the extension computes a filter; nor where ALTER TABLE
# checks the rows of a new foreign key.
$node->safe_psql(
	'postgres', q{
SET SESSION AUTHORIZATION bob;
CREATE TABLE m.checked (id int PRIMARY KEY, z int);
CREATE INDEX ON m.checked (z) WHERE m.bob_silent(1);
GRANT REFERENCES ON m.checked TO alice, carol;
SET SESSION AUTHORIZATION carol;
CREATE TABLE m.checks_of_carol (id int);
INSERT INTO m.checks_of_carol VALUES (1);
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.checks_of_alice (id int);
INSERT INTO m.checks_of_alice VALUES (1);
CREATE TABLE m.filtering (caller text, command text, at timestamptz);
CREATE FUNCTION m.alice_filters(text, text) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN
		IF current_setting(''application_name'') = ''go'' THEN
			EXECUTE format(''SELECT m.%s($1)'', CASE $1 WHEN ''alice'' THEN ''goes_on'' ELSE ''carol_goes_on'' END) USING $2;
		END IF;
		RETURN true;
	END';
CREATE INDEX filtering_ttl ON m.filtering (at) WHERE m.alice_filters(caller, command) AND ttl_index.expire_after_seconds(0);
});
foreach my $caller ('alice', 'carol')
{
	foreach my $command ('DELETE FROM m.read',
		"ALTER TABLE m.checks_of_$caller ADD FOREIGN KEY (id) REFERENCES m.checked")
	{
		(undef, undef, $stderr) = $node->psql(
			'postgres', qq{
TRUNCATE m.filtering;
INSERT INTO m.filtering VALUES ('$caller', '$command', '2001-01-01');
SET application_name = go;
SELECT * FROM ttl_index.preview('m.filtering_ttl')});
		like($stderr, qr/goes on as nobody,/, "nor outside of a batch: $caller, $command");
	}
}
$node->safe_psql('postgres', 'DROP TABLE m.filtering');

# Nor is a deferred trigger fired behind a turn, of a command whose error was caught in this way:
# up to 17 it would run as the user of the session, at the commit.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.catches_unfinished(text, levels int DEFAULT 0) RETURNS void LANGUAGE C AS '$library';
CREATE FUNCTION m.leave_spi_level() RETURNS int LANGUAGE C AS '$library';
CREATE TABLE m.fired_as (name text);
GRANT INSERT ON m.fired_as TO PUBLIC;
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.deferring (id int);
CREATE FUNCTION m.alice_is_late() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN INSERT INTO m.fired_as VALUES (current_user); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON m.deferring DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION m.alice_is_late();
CREATE FUNCTION m.alice_defers(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN
		IF current_setting(''application_name'') <> ''quiet'' THEN
			PERFORM m.catches_unfinished(''INSERT INTO m.deferring VALUES (1)'');
		END IF;
		RETURN true;
	END';
CREATE TABLE m.late (id int, at timestamptz);
SET application_name = quiet;
INSERT INTO m.late VALUES (1, '2001-01-01');
CREATE INDEX late_ttl ON m.late (at) WHERE m.alice_defers(id) AND ttl_index.expire_after_seconds(0);
RESET SESSION AUTHORIZATION;
});
my $unfinished = 'code of role "alice" has caught an error without a subtransaction';
(undef, undef, $stderr) = $node->psql('postgres', q{SELECT * FROM ttl_index.preview('m.late_ttl')});
like($stderr, qr/ERROR:  $unfinished/, 'who goes on is told of a command that has not come to its end');
is( $node->safe_psql(
		'postgres', q{
SET client_min_messages = error;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM m.late) FROM ttl_index.index_stats WHERE relname = 'late'}),
	"\n$unfinished|1",
	'and so is the batch');
is($node->safe_psql('postgres', 'TABLE m.fired_as'), '', 'none of its triggers is fired');
$node->safe_psql('postgres', 'DROP TABLE m.late');

# Also where it fails when it has changed rows, and its triggers are not fired: SPI finds the level of
# another function instead of its own then.
$node->safe_psql(
	'postgres', q{
SET SESSION AUTHORIZATION alice;
CREATE FUNCTION m.alice_defers_behind(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN
		IF current_setting('application_name') <> 'quiet' THEN
			PERFORM m.catches_unfinished('WITH i AS (INSERT INTO m.deferring VALUES (1) RETURNING id)
				SELECT id FROM i WHERE id = m.leave_spi_level()', 1);
		END IF;
		RETURN true;
	END$$;
CREATE FUNCTION m.alice_leaves_level(int) RETURNS bool IMMUTABLE LANGUAGE sql AS
	$$SELECT current_setting('application_name') = 'quiet' OR m.leave_spi_level() = 0$$;
CREATE TABLE m.late (id int, at timestamptz);
SET application_name = quiet;
INSERT INTO m.late VALUES (1, '2001-01-01');
CREATE INDEX late_ttl ON m.late (at) WHERE m.alice_defers_behind(id) AND ttl_index.expire_after_seconds(0);
CREATE TABLE m.levels (id int, at timestamptz);
INSERT INTO m.levels VALUES (1, '2001-01-01');
CREATE INDEX levels_ttl ON m.levels (at) WHERE m.alice_leaves_level(id) AND ttl_index.expire_after_seconds(0);
RESET SESSION AUTHORIZATION;
CREATE TABLE m.kept (row jsonb);
});
foreach my $table ('late', 'levels')
{
	(undef, undef, $stderr) = $node->psql('postgres', qq{INSERT INTO m.kept SELECT * FROM ttl_index.preview('m.${table}_ttl')});
	like($stderr, qr/ERROR:  $unfinished/, "nor is what a command has left that changed rows ($table)");
	is( $node->safe_psql(
			'postgres', qq{
SET client_min_messages = error;
SELECT ttl_index.stats_reset();
CALL ttl_index.run_pass();
SELECT last_error, (SELECT count(*) FROM m.$table) FROM ttl_index.index_stats WHERE relname = '$table'}),
		"\n$unfinished|1",
		"neither in a batch ($table)");
}
is($node->safe_psql('postgres', 'TABLE m.fired_as'), '', 'nor is a trigger fired there');
$node->safe_psql('postgres', 'DROP TABLE m.late, m.levels, m.kept');

# Nor does a table that an error has left open keep what was computed by the search_path of alice.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.leave_open(regclass) RETURNS bool LANGUAGE C AS '$library';
CREATE FUNCTION fold_case(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(\$1)';
CREATE TABLE listed (word text) PARTITION BY LIST (fold_case(word));
CREATE TABLE listed_rest PARTITION OF listed DEFAULT;
SET SESSION AUTHORIZATION alice;
CREATE FUNCTION m.alice_leaves_open(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql SET search_path = m, pg_catalog AS
	'BEGIN RETURN current_setting(''application_name'') = ''quiet'' OR m.leave_open(''public.listed''); END';
CREATE DOMAIN m.alice_leaving_open AS int CHECK (m.alice_leaves_open(VALUE));
CREATE TABLE m.open (id int, at timestamptz);
SET application_name = quiet;
INSERT INTO m.open VALUES (1, '2001-01-01');
CREATE INDEX open_ttl ON m.open (at) WHERE m.alice_leaves_open(id) AND ttl_index.expire_after_seconds(0);
});
foreach my $command (
	q{SELECT count(*) FROM ttl_index.preview('m.open_ttl')},
	q{SELECT length(ttl_index.create_index_command('m.open', 'at', 0, $$'0'::m.alice_leaving_open > 0$$)) > 0})
{
	# alice's function "lower" raises an error
	is( $node->safe_psql(
			'postgres', qq{
SET rights.watch = off;
SET client_min_messages = error;
DO \$do\$ BEGIN
	PERFORM * FROM ($command) AS s;
	INSERT INTO listed VALUES ('a');
END \$do\$;
SELECT count(*) FROM listed;
TRUNCATE listed}),
		'1', "it is new when it is closed: $command");
}
$node->safe_psql('postgres', 'DROP TABLE m.open');

# A subtransaction that an error of alice's leaves open is not what the rest of the pass is done in.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION m.leave_subtransaction(fails bool) RETURNS void LANGUAGE C AS '$library';
SET SESSION AUTHORIZATION alice;
CREATE TABLE m.unfinished (fails bool, at timestamptz);
CREATE FUNCTION m.unfinished() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM m.leave_subtransaction(OLD.fails); RETURN OLD; END';
CREATE TRIGGER t BEFORE DELETE ON m.unfinished FOR EACH ROW EXECUTE FUNCTION m.unfinished();
CREATE INDEX unfinished_ttl ON m.unfinished (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO m.unfinished VALUES (true, '2001-01-01'), (false, '2001-01-02');
SET SESSION AUTHORIZATION bob;
CREATE TABLE m.unfinished_beside (at timestamptz);
CREATE INDEX unfinished_beside_ttl ON m.unfinished_beside (at) WHERE ttl_index.expire_after_seconds(0);
INSERT INTO m.unfinished_beside VALUES ('2001-01-01');
});
is( $node->safe_psql(
		'postgres', q{
SET client_min_messages = error;
CALL ttl_index.run_pass();
SELECT current_user = session_user, (SELECT count(*) FROM m.unfinished), (SELECT count(*) FROM m.unfinished_beside)}),
	't|2|0',
	'a pass goes on behind code that leaves a subtransaction open');
$node->safe_psql('postgres', q{INSERT INTO m.unfinished_beside VALUES ('2001-01-01')});
$node->set('monitor_enabled', 'on');
ok( $node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM m.unfinished_beside'),
	'and so does the monitor');
is($node->safe_psql('postgres', 'SELECT count(*) FROM m.unfinished'), 2, 'its rows stay');
$node->set('monitor_enabled', 'off');

# The test sees nothing where core computes nothing.
my @places = grep { !$ran{$_} } qw(
  alice_filter alice_filter_fold alice_key alice_key_fold alice_check_fold
  alice_exclude_fold alice_kind_3d alice_kind_out
  alice_partition_key_fold alice_rule alice_rule_when alice_statistics_fold
  alice_leaves alice_leaving alice_trigger alice_trigger_when alice_word bob_filter_fold carol_trigger
  alice_moved_check_fold alice_moved_default alice_moved_default_fold alice_moved_generated
  alice_moved_index alice_moved_index_fold alice_moved_key alice_moved_key_fold alice_moved_trigger
  alice_stored_check alice_stored_check_fold alice_stored_default alice_stored_default_fold alice_stored_filter
  alice_stored_filter_fold alice_stored_generated alice_stored_index alice_stored_index_fold);
is("@places", '', 'all of these have run');
done_testing();
