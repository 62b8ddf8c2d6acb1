# Copyright (c) 2026, ttl_index contributors

# The accessibility tree of a page in Debian's headless Chromium: what a screen reader is
# told of it.  The browser speaks its protocol through two pipes.

package Browser;

use strict;
use warnings;
use JSON::PP ();
use POSIX ();

# What it says, by turns of question and answer; ends with the browser.
sub start
{
	my ($class, $program, @arguments) = @_;

	pipe(my $their_in, my $our_out) or die "pipe: $!";
	pipe(my $our_in, my $their_out) or die "pipe: $!";
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		POSIX::dup2(fileno($their_in), 60);
		POSIX::dup2(fileno($their_out), 61);
		POSIX::dup2(60, 3);
		POSIX::dup2(61, 4);
		open(STDERR, '>', '/dev/null');
		{ exec($program, '--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', @arguments) }
		POSIX::_exit(1);
	}
	close($their_in);
	close($their_out);
	$our_out->autoflush(1);
	return bless { pid => $pid, in => $our_in, out => $our_out, number => 0 }, $class;
}

# Sends a command, and returns its result; the events that come meanwhile are left out.
sub command
{
	my ($self, $method, %params) = @_;
	my $number = ++$self->{number};
	my $session = $self->{session};

	print { $self->{out} } JSON::PP::encode_json(
		{ id => $number, method => $method, params => \%params, $session ? (sessionId => $session) : () }), "\0";
	local $/ = "\0";
	while (defined(my $line = readline($self->{in})))
	{
		chomp $line;
		my $answer = JSON::PP::decode_json($line);
		next unless defined $answer->{id} && $answer->{id} == $number;
		die "$method: $answer->{error}{message}\n" if $answer->{error};
		return $answer->{result};
	}
	die "$method: the browser has ended\n";
}

# Opens a file in a new tab, as wide and in the color scheme as given, if they are.
sub open_page
{
	my ($self, $url, $width, $scheme) = @_;
	local $self->{session};
	my $target = $self->command('Target.createTarget', url => 'about:blank')->{targetId};

	my $session = $self->command('Target.attachToTarget', targetId => $target, flatten => \1)->{sessionId};
	$self->{session} = $session;
	$self->command('Emulation.setDeviceMetricsOverride', width => $width, height => 1000, deviceScaleFactor => 1, mobile => \0)
	  if $width;
	$self->command('Emulation.setEmulatedMedia', features => [ { name => 'prefers-color-scheme', value => $scheme } ])
	  if $scheme;
	$self->command('Page.enable');
	$self->command('Page.navigate', url => $url);
	# the load is over when its script can answer so
	$self->command('Runtime.evaluate', awaitPromise => \1,
		expression => 'new Promise(done => document.readyState == "complete" ? done() : addEventListener("load", done))');
	return $session;
}

# What an expression, a promise of JSON, says in a file.
sub look
{
	my ($self, $url, $width, $scheme, $expression) = @_;
	local $self->{session} = $self->open_page($url, $width, $scheme);
	my $answer = $self->command('Runtime.evaluate', awaitPromise => \1, expression => $expression);

	die JSON::PP::encode_json($answer) unless defined $answer->{result}{value};
	return JSON::PP::decode_json($answer->{result}{value});
}

# The nodes of the tree of a file that a screen reader meets, each with role, name, level.
sub accessibility_tree
{
	my ($self, $url) = @_;
	local $self->{session} = $self->open_page($url);

	$self->command('Accessibility.enable');
	my @nodes = grep { !$_->{ignored} } @{ $self->command('Accessibility.getFullAXTree')->{nodes} };
	return map {
		my $node = $_;
		my %property = map { $_->{name} => $_->{value}{value} } @{ $node->{properties} };
		{ role => $node->{role}{value}, name => $node->{name}{value} // '', level => $property{level},
			focusable => $property{focusable} }
	} @nodes;
}

sub stop
{
	my ($self) = @_;

	return unless $self->{pid};
	close($self->{out});
	close($self->{in});
	kill 'KILL', $self->{pid};
	waitpid($self->{pid}, 0);
	undef $self->{pid};
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local $?;

	return $self->stop;
}

1;
