# Copyright (c) 2026, ttl_index contributors

# The survey of a pass is a superuser's process and calls no function of a user.  A table
# carries a function in each place where a definition can hold one.  Each function writes to
# the server log as whom it runs, and raises an error unless the session is its owner's.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

# rights.c sees functions in C as well, which cannot write to the log
my $library = TtlNode::rights_library();
my $node = TtlNode->running("log_line_prefix = '%m [%p] %b '\nttl_index.monitor_enabled = off\n"
	  . ($library ? "shared_preload_libraries = 'ttl_index,$library'\n" : ''));

$node->safe_psql(
	'postgres', q{
CREATE ROLE alice;
CREATE SCHEMA m;
GRANT ALL ON SCHEMA m TO alice;
CREATE FUNCTION m.note(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE LOG 'noted % as %/%', name, session_user, current_user;
	IF session_user <> 'alice' OR current_user <> 'alice' THEN
		RAISE 'function "%" runs as %/%', name, session_user, current_user;
	END IF;
END $$;
-- make(name, arguments, result, value) makes a function that is declared immutable
CREATE FUNCTION m.make(name text, arguments text, result text, value text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FUNCTION m.%s(%s) RETURNS %s IMMUTABLE LANGUAGE plpgsql AS %L',
		name, arguments, result, format('BEGIN PERFORM m.note(%L); RETURN %s; END', name, value));
	EXECUTE format('ALTER FUNCTION m.%s OWNER TO alice', name);
END $$;

-- a type with operators of its own, which only a superuser can make
CREATE TYPE m.kind;
CREATE FUNCTION m.kind_in(cstring) RETURNS m.kind LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION m.kind_out(m.kind) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE m.kind (INPUT = m.kind_in, OUTPUT = m.kind_out, LIKE = int4);
ALTER FUNCTION m.kind_in OWNER TO alice;
ALTER FUNCTION m.kind_out OWNER TO alice;
CREATE CAST (m.kind AS int4) WITHOUT FUNCTION;
SELECT m.make('kind_compare', 'm.kind, m.kind', 'int', '$1::int - $2::int');
SELECT m.make(name, 'm.kind, m.kind', 'bool', format('$1::int %s $2::int', op))
FROM (VALUES ('lt', '<'), ('le', '<='), ('eq', '='), ('ge', '>='), ('gt', '>')) AS o (name, op);
CREATE OPERATOR m.< (LEFTARG = m.kind, RIGHTARG = m.kind, FUNCTION = m.lt);
CREATE OPERATOR m.<= (LEFTARG = m.kind, RIGHTARG = m.kind, FUNCTION = m.le);
CREATE OPERATOR m.= (LEFTARG = m.kind, RIGHTARG = m.kind, FUNCTION = m.eq);
CREATE OPERATOR m.>= (LEFTARG = m.kind, RIGHTARG = m.kind, FUNCTION = m.ge);
CREATE OPERATOR m.> (LEFTARG = m.kind, RIGHTARG = m.kind, FUNCTION = m.gt);
CREATE OPERATOR CLASS m.kind_ops DEFAULT FOR TYPE m.kind USING btree AS
	OPERATOR 1 m.<, OPERATOR 2 m.<=, OPERATOR 3 m.=, OPERATOR 4 m.>=, OPERATOR 5 m.>,
	FUNCTION 1 m.kind_compare(m.kind, m.kind);
SELECT m.make('of_domain', 'timestamptz', 'bool', 'true');
CREATE DOMAIN m.moment AS timestamptz CHECK (m.of_domain(VALUE));

-- xxx_fold(1) is computed where the expression is folded, xxx(column) for a row
SELECT m.make(place || suffix, 'int', 'bool', 'true')
FROM unnest(ARRAY['of_filter', 'of_check', 'of_policy', 'of_trigger_when', 'of_rule_when', 'of_statistics', 'of_archive_check']) AS place,
	unnest(ARRAY['', '_fold']) AS suffix;
SELECT m.make(place || suffix, 'int', 'int', '$1')
FROM unnest(ARRAY['of_partition_key', 'of_generated', 'of_default', 'of_exclude', 'of_rule', 'of_archive_default', 'of_archive_index']) AS place,
	unnest(ARRAY['', '_fold']) AS suffix;
SELECT m.make('of_key', 'timestamptz, int', 'timestamptz', '$1'),
	m.make('of_key_fold', 'int', 'int', '$1'),
	m.make('of_trigger', '', 'trigger', 'OLD'),
	m.make('of_referencing_trigger', '', 'trigger', 'OLD');

SET SESSION AUTHORIZATION alice;
SET search_path = m;
CREATE TABLE whole (
	id int UNIQUE DEFAULT of_default(1) + of_default_fold(0),
	kind m.kind DEFAULT '1',
	at moment,
	gen int GENERATED ALWAYS AS (of_generated(id)) STORED,
	doc jsonb,
	CHECK (of_check(id) AND of_check_fold(1) OR id < 0),
	EXCLUDE USING btree ((of_exclude(id) + of_exclude_fold(0)) WITH =));
CREATE INDEX ON whole (kind kind_ops);
CREATE STATISTICS whole_statistics ON (of_statistics(id)), (of_statistics_fold(1)), id FROM whole;
CREATE POLICY p ON whole USING (of_policy(id) AND of_policy_fold(1));
ALTER TABLE whole ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TRIGGER t BEFORE DELETE ON whole FOR EACH ROW WHEN (of_trigger_when(OLD.id) AND of_trigger_when_fold(1))
	EXECUTE FUNCTION of_trigger();
CREATE TABLE echo (id int);
CREATE RULE r AS ON DELETE TO whole WHERE of_rule_when(OLD.id) AND of_rule_when_fold(1)
	DO ALSO INSERT INTO m.echo VALUES (of_rule(OLD.id));
CREATE INDEX whole_ttl ON whole (of_key(at, of_key_fold(1)))
	WHERE of_filter(id) AND of_filter_fold(1) AND kind >= '1' AND ttl_index.expire_after_seconds(60 * 60);
SELECT ttl_index.create_index('whole', 'doc.at', 3600, 'of_filter(id) AND of_filter_fold(1)', document_ttl_field => 'doc.ttl');
CREATE TABLE referencing (id int REFERENCES whole (id) ON DELETE CASCADE);
CREATE TRIGGER t AFTER DELETE ON referencing FOR EACH ROW EXECUTE FUNCTION of_referencing_trigger();

CREATE TABLE plain (at timestamptz);
CREATE INDEX plain_ttl ON plain (at) WHERE ttl_index.expire_after_seconds(3600);

-- partitioned by an expression; a partition with an option of its own follows its parent
CREATE TABLE parent (id int, at timestamptz, CHECK (of_check(id) AND of_check_fold(1) OR id < 0))
	PARTITION BY RANGE ((id + of_partition_key(0) + of_partition_key_fold(0)));
CREATE TABLE parent_low PARTITION OF parent FOR VALUES FROM (of_default(0)) TO (10);
CREATE TABLE parent_rest PARTITION OF parent DEFAULT;
CREATE INDEX ON parent_low (at) WHERE of_filter_fold(1) AND ttl_index.expire_after_seconds(60);
CREATE INDEX parent_ttl ON parent (at) WHERE of_filter_fold(1) AND ttl_index.expire_after_seconds(3600);

-- partitions are made and dropped
CREATE TABLE series (id int DEFAULT of_default(1), at timestamptz,
	gen int GENERATED ALWAYS AS (of_generated(id)) STORED,
	CHECK (of_check(id) AND of_check_fold(1) OR id < 0)) PARTITION BY RANGE (at);
CREATE STATISTICS series_statistics ON (of_statistics_fold(1)), id FROM series;
SELECT ttl_index.create_time_series('series', 'at', 'id', 'hours', 3600) IS NULL;
CREATE TABLE series_2001 PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');

CREATE TABLE archive (id int, at timestamptz, extra int DEFAULT of_archive_default(1) + of_archive_default_fold(0),
	CHECK (of_archive_check(id) AND of_archive_check_fold(1) OR id < 0));
CREATE INDEX ON archive ((of_archive_index(id) + of_archive_index_fold(0)));
CREATE TABLE moving (id int, at timestamptz);
SELECT ttl_index.create_index('moving', 'at', 3600, archive_to => 'archive');
});

my @tables = qw(whole plain parent series moving referencing);

sub fill
{
	$node->safe_psql(
		'postgres', q{
SET SESSION AUTHORIZATION alice;
SET search_path = m;
ALTER TABLE whole NO FORCE ROW LEVEL SECURITY;
INSERT INTO whole (id, at, doc) SELECT g, '2001-01-01', '{"at": "2001-01-01T00:00:00Z"}' FROM generate_series(1, 5) AS g;
INSERT INTO whole (id, at, doc) VALUES (6, '2100-01-01', '{"at": "2001-01-01T00:00:00Z"}');
INSERT INTO referencing VALUES (1), (2);
ALTER TABLE whole FORCE ROW LEVEL SECURITY;
INSERT INTO plain VALUES ('2001-01-01');
INSERT INTO parent SELECT g, '2001-01-01' FROM unnest('{1,2,11,12}'::int[]) AS g;
INSERT INTO moving VALUES (1, '2001-01-01');
CREATE TABLE IF NOT EXISTS series_2001 PARTITION OF series FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
INSERT INTO series VALUES (1, '2001-06-01');
-- one of those that are to be made
DO $$ BEGIN
	EXECUTE (SELECT format('DROP TABLE %s', max(inhrelid::regclass::text)) FROM pg_inherits
		WHERE inhparent = 'series'::regclass AND inhrelid::regclass::text LIKE '%series_2___\_%');
END $$;
});
	return;
}

my %ran;

# Nothing since an offset in the log ran as anybody but alice, and nothing in a survey.
sub check_log
{
	my ($offset, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $log = slurp_file($node->logfile, $offset);
	my @wrong = grep { /borrowed rights|runs as|survey LOG:  noted/ || (/noted/ && !m{ as alice/alice$}) }
	  split /\n/, $log;

	$ran{$1} = 1 while $log =~ /ttl_index worker LOG:  noted (\w+)/g;
	is(join("\n", @wrong), '', $name);
	return;
}

# What is left in all tables, and the errors.  Alice asks: a query calls functions as well.
my $left = join(', ', map { "(SELECT count(*) FROM m.$_)" } @tables);
my $result = "\\set QUIET on\nSET SESSION AUTHORIZATION alice; SELECT $left, to_regclass('m.series_2001') IS NULL, (SELECT sum(errors) FROM ttl_index.stats), "
  . "(SELECT string_agg(last_error, ', ') FROM ttl_index.index_stats)";

fill();
my $offset = -s $node->logfile;
my ($status, $stdout, $stderr) = $node->psql('postgres', 'CALL ttl_index.run_pass()');
unlike($stderr, qr/WARNING|ERROR/, 'run_pass() warns of nothing');
check_log($offset, 'a pass of a superuser: the functions run as their owner, and none of them in a survey');
is($node->safe_psql('postgres', $result), '0|0|0|0|0|0|t|0|', 'all that is due is deleted');

# REINDEX CONCURRENTLY loses options, which the survey repairs.
$node->safe_psql('postgres', qq{SET SESSION AUTHORIZATION alice; REINDEX INDEX CONCURRENTLY m.$_})
  foreach 'plain_ttl', 'whole_ttl', 'moving_at_ttl';
fill();
$offset = -s $node->logfile;
$node->set('monitor_enabled', 'on');
$node->poll_query_until('postgres', $result, '0|0|0|0|0|0|t|0|');
is($node->safe_psql('postgres', $result), '0|0|0|0|0|0|t|0|', 'also by the monitor, after REINDEX CONCURRENTLY');
$node->wait_for_passes(1);
$node->set('monitor_enabled', 'off');
check_log($offset, 'the monitor: the functions run as their owner, and none of them in a survey');

# Functions that look read index tuples, also for a superuser.
fill();
$offset = -s $node->logfile;
is( $node->safe_psql(
		'postgres', q{
SELECT bool_and(ttl_index.due_count(i) > 0), bool_and(ttl_index.oldest_due(i) < now()), bool_and(ttl_index.lag(i) > '1 day')
FROM unnest(ARRAY['m.whole_ttl', 'm.parent_ttl', 'm.plain_ttl', 'm.series_at_ttl']::regclass[]) AS i}),
	't|t|t', 'a superuser looks at what is due');
$node->safe_psql('postgres', q{SELECT ttl_index.forecast('m.whole_ttl'), ttl_index.cutoff('m.whole_ttl')});
unlike(slurp_file($node->logfile, $offset), qr/noted/, 'and runs no function of alice');

# The test sees nothing where core calls nothing.
is( join(' ', grep { !$ran{$_} } qw(of_key of_key_fold of_filter of_filter_fold of_trigger
		of_trigger_when of_rule of_rule_when of_statistics_fold of_referencing_trigger
		of_archive_default of_archive_check of_archive_index ge)),
	'', 'all of these have run');
$node->stop;
done_testing();
