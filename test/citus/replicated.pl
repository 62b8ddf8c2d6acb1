# Copyright (c) 2026, ttl_index contributors

# Tables that are on several nodes: the coordinator deletes what is due from all copies at
# once.  Whoever writes to them meanwhile, and wherever, the copies stay equal, nothing that
# is not due is lost, and all that is due goes.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use CitusCluster;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $conf = "fsync = off\nautovacuum = off\ncitus.recover_2pc_interval = 1s\n";
my $cluster = CitusCluster->running(2, $conf);
my $coordinator = $cluster->coordinator;
my ($worker1, $worker2) = $cluster->workers;

# What the copies of each shard of a table hold: one line for each that has only one content.
sub contents
{
	my ($table, $columns) = @_;

	return $cluster->sql(qq{
SELECT count(*) || ' copies of ' || count(DISTINCT shardid) || ' shards with ' || count(DISTINCT (shardid, result)) || ' contents'
FROM run_command_on_placements('$table', 'SELECT md5(string_agg(to_jsonb(s)::text, '','' ORDER BY $columns)) FROM %s AS s')});
}

# The state of the TTL indexes of all shards of a table on a node.
sub states
{
	my ($node, $table) = @_;

	return $cluster->on_node($node, qq{
SELECT string_agg(DISTINCT state, ' ') FROM ttl_index.indexes WHERE relid::regclass::text ~ '^${table}_\\d{6}\$'});
}

#
# All kinds of tables and keys
#

# the nodes write dates in ways of their own
$coordinator->append_conf('postgresql.conf', "datestyle = 'SQL, DMY'\n");
$worker1->append_conf('postgresql.conf', "datestyle = 'SQL, MDY'\n");
$worker1->reload;
# so that only run_pass() deletes
$coordinator->set('monitor_enabled', 'off');
$coordinator->wait_for_no_worker;
$cluster->sql(
	q{
CREATE TABLE keyed (a text, b int, at timestamptz, PRIMARY KEY (a, b));
CREATE TABLE unkeyed (d date, n int);
CREATE TABLE document (_id int PRIMARY KEY, doc jsonb);
SELECT create_reference_table('keyed'), create_reference_table('unkeyed'), create_reference_table('document');
SET citus.shard_replication_factor = 2;
CREATE TABLE twice (id int PRIMARY KEY, at timestamp);
SELECT create_distributed_table('twice', 'id', shard_count => 4, colocate_with => 'none');

INSERT INTO keyed SELECT 'é' || g % 7, g, '2001-01-01' FROM generate_series(1, 1000) AS g;
INSERT INTO keyed SELECT 'stays', g, '2100-01-01' FROM generate_series(1, 10) AS g;
INSERT INTO unkeyed SELECT '2001-01-01', g FROM generate_series(1, 110) AS g;
INSERT INTO unkeyed SELECT '-infinity', g FROM generate_series(1, 110) AS g;
INSERT INTO document SELECT g, jsonb_build_object('at', '2001-01-01T00:00:00Z', 'ttl', 60) FROM generate_series(1, 100) AS g;
INSERT INTO document SELECT g, jsonb_build_object('at', '2001-01-01T00:00:00Z') FROM generate_series(101, 200) AS g;
INSERT INTO document SELECT g, jsonb_build_object('at', '2001-01-01T00:00:00Z', 'ttl', 2000000000) FROM generate_series(201, 210) AS g;
INSERT INTO twice SELECT g, '2001-01-01'::timestamp + g % 9 * interval '1 day' FROM generate_series(1, 1000) AS g;
INSERT INTO twice SELECT g, '2100-01-01' FROM generate_series(1001, 1010) AS g;
});
# an owner who has no other rights
$cluster->sql('CREATE ROLE somebody LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO somebody');
$cluster->sql("ALTER TABLE $_ OWNER TO somebody") foreach 'keyed', 'twice';
my @kinds = (['keyed', 'a, b'], ['unkeyed', 'd, n'], ['document', '_id'], ['twice', 'id']);
unlike($cluster->error(q{SELECT ttl_index.create_index('keyed', 'at', 3600)}), qr/ERROR/, 'a TTL index is declared');
unlike($cluster->error(q{SELECT ttl_index.create_index('document', 'doc.at', 3600, document_ttl_field => 'doc.ttl')}),
	qr/could not/, 'so it is on a path');
