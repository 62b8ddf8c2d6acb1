# Copyright (c) 2026, ttl_index contributors

# Waits for passes of the monitor: a table of its own, whose row the next pass that
# begins deletes.

package Heartbeat;

use strict;
use warnings;

# In the database postgres, which has the extension.
sub new
{
	my ($class, $node) = @_;

	$node->safe_psql(
		'postgres', q{
CREATE TABLE heartbeat (at timestamptz);
CREATE INDEX ON heartbeat (at) WHERE ttl_index.expire_after_seconds(3600);
});
	return bless { node => $node }, $class;
}

# Waits until so many passes have ended that began after the call: the first to
# see a row may have begun before.
sub passes
{
	my ($self, $count) = @_;
	my $node = $self->{node};

	foreach my $i (1 .. $count + 1)
	{
		$node->safe_psql('postgres',
			"INSERT INTO heartbeat VALUES ('2000-01-01')");
		$node->poll_query_until('postgres',
			'SELECT count(*) = 0 FROM heartbeat')
		  or die 'there is no pass';
	}
	return;
}

1;
