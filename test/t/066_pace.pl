# Copyright (c) 2026, ttl_index contributors

# The arithmetic that tells when a pass will be over, without a server or a clock: at an
# even rate it is right, and when the rate changes, soon again.

use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my $include = `$pg_config --includedir-server`;
my $program = PostgreSQL::Test::Utils::tempdir . '/pace';
chomp $include;
plan skip_all => 'there is no C compiler'
  if system('cc', "-I$include", "-I$FindBin::RealBin/../../src", '-o', $program,
	"$FindBin::RealBin/../perl/pace.c", '-lm') != 0;

# What is true and what is told at each tenth of a pass, by its rates and their seconds.
sub told
{
	my (@rates) = @_;

	return map { [split] } split /\n/, `$program @rates`;
}

# By how many percent is it wrong at most, from this tenth on?
sub wrong_from
{
	my ($tenth, @told) = @_;
	my ($worst) = sort { $b <=> $a }
	  map { 100 * abs($_->[1] - $_->[0]) / $_->[0] } @told[ $tenth - 1 .. 8 ];

	return $worst;
}

my @even = told(40000, 250);
is(scalar @even, 10, 'ten looks at a pass');
cmp_ok(wrong_from(1, @even), '<', 1, 'at an even rate the end is known from the first tenth on');
cmp_ok(wrong_from(1, told(3, 86400)), '<', 1, 'also in a day of few rows');
cmp_ok(wrong_from(4, told(400000, 10, 200000, 40)), '<', 25,
	'when it halves after a fifth of the time, the end is known within 25 percent at two fifths');
cmp_ok(wrong_from(4, told(200000, 10, 300000, 40)), '<', 25, 'when it grows, too');

my @late = told(1000, 4, 100000, 36);
is($late[0][1], '-1.0', 'how a pass begins tells nothing');
cmp_ok($late[1][1], '>', 0, 'behind the first seconds something is told');
is((told(1000, 1))[9][1], '0.0', 'at the end nothing is left');

done_testing();