$cluster->sql(
	q{
CREATE INDEX unkeyed_ttl ON unkeyed (d) WHERE n > 10 AND ttl_index.expire_after_seconds(3600) AND ttl_index.time_zone('Europe/Berlin');
SELECT ttl_index.create_index('twice', 'at', 3600, time_zone => 'Europe/Berlin');
});
foreach my $node ($coordinator, $worker1)
{
	is( $node->safe_psql('postgres', q{
SELECT string_agg((SELECT count(*) FROM ttl_index.preview(i, 2000))::text, ' ' ORDER BY n)
FROM unnest('{keyed_at_ttl,unkeyed_ttl,twice_at_ttl}'::regclass[]) WITH ORDINALITY AS i(i, n)}),
		'1000 200 1000', 'each row counts once, on ' . $node->name);
	is( $node->safe_psql(
			'postgres', q{
SELECT (SELECT count(*) FROM ttl_index.preview('twice_at_ttl', 3) AS row WHERE (row->>'id')::int % 9 = 0),
	(SELECT row->>'at' FROM ttl_index.preview('keyed_at_ttl', 1) AS row) LIKE '2001-01-01%', (SELECT count(*) FROM ttl_index.preview('document_doc_at_ttl'))}),
		'3|t|10', 'and can be looked at, the oldest first');
}
is($cluster->sql(q{SELECT ttl_index.lag('keyed_at_ttl')}), '', 'the lag is not known');
is(states($worker1, 'keyed'), 'active', 'a copy is active');
$worker1->safe_psql('postgres', 'CALL ttl_index.run_pass()');
is($cluster->sql(q{SELECT count(*) FROM keyed}), '1010', 'no other node deletes');
$cluster->sql(q{SELECT ttl_index.pause_index('twice_at_ttl'); CALL ttl_index.run_pass()});
is($cluster->sql(q{SELECT count(*) FROM twice}), '1010', 'nothing goes while it is paused');
$cluster->sql(q{SELECT ttl_index.unpause_index('twice_at_ttl'); CALL ttl_index.run_pass()});
is( $cluster->sql(
		q{SELECT concat_ws(' ', (SELECT count(*) FROM keyed WHERE at > now()), (SELECT count(*) FROM keyed),
	(SELECT count(*) FROM unkeyed), (SELECT count(*) FROM unkeyed WHERE n <= 10), (SELECT count(*) FROM document WHERE _id > 200),
	(SELECT count(*) FROM document), (SELECT count(*) FROM twice WHERE at > now()), (SELECT count(*) FROM twice))}),
	'10 10 20 20 10 10 10 10', 'what is due goes, and nothing else');
foreach my $kind (@kinds)
{
	like(contents(@$kind), qr/^(?:3 copies of 1 shards with 1|8 copies of 4 shards with 4) /, "from all copies of $kind->[0]");
}
is( $cluster->sql(q{SELECT string_agg(concat_ws(' ', relname, deleted_documents, errors, not_active), ', ' ORDER BY relname, indexrelname) FROM ttl_index.cluster_index_stats
	WHERE relname <> 'document'}), 'keyed 1000 0 0, twice 1000 0 0, unkeyed 200 0 0', 'it is counted once');

#
# What cannot go
#

