# test/fuzz/strings.pl COUNT SEED: prints strings that are dates, nearly dates, or
# broken ones, one a line, in the text format of COPY; the same for one seed.
use strict;
use utf8;
use warnings;

binmode(STDOUT, ':encoding(UTF-8)');

my ($count, $seed) = @ARGV;
srand($seed);

my @days = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31);
my @alphabet = ('0' .. '9', qw(T t Z z + - : . / e E), ',', ' ', 'BC', 'AM', "\\", '日', 'UTC');
my @others = (
	'now', 'today', 'epoch', 'infinity', '-infinity', '', 'Z', '2024-02-29', '2024-02-29Z', '20240229T123456Z',
	'2024-02-29 12:34:56', '2024-02-29 12:34:56+00', '2024-02-29T12:34Z', '2024-02-29T12:34:56', 'J2451187',
	'Thu Feb 29 12:34:56 2024 UTC', 'Thu, 29 Feb 2024 12:34:56 GMT', '29.02.2024 12:34:56+00', '1709210096',
	'2024-02-29T12:34:56 Europe/Berlin', '2024-060T12:34:56Z', '2024-02-29T12:34:56.789+05', 'P1Y', 'allballs');

sub one_of { return $_[int(rand(@_))] }
sub up_to { return int(rand($_[0] + 1)) }

# mostly what people write, and often the limits
sub fraction {
	my $kind = rand;
	return '' if $kind < 0.3;
	return sprintf('.%03d', up_to(999)) if $kind < 0.45;
	return sprintf('.%06d', up_to(999999)) if $kind < 0.55;
	# around the middle of two microseconds
	return sprintf('.%06d', up_to(999999)) . one_of('5', '50', '49', '51', '4999999999', '5000000001', '49' . '9' x 30, '5' . '0' x 30 . '1')
		if $kind < 0.8;
	return '.' . one_of('9', '0') x (1 + up_to(20)) . one_of('', '1', '5') if $kind < 0.9;
	return '.' . join('', map { up_to(9) } 0 .. up_to(90));
}

sub offset {
	return one_of('Z', 'z') if rand() < 0.4;
	return sprintf('%s%02d:%02d', one_of('+', '-'), up_to(15), one_of(0, 15, 30, 45, 59, up_to(59)));
}

sub valid {
	my $year = one_of(1 + up_to(9998), 1970 + up_to(80), 1970 + up_to(80), 1, 4, 100, 400, 1900, 2000, 9999);
	my $month = 1 + up_to(11);
	my $leap = $year % 4 == 0 && ($year % 100 != 0 || $year % 400 == 0);
	my $last = $days[$month - 1] + ($month == 2 && $leap ? 1 : 0);
	my $day = one_of(1 + up_to($last - 1), 1, $last);

	return sprintf('%04d-%02d-%02d%s%02d:%02d:%02d%s%s', $year, $month, $day, one_of('T', 'T', 'T', 't'),
		one_of(0, 23, up_to(23)), one_of(0, 59, up_to(59)), one_of(0, 59, 60, up_to(59), up_to(59)), fraction(), offset());
}

sub nearly {
	return sprintf('%04d-%02d-%02d%s%02d:%02d:%02d%s%s', one_of(0, up_to(9999), up_to(9999)), up_to(13), up_to(32),
		one_of('T', 'T', 'T', ' '), up_to(25), up_to(61), up_to(62), fraction(),
		one_of(offset(), sprintf('%s%02d:%02d', one_of('+', '-'), up_to(25), up_to(61)),
			sprintf('%s%02d%02d', one_of('+', '-'), up_to(25), up_to(61)), ''));
}

sub broken {
	my $string = valid();

	for (0 .. up_to(2)) {
		my $at = up_to(length($string));
		my $kind = rand;
		if ($kind < 0.4) { substr($string, $at, 1) = one_of(@alphabet) if $at < length($string) }
		elsif ($kind < 0.7) { substr($string, $at, 0) = one_of(@alphabet) }
		elsif ($kind < 0.9) { substr($string, $at, 1) = '' if $at < length($string) }
		else { $string = substr($string, 0, $at) }
	}
	return $string;
}

for (1 .. $count) {
	my $kind = rand;
	my $string = $kind < 0.5 ? valid() : $kind < 0.7 ? nearly() : $kind < 0.99 ? broken() : one_of(@others);
	$string =~ s/\\/\\\\/g;
	print $string, "\n";
}
