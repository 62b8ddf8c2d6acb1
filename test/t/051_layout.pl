# Copyright (c) 2026, ttl_index contributors

# The map of the source holds: folders include each other's headers one way only, a
# header fits on two screens, and the name of a function says which file defines it.
# What differs between the releases of PostgreSQL is in compat.h alone.

use strict;
use warnings;
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;

my @sources = sort glob('src/*.[ch] src/*/*.[ch]');
my %uses;

# The folder of a file below src, '' for src itself.
sub folder
{
	my ($file) = @_;

	return $file =~ m{^src/([^/]+)/} ? $1 : '';
}

foreach my $file (@sources)
{
	my $folder = folder($file);
	my @headers = slurp_file($file) =~ /^#include "((?:[a-z_]+\/)?[a-z_0-9]+\.h)"/mg;

	foreach my $header (@headers)
	{
		next unless -e "src/$header";
		my $other = folder("src/$header");

		$uses{$folder}{$other} = "$file includes $header"
		  if $other ne $folder && $folder ne '';
		is($folder, '', "$file: a header that all share includes no folder's")
		  if $other ne '' && $file =~ /\.h$/ && $folder eq '';
	}
}

# The way from one folder back to itself, if there is one.
sub circle
{
	my ($folder, @way) = @_;

	foreach my $next (sort keys %{ $uses{$folder} })
	{
		return (@way, $uses{$folder}{$next}) if $next eq $way[0];
		next if grep { $_ eq $next } @way;
		my @found = circle($next, @way, $next);
		return @found if @found;
	}
	return;
}

foreach my $folder (sort keys %uses)
{
	is_deeply([ circle($folder, $folder) ],
		[], "no way leads from src/$folder back to it");
}

# The source stays one that a person can keep.
my %files_in;

$files_in{ folder($_) }++ foreach @sources;
cmp_ok($files_in{$_}, '<=', 15, "src/$_ has few files") foreach sort keys %files_in;
cmp_ok(scalar(@sources), '<=', 120, 'src has few files');

foreach my $header (grep { /\.h$/ } @sources)
{
	my $lines = () = slurp_file($header) =~ /\n/g;

	cmp_ok($lines, '<=', $header eq 'src/compat.h' ? 250 : 150,
		"$header is short");
}

# What SQL calls is named as SQL names it.
foreach my $file (grep { /\.c$/ } @sources)
{
	my $name = basename($file, '.c');
	my @functions = slurp_file($file) =~ /^(?!static)[A-Za-z].*\n(ttl_\w+)\((?!PG_FUNCTION_ARGS)/mg;
	my @others = grep { !/^ttl_${name}(_|$)/ } @functions;

	is("@others", '', "$file: the names of its functions begin with its own");
}

# A declaration does not outlive its function.
my $code = join('', map { slurp_file($_) } grep { /\.c$/ } @sources);

foreach my $header (grep { /\.h$/ } @sources)
{
	my @declared = slurp_file($header) =~ /^extern [^(;]*?(ttl_\w+)\(/mg;
	my @undefined = grep { $code !~ /^$_\(/m } @declared;

	is("@undefined", '', "$header: what it declares is defined");
}

# A function of core that takes other arguments in some releases is called by compat.h alone:
# any other call would compile with some of them only.
my %called_by_release;

foreach my $alternatives (slurp_file('src/compat.h') =~ /^#if PG_VERSION_NUM.*?^#endif/msg)
{
	my %arguments;

	$alternatives =~ s/"[^"\n]*"//g;
	while ($alternatives =~ /\b(?!TTL_|ttl_)(?=(\w+)(\((?:[^()]++|(?2))*\)))/g)
	{
		my ($function, $list) = ($1, $2 =~ s/(?<=.)\((?:[^()]++|(?R))*\)//gr);
		$arguments{$function}{ $list =~ s/\s+/ /gr } = 1;
	}
	$called_by_release{$_} = 1 foreach grep { keys %{ $arguments{$_} } > 1 } keys %arguments;
}
ok($called_by_release{table_beginscan}, 'compat.h knows what differs');
foreach my $file (grep { $_ ne 'src/compat.h' } @sources)
{
	my @calls = grep { $called_by_release{$_} } slurp_file($file) =~ s{/\*.*?\*/}{}gsr =~ /\b(\w+)\(/g;

	is("@calls", '', "$file: calls what differs between releases through compat.h");
}

done_testing();