$cluster->sql(
	q{
CREATE TABLE parent (id int PRIMARY KEY, at timestamptz);
CREATE TABLE child (id int, parent int REFERENCES parent);
CREATE TABLE follower (id int, parent int REFERENCES parent ON DELETE CASCADE);
SELECT create_reference_table('parent');
SELECT create_distributed_table('child', 'id');
SELECT create_reference_table('follower');
SELECT ttl_index.create_index('parent', 'at', 3600);
INSERT INTO parent SELECT g, timestamptz '2001-01-01' + g * interval '1 minute' FROM generate_series(1, 300) AS g;
INSERT INTO child VALUES (1, 1), (2, 100), (3, 101), (4, 300);
INSERT INTO follower SELECT g, g FROM generate_series(1, 300) AS g;
CALL ttl_index.run_pass();
});
is($cluster->sql(q{SELECT string_agg(id::text, ' ' ORDER BY id) FROM parent}), '1 100 101 300', 'what is referenced stays, and nothing behind it');
is($cluster->sql(q{SELECT string_agg(id::text, ' ' ORDER BY id) FROM follower}), '1 100 101 300', 'what references other rows goes with them');
is(contents('parent', 'id') . contents('follower', 'id'), '3 copies of 1 shards with 1 contents' x 2, 'in all copies');
is( $cluster->sql(q{SELECT skipped_failed > 0, last_error_sqlstate FROM ttl_index.index_stats WHERE indexrelname = 'parent_at_ttl'}),
	't|23503', 'the error is shown');
$cluster->sql(q{DELETE FROM child; CALL ttl_index.run_pass()});
is($cluster->sql(q{SELECT count(*) FROM parent}), '0', 'later it goes');

# a writer that does not end
my $writer = $worker1->background_psql('postgres');
$cluster->sql(q{INSERT INTO parent VALUES (1, '2001-01-01'), (2, '2001-01-01')});
$writer->query_safe(q{BEGIN; UPDATE parent SET at = '2100-01-01' WHERE id = 1});
$cluster->sql('CALL ttl_index.run_pass()');
is( $cluster->sql(q{SELECT (SELECT count(*) FROM parent), skipped_locked > 0 FROM ttl_index.index_stats WHERE indexrelname = 'parent_at_ttl'}),
	'2|t', 'a transaction that writes, on any node, is not waited for');
$writer->query_safe('COMMIT');
$cluster->sql('CALL ttl_index.run_pass()');
is($cluster->sql(q{SELECT string_agg(id::text, ' ') FROM parent}), '1', 'what it has refreshed stays');
$writer->quit;

# a node that LOCK TABLE does not reach, but where sessions can write
my $node = sprintf q{'%s', %d}, $worker2->host, $worker2->port;
$cluster->sql("SELECT stop_metadata_sync_to_node($node, clear_metadata => false)");
$cluster->on_node($worker2, q{INSERT INTO parent VALUES (2, '2001-01-01')});
$cluster->sql('CALL ttl_index.run_pass()');
is($cluster->sql(q{SELECT count(*), max(last_error_sqlstate) FROM ttl_index.index_stats, parent WHERE indexrelname = 'parent_at_ttl'}),
	'2|55000', 'nothing goes while a node keeps old metadata');
$cluster->sql("SELECT start_metadata_sync_to_node($node); CALL ttl_index.run_pass()");
is(contents('parent', 'id') . $cluster->sql(q{SELECT string_agg(id::text, ' ') FROM parent}), '3 copies of 1 shards with 1 contents1',
	'later it goes from all of them');

# names of tables are in another order on each node, by their OIDs
foreach my $case ([ $coordinator, 'a', 'b' ], [ $worker1, 'b', 'a' ], [ $worker2, 'b', 'a' ])
{
	my ($node, @tables) = @$case;

	$node->safe_psql('postgres', "SET citus.enable_ddl_propagation = off; CREATE TABLE $_ ()") foreach @tables;
}
$cluster->sql(
	q{
CREATE TABLE of_table (name regclass PRIMARY KEY, at timestamptz);
SELECT create_reference_table('of_table');
SELECT ttl_index.create_index('of_table', 'at', 3600);
INSERT INTO of_table VALUES ('a', '2001-01-01');
INSERT INTO of_table VALUES ('b', '2001-01-01');
SET ttl_index.index_delete_target_docs = 2;
CALL ttl_index.run_pass();
});
is(contents('of_table', 'at') . $cluster->sql('SELECT count(*) FROM of_table'), '3 copies of 1 shards with 1 contents0',
	'the order of such rows is of no account');

