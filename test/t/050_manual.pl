# Copyright (c) 2026, ttl_index contributors

# Every block of SQL in the manual runs, from the top of its page to the bottom, in
# a database of the page's own; and where a line promises a result ("--> result"),
# that is what comes out.  A block that is not to be run has another language tag.  The
# programs of the page on frameworks are those that other tests run.  Readers paste blocks
# into databases of their own, so a block drops and alters only what its page has created.

use strict;
use warnings;
use File::Basename;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

# installcheck runs in the directory of the sources
my @pages = ('README.md', sort glob('doc/*.md'));

my $node = TtlNode->configured(
	q{
ttl_index.monitor_sleep = '1h'
TimeZone = 'UTC'
});
$node->start;

# The statements of a page: the first line of each, its text, and what it promises.
sub statements
{
	my ($page) = @_;
	my ($inside, $text, $first, @found) = (0, '');
	my $number = 0;

	foreach my $line (split /\n/, slurp_file($page))
	{
		$number++;
		if ($line =~ /^\s*```(\w*)/)
		{
			die "$page:$number: a statement without its end"
			  if $text =~ s/--.*$//mgr =~ /\S/;
			$inside = !$inside && $1 eq 'sql';
			$text = '';
			next;
		}
		next unless $inside;
		$line =~ s/^   // if $line =~ /^   /;
		$first = $number if $text !~ /\S/;
		my $promise = $line =~ s/\s*-->\s*(.*?)\s*$// ? $1 : undef;
		$text .= "$line\n";
		(my $code = $text) =~ s/--.*$//mg;
		my $quotes = () = $code =~ /\$\$/g;

		next unless $code =~ /(;|\\gexec|\\gx)\s*$/ || $code =~ /^\s*\\d/;
		next if $quotes % 2;
		push @found, { line => $first, text => $text, promise => $promise };
		$text = '';
	}
	return @found;
}

sub run_page
{
	my ($page) = @_;
	my @statements = statements($page);
	my $script = "\\set ON_ERROR_STOP 1\n\\pset pager off\n";

	return unless @statements;
	foreach my $statement (@statements)
	{
		$script .= "\\echo <<$statement->{line}>>\n$statement->{text}";
	}
	$script .= "\\echo <<end>>\n";
	$node->safe_psql('postgres', 'DROP DATABASE IF EXISTS app');
	$node->safe_psql('postgres', 'CREATE DATABASE app');
	$node->safe_psql('app', 'CREATE EXTENSION ttl_index')
	  unless grep { $_->{text} =~ /^CREATE EXTENSION/ } @statements;

	my ($stdout, $stderr) = ('', '');
	$node->psql('app', $script, stdout => \$stdout, stderr => \$stderr,
		extra_params => [ '-A', '-t', '-F', ', ' ]);
	like($stdout, qr/<<end>>/, "$page runs to its end")
	  or diag($stderr);
	my %output = $stdout =~ /<<(\d+)>>\n(.*?)(?=<<)/gs;
	foreach my $statement (grep { defined $_->{promise} } @statements)
	{
		my $output = $output{ $statement->{line} } // 'nothing';

		chomp $output;
		is($output, $statement->{promise},
			"$page:$statement->{line} gives what it promises");
	}
	return;
}

# The headings of a page as its links name them.
sub anchors
{
	my ($page) = @_;
	my $text = slurp_file($page) =~ s/^```.*?^```//msgr;

	return map { lc($_) =~ s/[^\w\- ]//gr =~ s/ /-/gr } $text =~ /^#+ (.*)$/mg;
}

sub check_links
{
	my ($page) = @_;
	my @broken;

	foreach my $link (slurp_file($page) =~ /\]\(([^)\s]+)\)/g)
	{
		my ($file, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $file eq '' ? $page : dirname($page) . "/$file";

		next if $link =~ /^https?:/;
		push @broken, $link
		  if !-e $target || ($anchor ne '' && !grep { $_ eq $anchor } anchors($target));
	}
	is("@broken", '', "the links of $page lead somewhere");
	return;
}

# A block drops, empties and alters only what the page has created, the extension, and
# settings of the extension.  Whoever uninstalls has not run the examples of the page.
sub check_pasted
{
	my ($page) = @_;
	my $takes = '(?:DROP|ALTER)(?: FOREIGN| MATERIALIZED| EVENT)? \w+|TRUNCATE(?: TABLE)?|DELETE FROM|UPDATE';
	my (%created, @foreign);

	foreach my $part (split /^(\s*```.*?^\s*```)$/ms, slurp_file($page))
	{
		%created = () if $part =~ /^#+ .*uninstall/mi;
		next unless $part =~ s/^\s*```.*\n//;
		my $code = $part =~ s/--.*$//mgr =~ s/\s+/ /gr;

		$created{ $1 // $2 } = 1
		  while $code =~ /\bCREATE (?:UNIQUE |FOREIGN |MATERIALIZED )?\w+ (?:IF NOT EXISTS )?([\w.]+)|\bname => '(\w+)'/gi;
		push @foreign, grep { !$created{$_} } $code =~ /\bttl_index\.drop_index\('(\w+)'/gi;
		# also statements in strings
		foreach my $statement (split /[;'"]\s*/, $code =~ s/^\s+//r)
		{
			my ($names) =
			  $statement =~ /^(?:$takes) (?:IF EXISTS )?([^\s,]+(?:, [^\s,]+)*)/i;

			next if !defined $names || $statement =~ /^ALTER \w+ \S+ (?:RE)?SET ttl_index\./i;
			push @foreign, $statement
			  if $statement =~ /\bCASCADE\b/i || grep { !$created{$_} && $_ ne 'ttl_index' } split /, /, $names;
		}
	}
	is(join("\n", @foreign), '', "$page drops and alters only what it has created");
	return;
}

# Text without what differs where it is quoted: the indentation.
sub unindented
{
	my ($text) = @_;

	return $text =~ s/^[ \t]+//mgr;
}

# What the page on frameworks shows is part of the files that the text before it names
# last, and those are run by tests (test/frameworks).
sub check_programs
{
	my ($page) = @_;
	my ($file, @shown);

	foreach my $part (split /^(```\w+\n.*?^```\n)/ms, slurp_file($page))
	{
		my ($language, $code) = $part =~ /^```(\w+)\n(.*)^```\n/ms;

		if (!defined $language)
		{
			($file) = reverse $part =~ m{\]\(\.\./(test/frameworks/[^)]+)\)}g;
			next;
		}
		next if $language eq 'sql' && !defined $file;
		push @shown, $file;
		ok( defined $file && -f $file
			  && index(unindented(slurp_file($file)), unindented($code)) >= 0,
			'what is shown is in ' . ($file // 'no file')) or diag($code);
	}
	my @names = sort map { basename($_, '.pl') } glob('test/frameworks/*.pl');
	my %named = map { m{^test/frameworks/([^/]+)/} ? ($1 => 1) : () } @shown;

	is_deeply([ sort keys %named ], \@names, 'all that is shown has a test');
	return;
}

# A table with a column "test", the first or the last one, names tests that exist, in each row.
sub check_tests
{
	my ($page) = @_;
	my @missing;

	foreach my $row (slurp_file($page) =~ /^\| test \|.*\n\| ---.*\n((?:\|.*\n)+)|^\|.*\| test \|\n\| ---.*\n((?:\|.*\n)+)/mg)
	{
		foreach my $line (split /\n/, $row // '')
		{
			my @columns = grep { /\S/ } split /\|/, $line;
			my ($names) = grep { /^ *`[\w`, ]+ *$/ } @columns[ 0, -1 ];
			my @named = ($names // '') =~ /`(\w+)`/g;

			push @missing, $line unless @named;
			push @missing, grep { !-e "test/sql/$_.sql" && !-e "test/specs/$_.spec" && !-e "test/t/$_.pl" } @named;
		}
	}
	is("@missing", '', "the tests that $page names exist");
	return;
}

# The entries of the reference are those of the catalog: functions with their arguments,
# views with their columns, settings with their defaults, states.
sub check_reference
{
	my ($page) = @_;
	my $text = slurp_file($page);
	my %chapters = $text =~ /^## (.*?)\n(.*?)(?=^## |\z)/gms;
	my (@undocumented, @gone, @different);
	my $rows = sub {
		return map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', $_[0]);
	};

	$node->safe_psql('postgres', 'CREATE EXTENSION ttl_index');

	my $entries = join '', @chapters{ 'Options of an index', 'Functions for keys',
		'Declaring', 'Changing', 'What is due', 'Running' };
	my %signatures = map { /(\w+)\((.*?)\)(?: →|\n|$)/s ? ($1 => $2) : () } $entries =~ /^```\n(.*?)^```/gms,
	  $entries =~ /^\| `(\w+\([^`]*\))`/gm;
	my ($internal) = $entries =~ /^### Internal functions\n(.*)/ms;
	my %catalog;
	foreach my $row ($rows->(q{
SELECT proname, replace(pg_get_function_arguments(oid), 'timestamp with time zone', 'timestamptz')
FROM pg_proc WHERE pronamespace = 'ttl_index'::regnamespace ORDER BY 1, length(pg_get_function_arguments(oid)) DESC}))
	{
		my ($name, $arguments) = @$row;
		my $documented = $signatures{$name};

		$catalog{$name} = 1;
		push @undocumented, $name if !defined $documented && $internal !~ /`$name`/;
		next if !defined $documented || $documented =~ /…/ || $name eq 'stats_reset';
		$_ = ($_ // '') =~ s/::[a-z_. ]+//gr =~ s/,? ?(?:OUT|minimum) .*//sr =~ s/\s+/ /gr =~ s/^ | $//gr
		  foreach $arguments, $documented;
		push @different, "$name($documented), not ($arguments)" if $documented ne $arguments;
	}
	push @gone, grep { !$catalog{$_} } keys %signatures, $entries =~ /^### ([a-z_]+)$/mg, $internal =~ /`(\w+)`/g;

	my %views = $chapters{Views} =~ /^### (\w+)\n(.*?)(?=^### |\z)/gms;
	my %columns;
	foreach my $row ($rows->(q{
SELECT relname, attname FROM pg_class AS c JOIN pg_attribute AS a ON attrelid = c.oid
WHERE relnamespace = 'ttl_index'::regnamespace AND relkind = 'v' AND attnum > 0}))
	{
		my ($view, $column) = @$row;

		$columns{$view}{$column} = 1;
		push @undocumented, "$view.$column"
		  if ($views{$view} // '') !~ /^\|[^|]*`$column`/m && $view !~ /^cluster_/;
	}
	foreach my $view (keys %views)
	{
		my @named = map { /`(\w+)`/g } $views{$view} =~ /^\|([^|]*)\|/mg;

		push @gone, map { "$view.$_" } grep { !$columns{$view}{$_} } @named;
	}

	my %settings = map { /^`(\w+)` \| (.*)/ ? ($1 => $2) : () } $chapters{Settings} =~ /^\| (.*) \|/mg;
	foreach my $row ($rows->(q{
SELECT replace(name, 'ttl_index.', ''), boot_val, unit, min_val, context FROM pg_settings
WHERE name LIKE 'ttl\_index.%' AND context <> 'internal'}))
	{
		my ($name, @values) = @$row;
		my $documented = delete $settings{$name};

		push @undocumented, $name if !defined $documented;
		next if !defined $documented;
		my @documented = map { s/^ +| +$//gr } split /\|/, $documented;
		$documented[1] = '' if $documented[1] =~ /^rows/;
		push @different, "$name: @values" if "@documented[0 .. 3]" ne join ' ', map { $_ // '' } @values;
	}
	push @gone, keys %settings;

	my %states = map { $_ => 1 } map { /`(\w+)`/g } $chapters{States} =~ /^\| (`[^|]*) \|/mg;
	my @states = map { /^\t"(\w+)",?$/mg }
	  map { /^static const char \*const state_names\[\] = \{\n(.*?)^\};/ms } map { slurp_file($_) } glob('src/*/state.c');
	push @undocumented, grep { !delete $states{$_} } @states;
	push @gone, keys %states;

	is("@undocumented", '', "$page has all functions, columns, settings and states");
	is("@gone", '', "$page has none that is gone");
	is(join("\n", @different), '', "$page has their arguments and defaults");
	return;
}

# The files of the source that the page on how it works names are there.
sub check_files
{
	my ($page) = @_;
	my %named = map { $_ => 1 } slurp_file($page) =~ m{`(?:src/)?(\w+/(?:\w+\.[ch])?|\w+\.[ch])`}g;

	delete $named{'src/'};
	is(join(' ', grep { !-e "src/$_" } sort keys %named), '', "the files that $page names exist");
	return;
}

# The rules that tests cite by number are there.
sub check_rules
{
	my ($page) = @_;
	my ($rules, $options) = split /^## The option$/m, slurp_file($page);
	my %numbers = map { $_ => 1 } $rules =~ /^(\d+)\. /mg, map { "option $_" } $options =~ /^(\d+)\. /mg;
	my %missing;

	foreach my $file (glob 'test/sql/*.sql test/specs/*.spec test/t/*.pl test/citus/*.pl')
	{
		my $text = slurp_file($file);

		$missing{"$1$2"} = $file while $text =~ /\b(option )?rules? (\d+)\b/g;
	}
	delete @missing{ keys %numbers };
	is(join(', ', map { "rule $_ of $missing{$_}" } sort keys %missing), '', "$page has the rules that tests cite");
	return;
}

run_page($_) foreach @pages;
check_pasted($_) foreach @pages;
check_programs('doc/frameworks.md');
check_tests($_) foreach 'doc/guarantees.md', 'doc/security.md';
check_reference('doc/reference.md');
check_rules('doc/semantics.md');
check_files('doc/how-it-works.md');
check_links($_) foreach @pages, 'CONTRIBUTING.md', 'bench/results/README.md';
my ($version) = slurp_file('ttl_index.control') =~ /^default_version = '(.*)'/m;
like(slurp_file('README.md'), qr/version \Q$version\E\b/, 'README.md has the version');
cmp_ok(-s 'README.md', '<=', 8 * 1024, 'README.md is for ten minutes');

done_testing();
