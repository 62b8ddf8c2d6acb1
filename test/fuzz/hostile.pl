# test/fuzz/hostile.pl SEED: prints SQL in which the owner of a table has code that was made at
# random, the same for one seed, and a superuser calls what the extension has for that table.
#
# The code nests functions in SQL, PL/pgSQL and PL/Perl, commands that queue triggers, cursors, and
# above all return_next() of PL/Perl, which catches the error of a domain's CHECK without a
# subtransaction.  Each function of the owner that comes to run as somebody else says so in a
# WARNING, which no rollback takes back.
use strict;
use warnings;

my ($seed) = @ARGV;
srand($seed);

sub one_of { return $_[ int(rand(@_)) ] }
sub quoted { return "'" . ($_[0] =~ s/'/''/gr) . "'" }

my @functions = ('works', 'raises', 'divides');
my @catchers;

print q{
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS a CASCADE;
CREATE SCHEMA a AUTHORIZATION alice;
SET ROLE alice;
CREATE SEQUENCE a.numbers;
CREATE TYPE a.label AS ENUM ('x');
CREATE FUNCTION a.look(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'alice' THEN
		RAISE WARNING 'FOUND: % of alice runs as %', what, current_user;
	END IF;
END $$;
CREATE FUNCTION a.fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM a.look(tg_name); RETURN coalesce(new, old); END';
CREATE FUNCTION a.cast_text(a.label) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM a.look('cast'); RETURN 'mine'; END $$;
CREATE FUNCTION a.cast_bigint(a.label) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM a.look('cast'); RETURN 4711; END $$;
CREATE CAST (a.label AS text) WITH FUNCTION a.cast_text(a.label) AS ASSIGNMENT;
CREATE CAST (a.label AS bigint) WITH FUNCTION a.cast_bigint(a.label) AS ASSIGNMENT;
CREATE TABLE a.late (x int);
CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON a.late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION a.fire();
CREATE TABLE a.early (x int);
CREATE TRIGGER early AFTER INSERT ON a.early FOR EACH ROW EXECUTE FUNCTION a.fire();
CREATE TRIGGER before BEFORE INSERT ON a.early FOR EACH ROW EXECUTE FUNCTION a.fire();
CREATE TABLE a.named (x int);
CREATE TRIGGER named AFTER INSERT ON a.named REFERENCING NEW TABLE AS kept FOR EACH STATEMENT EXECUTE FUNCTION a.fire();
CREATE TABLE a.referred (x int PRIMARY KEY);
INSERT INTO a.referred VALUES (1);
CREATE TABLE a.refers (x int REFERENCES a.referred DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE a.locked (x int);
INSERT INTO a.locked VALUES (1), (2);
CREATE MATERIALIZED VIEW a.refreshed AS SELECT 1 AS x;
CREATE VIEW a.instead AS SELECT 1 AS x;
CREATE TRIGGER instead INSTEAD OF INSERT ON a.instead FOR EACH ROW EXECUTE FUNCTION a.fire();
CREATE FUNCTION a.works(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM a.look('function'); RETURN $1; END $$;
CREATE FUNCTION a.raises(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'it raises'; END $$;
CREATE FUNCTION a.divides(int) RETURNS int LANGUAGE sql AS 'SELECT 1 / ($1 - $1)';
CREATE FUNCTION a.rows() RETURNS SETOF int LANGUAGE sql VOLATILE AS 'SELECT x FROM a.locked FOR UPDATE';
CREATE PROCEDURE a.fails(int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO a.late VALUES ($1); RAISE 'it fails'; END $$;
};

sub call {
	return '(SELECT count(*)::int FROM a.' . one_of(@catchers) . '())' if @catchers && rand() < 0.5;
	return 'a.' . one_of(@functions) . '(1)';
}

sub condition {
	return one_of('true', 'false', call() . ' > 100', call() . ' IS NOT NULL', call() . ' = 1');
}

sub command {
	return one_of(
		'INSERT INTO a.late VALUES (1)',
		'INSERT INTO a.early SELECT 1 WHERE ' . condition(),
		'WITH i AS (INSERT INTO a.late VALUES (1) RETURNING x) SELECT x FROM i WHERE ' . condition(),
		'WITH i AS (INSERT INTO a.late VALUES (1) RETURNING x), j AS (INSERT INTO a.early VALUES (2) RETURNING x) SELECT i.x FROM i, j WHERE '
		  . condition(),
		'SELECT x FROM a.locked WHERE ' . condition() . ' FOR UPDATE',
		'UPDATE a.late SET x = ' . call(),
		'DELETE FROM a.late WHERE ' . condition(),
		'INSERT INTO a.refers VALUES (' . one_of(1, 99) . ')',
		"SELECT 'x'::a.label FROM (VALUES (1)) AS v (x) WHERE " . condition(),
		'INSERT INTO a.named VALUES (' . call() . ')',
		'INSERT INTO a.instead VALUES (' . call() . ')',
		'SELECT ' . call());
}

# what only PL/pgSQL has
sub statement {
	my $command = command();

	return one_of(
		'OPEN c FOR SELECT x FROM a.locked WHERE ' . condition() . ' FOR UPDATE; FETCH c INTO i;',
		'OPEN c FOR SELECT ' . call() . ' FROM generate_series(1, 3); FETCH c INTO i; MOVE c;',
		"EXECUTE 'CREATE TABLE a.made' || nextval('a.numbers') || ' AS SELECT " . call() . " AS x';",
		'FOR r IN SELECT * FROM a.rows() LOOP EXIT; END LOOP;',
		'FOR r IN SELECT * FROM a.rows() LOOP PERFORM ' . call() . '; END LOOP;',
		'i := ' . call() . ';',
		'CALL a.fails(1);',
		'SET CONSTRAINTS ALL ' . one_of('IMMEDIATE', 'DEFERRED') . ';',
		'REFRESH MATERIALIZED VIEW a.refreshed;',
		'EXECUTE ' . quoted('EXPLAIN (ANALYZE) INSERT INTO a.late SELECT ' . call()) . ' INTO t;')
	  if rand() < 0.3;
	return "$command;" unless $command =~ /^(SELECT|WITH)/;
	return one_of(
		'EXECUTE ' . quoted($command) . ' INTO t;',
		"FOR r IN $command LOOP " . one_of('NULL;', 'EXIT;', 'PERFORM ' . call() . ';') . ' END LOOP;');
}

sub body {
	my $kind = rand();

	return ('sql', join('; ', map { command() } 1 .. 1 + int(rand(3))) . '; SELECT 1') if $kind < 0.3;
	return ('plperl', 'spi_exec_query(q{' . command() . '}); return 1;') if $kind < 0.5;
	return (
		'plpgsql',
		'DECLARE c refcursor; i int; r record; t text; BEGIN '
		  . join(' ', map { rand() < 0.2 ? "BEGIN $_ EXCEPTION WHEN OTHERS THEN NULL; END;" : $_ }
			  map { statement() } 1 .. 1 + int(rand(4)))
		  . ' RETURN 1; END');
}

foreach my $n (1 .. 5 + int(rand(6)))
{
	my ($language, $body) = body();
	my $check = one_of(
		[ 'sql', 'SELECT a.%s($1) > 0' ],
		[ 'plpgsql', 'BEGIN RETURN a.%s($1) > 0; END' ],
		[ 'plpgsql', "BEGIN PERFORM a.%s(\$1); RAISE 'not valid'; END" ]);
	my $times = one_of(1, 1, 1, 2, 3);

	print "CREATE FUNCTION a.function$n(int) RETURNS int LANGUAGE $language AS \$\$ $body \$\$;\n";
	push @functions, "function$n";
	next if rand() < 0.25;
	printf "CREATE FUNCTION a.check$n(int) RETURNS bool LANGUAGE %s AS \$\$ $check->[1] \$\$;\n",
	  $check->[0], one_of(@functions);
	print "CREATE DOMAIN a.domain$n AS int CHECK (a.check$n(VALUE));\n";
	print "CREATE FUNCTION a.catcher$n() RETURNS SETOF a.domain$n LANGUAGE plperl AS "
	  . "\$\$ for (1 .. $times) { eval { return_next(1) } } return; \$\$;\n";
	push @catchers, "catcher$n";
}

my $hostile = @catchers && rand() < 0.7 ? 'SELECT count(*) >= 0 FROM a.' . one_of(@catchers) . '()' : 'SELECT ' . call() . ' IS NOT NULL';

print qq{
CREATE FUNCTION a.filter(int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE TABLE a.t (at timestamptz, i int);
CREATE INDEX t_ttl ON a.t (at) WHERE a.filter(i) AND ttl_index.expire_after_seconds(0);
INSERT INTO a.t VALUES ('2001-01-01', 1), ('2001-01-01', 2);
CREATE OR REPLACE FUNCTION a.filter(int) RETURNS bool IMMUTABLE LANGUAGE sql AS \$\$ $hostile \$\$;
RESET ROLE;
};

my @calls = (
	"INSERT INTO kept SELECT p::text FROM ttl_index.preview('a.t_ttl') AS p;",
	"DO \$\$ DECLARE v bigint; BEGIN SELECT count(*) INTO v FROM ttl_index.preview('a.t_ttl'); END \$\$;",
	"DO \$\$ DECLARE v text; BEGIN SELECT p::text INTO v FROM ttl_index.preview('a.t_ttl') AS p LIMIT 1; PERFORM 1; END \$\$;",
	"DO \$\$ DECLARE v text; BEGIN BEGIN PERFORM * FROM ttl_index.preview('a.t_ttl'); EXCEPTION WHEN OTHERS THEN NULL; END; SELECT 'x' INTO v; INSERT INTO kept VALUES (v); END \$\$;",
	"BEGIN; INSERT INTO kept VALUES ('x'); SELECT * FROM ttl_index.preview('a.t_ttl'); INSERT INTO kept VALUES ('y'); COMMIT;",
	"INSERT INTO kept SELECT ttl_index.create_index('a.t', 'at', 5, 'a.filter(i) AND i > 0', name => 'second')::text;",
	"DO \$\$ DECLARE v text; BEGIN v := ttl_index.create_index('a.t', 'at', 5, 'a.filter(i) AND i > 1', name => 'third'); SELECT 'x' INTO v; END \$\$;",
	"DO \$\$ DECLARE v text; BEGIN SELECT ttl_index.create_index('a.t', 'at', 5, 'a.filter(i) AND i > 2', name => 'fourth')::text INTO v; END \$\$;",
	"INSERT INTO kept SELECT c::text FROM ttl_index.coll_mod_index('a.t_ttl', 6) AS c;",
	"DO \$\$ DECLARE v int; BEGIN SELECT expire_after_seconds_old INTO v FROM ttl_index.coll_mod_index('a.t_ttl', 7); INSERT INTO kept VALUES ('x'); END \$\$;",
	"INSERT INTO kept SELECT i::text FROM ttl_index.indexes AS i;",
	'CALL ttl_index.run_pass();');

foreach (1 .. @calls)
{
	print splice(@calls, int(rand(@calls)), 1), "\n";
}