# policies that its owner is subject to on all nodes but the coordinator
$cluster->sql(
	q{
CREATE TABLE guarded (id int PRIMARY KEY, at timestamptz);
SELECT create_reference_table('guarded');
ALTER TABLE guarded OWNER TO somebody;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY odd ON guarded USING (id % 2 = 1);
SELECT ttl_index.create_index('guarded', 'at', 3600);
INSERT INTO guarded SELECT g, '2001-01-01' FROM generate_series(1, 10) AS g;
CALL ttl_index.run_pass();
});
is(contents('guarded', 'id') . $cluster->sql('SELECT count(*) FROM guarded'), '3 copies of 1 shards with 1 contents10',
	'nothing goes while row security is forced');
is($cluster->sql(q{SELECT last_error_sqlstate, skipped_failed FROM ttl_index.index_stats WHERE indexrelname = 'guarded_at_ttl'}),
	'55000|0', 'which is an error, of no row');
$cluster->sql('ALTER TABLE guarded NO FORCE ROW LEVEL SECURITY; CALL ttl_index.run_pass()');
is(contents('guarded', 'id') . $cluster->sql('SELECT count(*) FROM guarded'), '3 copies of 1 shards with 1 contents0',
	'later all of it goes');

#
# Under load
#

$cluster->sql(
	q{
CREATE TABLE session (id int PRIMARY KEY, at timestamptz NOT NULL, n int);
SELECT create_reference_table('session');
SET citus.shard_replication_factor = 2;
CREATE TABLE copied (id int PRIMARY KEY, at timestamptz NOT NULL, n int);
SELECT create_distributed_table('copied', 'id', shard_count => 4, colocate_with => 'none');
SELECT ttl_index.create_index('session', 'at', 3600), ttl_index.create_index('copied', 'at', 3600);
});
$coordinator->set('monitor_enabled', 'on');
my %load = (session => {}, copied => {});
my $last_id = 0;
my $rows = $ENV{CITUS_ROWS} || 60;

# Rows that are due from the beginning, each of which is refreshed later if it is still
# there, or made anew, as the statement says.
sub start_writer
{
	my ($node, $table, $statement) = @_;
	my ($out, $err) = ('', '');
	my ($first, $last) = ($last_id + 1, $last_id + $rows);
	my $file = PostgreSQL::Test::Utils::tempdir() . '/statements';

	$last_id = $last;
	# a few rows later, so that some of them have gone by then
	foreach my $id ($first .. $last + 8)
	{
		my $minutes = $id * 7919 % 1000;

		append_to_file($file, "INSERT INTO $table VALUES ($id, '2001-01-01'::timestamptz + $minutes * interval '1 minute', 0);\n")
		  if $id <= $last;
		append_to_file($file, sprintf("$statement;\n", $table, $id - 8)) if $id >= $first + 8;
	}
	return {
		run => IPC::Run::start(
			[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $file ],
			'<', \undef, '>', \$out, '2>', \$err),
		out => \$out, err => \$err, table => $table
	};
}

my $update = q{UPDATE %s SET at = '2100-01-01', n = n + 1 WHERE id = %d RETURNING id};
my $upsert = q{INSERT INTO %s AS s VALUES (%d, '2100-01-01', 10) ON CONFLICT (id) DO UPDATE SET at = EXCLUDED.at, n = s.n + 1 RETURNING id};

