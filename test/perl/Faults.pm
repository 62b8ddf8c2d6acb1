# Copyright (c) 2026, ttl_index contributors

# Servers with a clock that jumps or stands still, and a disk that is full, without
# being root.
# faults.c is built with the C compiler and preloaded into the server.

package Faults;

use strict;
use warnings;
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;

# Skips the whole test file where the library cannot be built.
sub new
{
	my ($class) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir;
	my $self = bless {
		file => "$dir/faults",
		library => "$dir/faults.so",
		seconds => 0,
		standing_at => 0,
		full => ''
	}, $class;

	plan skip_all => 'preloading faults needs Linux' if $^O ne 'linux';
	plan skip_all => 'there is no C compiler'
	  if system('cc', '-shared', '-fPIC', '-O1', '-o', $self->{library},
		dirname(__FILE__) . '/faults.c', '-ldl') != 0;
	$self->write;
	return $self;
}

# Runs what starts a server, so that it has the faults.
sub with
{
	my ($self, $start) = @_;
	local $ENV{LD_PRELOAD} = $self->{library};
	local $ENV{TTL_FAULTS} = $self->{file};

	return $start->();
}

# In place: servers have it mapped.
sub write
{
	my ($self) = @_;

	open(my $fh, -e $self->{file} ? '+<' : '>', $self->{file})
	  or die "could not open $self->{file}: $!";
	binmode $fh;
	print $fh pack('q q a1024', $self->{seconds}, $self->{standing_at},
		$self->{full});
	close($fh);
	return;
}

# Sets the wall clock so many years and days ahead of the true time.  Core's own
# assertions do not stand a jump of more than 68 years, or of 24 days back.
sub clock_ahead
{
	my ($self, $years, $days) = @_;

	$self->{seconds} = int(($years * 365.25 + ($days || 0)) * 86400);
	$self->write;
	return;
}

# Lets the wall clock stand still at these microseconds since 1970; 0 lets it go on.
sub clock_at
{
	my ($self, $micros) = @_;

	$self->{standing_at} = $micros;
	$self->write;
	return;
}

# From now on no file below this path can grow; undef ends that.
sub disk_full
{
	my ($self, $path) = @_;

	$self->{full} = defined $path ? $path : '';
	$self->write;
	return;
}

1;
