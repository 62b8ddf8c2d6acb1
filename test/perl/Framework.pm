# Copyright (c) 2026, ttl_index contributors

# An application that is written with a framework: the files of a directory of
# test/frameworks, in a copy that a test may change, and a server with the database
# "app" of the ordinary role "app", where the extension is.  Its commands are those of
# the page doc/frameworks.md.

package Framework;

use strict;
use warnings;
use IPC::Run ();
use PostgreSQL::Test::Utils ();
use Test::More ();
use TtlNode;

# Leaves the test, as a skipped one, where the framework is not installed: that is where
# the command fails.
sub new
{
	my ($class, $name, $probe) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir("framework_$name");
	my $self = bless { dir => $dir }, $class;

	$self->set_environment;
	Test::More::plan(skip_all => "$name is not installed")
	  unless $self->try($probe);
	Test::More::note("$name: $self->{output}");

	PostgreSQL::Test::Utils::system_or_bail('cp', '-R',
		"test/frameworks/$name/.", $dir);
	$self->start_server;
	return $self;
}

# The frameworks of Node.js come from a directory node_modules that is made once for
# all of them (script/test).
sub new_of_node
{
	my ($class, $name, $package) = @_;
	my $modules = $ENV{TTL_NODE_MODULES} || 'nowhere';

	# the rest of where the server is comes from PGHOST, PGPORT and PGUSER
	$ENV{DATABASE_URL} = 'postgresql:///app';
	return $class->new($name,
		"ln -s '$modules' node_modules && cp '$modules/../package.json' . && "
		  . "node -p \"require('./node_modules/$package/package.json').version\""
	);
}

# Debian's packages of Python are those of Debian's Python, whatever else is there.
# Nothing is written to the home directory, or asked for on a network.  What is printed
# has no colours, which some commands add wherever the variable CI is set: tests look
# for words in it.
sub set_environment
{
	my ($self) = @_;

	$self->{home} = PostgreSQL::Test::Utils::tempdir('home');
	mkdir "$self->{home}/bin";
	symlink '/usr/bin/python3', "$self->{home}/bin/python";
	$ENV{HOME} = $self->{home};
	$ENV{PATH} = "$self->{home}/bin:$ENV{PATH}";
	$ENV{npm_config_cache} = "$self->{home}/npm";
	$ENV{npm_config_offline} = 'true';
	$ENV{npm_config_update_notifier} = 'false';
	delete $ENV{FORCE_COLOR};
	$ENV{NO_COLOR} = '1';
	return;
}

sub start_server
{
	my ($self) = @_;

	# frameworks ask for databases in UTF-8
	$self->{node} = TtlNode->configured("ttl_index.monitor_sleep = '1h'\n",
		init => [ extra => [ '--encoding', 'UTF8' ] ]);
	$self->{node}->start;
	# as doc/frameworks.md has it
	$self->{node}->safe_psql(
		'postgres', q{
CREATE ROLE app LOGIN CREATEDB;
GRANT SET ON PARAMETER ttl_index.monitor_enabled TO app;
CREATE DATABASE app_template IS_TEMPLATE true;
\c app_template
CREATE EXTENSION ttl_index;
CREATE DATABASE app OWNER app TEMPLATE app_template;
});
	$ENV{PGHOST} = $self->{node}->host;
	$ENV{PGPORT} = $self->{node}->port;
	$ENV{PGUSER} = 'app';
	$ENV{PGDATABASE} = 'app';
	return;
}

#
# What the application does
#

# Runs a command of the shell in the application's directory; its output is kept.
sub try
{
	my ($self, $command) = @_;
	my $output = '';
	my $done = IPC::Run::run(
		[ 'sh', '-c', "cd '$self->{dir}' && $command" ],
		'<', '/dev/null', '>&', \$output);

	$self->{output} = $output;
	return $done;
}

# The same as a test; returns what the command printed, which stands in the log of the
# test, too: what a test of it expects may not be in it.
sub runs
{
	my ($self, $command, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	Test::More::ok($self->try($command), $name || $command);
	Test::More::note($self->{output});
	return $self->{output};
}

# Writes another text in place of the one that is there, once.
sub edit
{
	my ($self, $file, $from, $to) = @_;
	my $text = PostgreSQL::Test::Utils::slurp_file("$self->{dir}/$file");

	$text =~ s/\Q$from\E/$to/ or die "\"$from\" is not in $file";
	$self->write($file, $text);
	return;
}

sub write
{
	my ($self, $file, $text) = @_;

	open my $handle, '>', "$self->{dir}/$file" or die "$file: $!";
	print $handle $text;
	close $handle;
	return;
}

# Removes a file; returns its text.
sub remove
{
	my ($self, $file) = @_;
	my $text = PostgreSQL::Test::Utils::slurp_file("$self->{dir}/$file");

	unlink "$self->{dir}/$file" or die "$file: $!";
	return $text;
}

#
# What the database has
#

sub sql
{
	my ($self, $sql) = @_;

	return $self->{node}->safe_psql('app', $sql);
}

# All applications declare the same: a TTL on a column, whose seconds change, and one
# on a date in documents.  Both are there and active.
sub has_seconds
{
	my ($self, $seconds, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return Test::More::is(
		$self->sql(
			q{
SELECT string_agg(format('%s %s', indexrelid, expire_after_seconds), ', ' ORDER BY indexrelid::text)
FROM ttl_index.indexes WHERE state = 'active'}),
		"session_doc_ttl 86400, session_ttl $seconds",
		$name || "session_ttl has $seconds seconds");
}

# The indexes and their files, which a rebuild changes.
sub files
{
	my ($self) = @_;

	return $self->sql(
		q{
SELECT string_agg(format('%s %s %s', relname, oid, relfilenode), ', ' ORDER BY relname)
FROM pg_class WHERE relname LIKE '%\_ttl'});
}

# A migration from 3600 to 7200 seconds, and without a command "down" only that way.
sub changes_seconds
{
	my ($self, $up, $down) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $files = $self->files;

	$self->runs($up);
	$self->has_seconds(7200, 'the seconds change');
	Test::More::is($self->files, $files, 'no index is rebuilt');
	return unless $down;
	$self->runs($down);
	$self->has_seconds(3600, 'the seconds change back');
	Test::More::is($self->files, $files,
		'no index is rebuilt on the way back');
	return;
}

# Two migrations, by the commands that run the first one, all, and the last one
# backwards, and what the second of them prints where there is nothing to do.
sub migrates
{
	my ($self, %commands) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$self->runs($commands{first});
	$self->has_seconds(3600, 'both TTLs are declared');
	$self->changes_seconds($commands{all}, $commands{back});
	$self->runs($commands{all});
	Test::More::like($self->runs($commands{all}, 'it runs again'),
		$commands{nothing}, 'a second run does nothing');
	$self->has_seconds(7200);
	return;
}

1;