sub under_load
{
	my ($name, $work) = @_;
	my @writers = map { my $table = $_; map { start_writer($_, $table, $update), start_writer($_, $table, $upsert) } $coordinator, $worker1 } sort keys %load;

	my $error = $cluster->error($work);
	unlike($error, qr/ERROR|FATAL/, "$name: nothing fails");
	foreach my $writer (@writers)
	{
		ok($writer->{run}->finish, "$name: all is written") or diag(${ $writer->{err} });
		$load{ $writer->{table} }{$_} = 1 foreach split /\n/, ${ $writer->{out} };
	}
	foreach my $table (sort keys %load)
	{
		$coordinator->empties('postgres', "$table WHERE at < '2100-01-01'", "$name: what was not refreshed expires, in $table");
		is( $cluster->sql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM $table"),
			join(' ', sort { $a <=> $b } keys %{ $load{$table} }), 'and what was refreshed stays');
		like(contents($table, 'id'), $table eq 'session' ? qr/^\d copies of 1 shards with 1 / : qr/^8 copies of 4 shards with 4 /,
			'in all copies');
		note("$table: " . keys(%{ $load{$table} }) . ' rows were refreshed');
	}
	return;
}

under_load('no changes of nodes', 'SELECT 1');
is( $cluster->sql(q{SELECT string_agg(errors::text, ' ') FROM ttl_index.index_stats WHERE indexrelname IN ('session_at_ttl', 'copied_at_ttl')}),
	'0 0', 'nothing has failed');

# a node more, while rows go
my $worker3 = $cluster->add_server('worker3', $conf);
foreach my $mode ('block_writes', 'force_logical')
{
	$cluster->sql(q{INSERT INTO session SELECT -g, '2001-01-01', 0 FROM generate_series(1, 3000) AS g});
	under_load("a node is added ($mode)",
		sprintf q{SELECT citus_add_node('%s', %d); SELECT replicate_reference_tables('%s')}, $worker3->host, $worker3->port, $mode);
	is(contents('session', 'id'), '4 copies of 1 shards with 1 contents', 'it has a copy then');
	$cluster->sql(sprintf q{SELECT citus_remove_node('%s', %d)}, $worker3->host, $worker3->port);
}

#
# A node that is down
#

$coordinator->set('monitor_enabled', 'off');
$coordinator->wait_for_no_worker;
$cluster->sql(q{INSERT INTO session SELECT -g, '2001-01-01', 0 FROM generate_series(1, 3000) AS g});
$worker2->stop('immediate');
my $errors = $cluster->sql(q{SELECT errors FROM ttl_index.index_stats WHERE indexrelname = 'session_at_ttl'});
$coordinator->set('monitor_enabled', 'on');
$coordinator->poll_query_until('postgres', qq{
SELECT errors > $errors FROM ttl_index.index_stats WHERE indexrelname = 'session_at_ttl'}) or die;
is($cluster->sql(q{SELECT count(*) FROM session WHERE at < '2100-01-01'}), '3000', 'nothing goes while a node is down');
is($cluster->sql(q{SELECT skipped_failed FROM ttl_index.index_stats WHERE indexrelname = 'session_at_ttl'}), '0', 'for which no row is to blame');
$worker2->start;
$coordinator->poll_query_until('postgres', q{SELECT count(*) < 3000 FROM session WHERE at < '2100-01-01'}) or die;
# this one goes while rows do
$worker2->stop('immediate');
$worker2->start;
$coordinator->empties('postgres', q{session WHERE at < '2100-01-01'}, 'what is due goes once all nodes are back');
is(contents('session', 'id'), '3 copies of 1 shards with 1 contents', 'in all copies');
is($cluster->sql(q{SELECT count(*) FROM session}), scalar(keys %{ $load{session} }), 'and nothing else');
$_->has_not_crashed($_->name . ' has not crashed') foreach $coordinator, $worker1;

done_testing();
