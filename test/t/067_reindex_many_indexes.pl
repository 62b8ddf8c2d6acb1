# Copyright (c) 2026, ttl_index contributors

# REINDEX CONCURRENTLY of more TTL indexes than there are locks (option rule 9).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $tables = 600;
my $node = TtlNode->running(
	q{
autovacuum = off
log_statement = none
ttl_index.monitor_enabled = off
max_locks_per_transaction = 10
max_connections = 5
});

$node->safe_psql(
	'postgres', qq{
SET client_min_messages = error;
DO \$\$
BEGIN
	FOR i IN 1 .. $tables LOOP
		EXECUTE format('CREATE TABLE t%1\$s (at timestamptz)', i);
		EXECUTE format('CREATE INDEX t%1\$s_ttl ON t%1\$s (at) WHERE ttl_index.expire_after_seconds(5)', i);
		COMMIT;
	END LOOP;
END \$\$});

# How many indexes have their option, whether a pass has come or not, and how many have it
# saved alone.
sub options
{
	return $node->safe_psql(
		'postgres', q{
SELECT count(*) FILTER (WHERE expire_after_seconds = 5 AND state IN ('active', 'no_monitor')),
	count(*) FILTER (WHERE state = 'option_lost')
FROM ttl_index.indexes});
}

sub works
{
	my ($command, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($status, $stdout, $stderr) = $node->psql('postgres', "SET client_min_messages = warning;\n$command");

	is("$status $stderr", '0 ', $name);
	return;
}

works('REINDEX SCHEMA CONCURRENTLY public', 'a schema');
is(options(), "0|$tables", 'all options are saved');
works('CALL ttl_index.run_pass()', 'a pass');
is(options(), "$tables|0", 'gives them all back');

# The way out that the manual shows where remove_all_ttl() needs more locks than there are.
like(($node->psql('postgres', 'SELECT ttl_index.remove_all_ttl()'))[2],
	qr/out of shared memory/, 'remove_all_ttl() locks all in one transaction');
works(
	q{
SELECT format('SELECT ttl_index.remove_ttl(%L)', indexrelid) FROM ttl_index.indexes WHERE parent_indexrelid IS NULL \gexec
SELECT ttl_index.remove_all_ttl()}, 'remove_ttl() of each does not');
is( $node->safe_psql('postgres', 'SELECT count(*) FROM ttl_index.indexes'),
	0, 'and leaves none');

$node->stop;
done_testing();
