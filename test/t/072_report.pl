# Copyright (c) 2026, ttl_index contributors

# ttl_index_report: what is on the page and in the terminal, for whom, and that nothing
# from a database gets out of its place, in a real browser where there is one.

use strict;
use warnings;
use utf8;
use Encode qw(decode_utf8 encode_utf8);
use FindBin;
use IPC::Run ();
use lib "$FindBin::RealBin/../perl";
use Browser;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $node = TtlNode->running(
	q{
log_statement = none
ttl_index.monitor_enabled = off
});
my $program = $node->config_data('--bindir') . '/ttl_index_report';
my ($browser) = grep { -x } map { ("$_/chromium", "$_/chromium-browser") } split /:/, $ENV{PATH};
my $dir = PostgreSQL::Test::Utils::tempdir;

$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;

# Its standard output, standard error and status.
sub report
{
	my (@arguments) = @_;
	my ($out, $err);

	IPC::Run::run([ $program, map { encode_utf8($_) } @arguments ], '<', \'', '>', \$out, '2>', \$err);
	return (decode_utf8($out), $err, $? >> 8);
}

sub write_file
{
	my ($file, $text) = @_;

	open(my $fh, '>:utf8', $file) or die "could not open $file: $!";
	print $fh $text;
	close($fh);
	return;
}

# What the browser has made of a page, as HTML again.  Its script writes what it sees
# into the page before it is written.
sub dom
{
	my ($html, @options) = @_;
	my ($out, $err);

	write_file("$dir/page.html", $html);
	IPC::Run::run([ $browser, '--headless', '--no-sandbox', '--disable-gpu',
			"--user-data-dir=$dir/browser", '--hide-scrollbars', @options, "file://$dir/page.html" ],
		'<', \'', '>', \$out, '2>', \$err, IPC::Run::timeout(180))
	  or diag($err);
	return decode_utf8($out);
}

# Text that could act: control characters but for line breaks and tabs, and those that
# turn the direction of a line.
my $active = qr/[\x00-\x08\x0b-\x1f\x7f-\x9f\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]/;

#
# The program
#

my ($out, $err, $status) = report('--help');
is($status, 0, '--help');
like($out, qr/--watch.*PGSERVICE.*pg_monitor/s, 'it says what there is');
($out, $err, $status) = report('--nonsense');
isnt($status, 0, 'an option that is not there is an error');

$node->safe_psql('postgres', 'CREATE DATABASE plain');
($out, $err, $status) = report('plain');
isnt($status, 0, 'a database without the extension is an error');
like($err, qr/"plain" does not have the extension/, 'which says so');

write_file("$dir/old.html", 'old');
($out, $err, $status) = report('-d', 'missing', '-o', "$dir/old.html");
is($status, 1, 'a database that is not there is an error');
like($err, qr/"missing" does not exist/, 'of psql');
is(slurp_file("$dir/old.html"), 'old', 'and the old page stays');

# The page has to know each state.
my ($states) = slurp_file('doc/reference.md') =~ /^\| state \| meaning (.*?)\n\n/ms;
my %documented = map { $_ => 1 } map { /`(\w+)`/g } $states =~ /^\| (`[^|]*) \|/mg;
my %known = map { $_ => 1 } slurp_file('ttl_index_report') =~ /^\t(\w+) => '/mg;
delete $documented{active};
is_deeply(\%known, \%documented, 'each state of the reference has advice, and no other');

# An index of which no option can be read is shown without one.
$node->safe_psql('postgres', 'CREATE DATABASE unreadable');
$node->safe_psql(
	'unreadable', q{
CREATE EXTENSION ttl_index;
CREATE TABLE t (at timestamptz);
SET session_replication_role = replica;
CREATE INDEX t_ttl ON t (at) WHERE ttl_index.expire_after_seconds(1) AND ttl_index.expire_after_seconds(2)});
($out, $err, $status) = report('unreadable');
is("$status $err", '0 ', 'a malformed option is no error of the page');
like($out, qr/malformed_option/, 'which has its state');

# coll_mod_index() of the second index of a pair would change the main one, to 0 seconds.
$node->safe_psql('postgres', 'CREATE DATABASE pair');
$node->safe_psql(
	'pair', q{
CREATE EXTENSION ttl_index;
CREATE TABLE t (_ts timestamptz, doc jsonb);
INSERT INTO t VALUES ('2001-01-01', '{}');
SELECT ttl_index.create_index('t', '_ts', 3600, document_ttl_field => 'doc.ttl');
ANALYZE t;
CALL ttl_index.run_pass()});
($out, $err, $status) = report('pair');
is("$status $err", '0 ', 'a pair of indexes');
is_deeply([ $out =~ /coll_mod_index\((.*?)\)/g ], [ q{'public.t__ts_ttl', 3600} ], 'only its main index can be changed');
like($out, qr/>1 row in 1 batch,/, 'what was deleted is counted');
like($out, qr/estimated from the last ANALYZE/, 'the page says what the forecast rests on');

#
# Names that want to act
#

my $evil_table = q{<script>document.title='pwned'</script>};
my $evil_index = qq{x'"&<b>\\\x1b[2J\x07\x{202e}};
my $node_sql = sub {
	my ($sql) = @_;
	return $node->safe_psql('postgres', encode_utf8($sql));
};
(my $quoted_index = $evil_index) =~ s/"/""/g;
$node_sql->(
	qq{
CREATE TABLE "$evil_table" (at timestamptz);
INSERT INTO "$evil_table" SELECT '2001-01-01' FROM generate_series(1, 5);
INSERT INTO "$evil_table" SELECT now() + interval '1 hour' * i FROM generate_series(1, 100) AS i;
ANALYZE "$evil_table";
CREATE INDEX "$quoted_index" ON "$evil_table" (at) WHERE ttl_index.expire_after_seconds(0);
CREATE TABLE "o'clock\\" (at timestamptz);
CREATE INDEX "o'clock\\_ttl" ON "o'clock\\" (at) WHERE ttl_index.expire_after_seconds(60);
CREATE TABLE "שלום" (at timestamptz);
CREATE INDEX "שלום_ttl" ON "שלום" (at) WHERE ttl_index.expire_after_seconds(60) AND ttl_index.paused();
});
($out, $err, $status) = report('postgres');
is("$err$status", '0', 'names with all kinds of characters are no error');
unlike($out, $active, 'no control character gets onto the page');
unlike($out, qr/<script>document/, 'nor does an element');
like($out, qr/&lt;script&gt;document/, 'the name does');
like($out, qr/\\x\{001B\}\[2J\\x\{0007\}\\x\{202E\}/, 'and each character, as its code');
like($out, qr/No rows are deleted here \(disabled\)/, 'a monitor that is off asks for attention');
like($out, qr/>paused</, 'an index that is paused is shown');
unlike($out, qr/(?:src|href)="[^#]/, 'the page leads nowhere');

# Each command can be run as it stands on the page.
my @commands = $out =~ m{<pre [^>]*>(.*?)</pre>}gs;
is(scalar @commands, 12, 'four commands for each index');
s/&lt;/</g, s/&gt;/>/g, s/&quot;/"/g, s/&amp;/&/g foreach @commands;
$node_sql->(join("\n", 'BEGIN;', @commands, 'ROLLBACK;'));
pass('all commands run');

($out, $err, $status) = report('--watch', 'postgres');
is("$err$status", '0', 'the overview is written once where there is no terminal');
unlike($out, $active, 'without control characters');
like($out, qr/^no_monitor .* 0 .*script|^no_monitor.*x\\x|^no_monitor .*x'/m, 'and has the index');

# In a terminal, where q ends it: no sequences but its own.
SKIP:
{
	skip 'there is no script(1) of util-linux', 2 unless grep { -x "$_/script" } split /:/, $ENV{PATH};
	my $terminal;
	IPC::Run::run([ 'script', '-qec', "$program --watch=60 postgres", '/dev/null' ],
		'<', \"q", '>', \$terminal, '2>&1', IPC::Run::timeout(60));
	$terminal = decode_utf8($terminal);
	like($terminal, qr/\e\[\?1049h.*STATE.*INDEX.*\e\[\?1049l/s, '--watch takes the terminal and gives it back');
	$terminal =~ s/\e\[(?:\?1049[hl]|\?25[hl]|H|J|K)//g;
	unlike($terminal =~ s/\r\n/\n/gr =~ s/\^?D?\x08//gr =~ s/\r//gr, $active, 'nothing else reaches it');
}

#
# Who sees what, and who waits
#

$node->safe_psql('postgres', q{
CREATE ROLE nobody_in_particular LOGIN;
CREATE ROLE watcher LOGIN IN ROLE pg_monitor});
($out, $err, $status) = report('-U', 'nobody_in_particular', '-d', 'dbname=postgres');
is("$err$status", '0', 'an ordinary role gets a report');
like($out, qr/nobody_in_particular is no member of pg_monitor/, 'which says what it may not see');
unlike($out, qr/Rows that fall due/, 'and does not show it');
($out, $err, $status) = report('-U', 'watcher', 'postgres');
like($out, qr/Rows that fall due.*Rows, about/s, 'a member of pg_monitor sees what falls due');
like($out, qr/Rows deleted by hour/, 'and what was deleted');

my $locker = $node->background_psql('postgres');
$locker->query_safe(encode_utf8(qq{BEGIN; LOCK TABLE "o'clock\\"}));
($out, $err, $status) = report('postgres');
is("$err$status", '0', 'the report waits for no lock');
$locker->quit;

#
# All databases
#

my $evil_database = q{a='b" \\:x'};
$node_sql->('CREATE DATABASE "' . ($evil_database =~ s/"/""/gr) . '"');
$node->safe_psql('postgres', 'CREATE DATABASE closed; REVOKE CONNECT ON DATABASE closed FROM PUBLIC');
($out, $err, $status) = report('--all', '-d', 'postgres', '-U', 'watcher');
is("$err$status", '0', '--all with names of databases that want to be options');
like($out, qr/Without the extension: <bdi>a='b&quot; \\:x', plain</, 'it has been to each');
like($out, qr/may not connect to: <bdi>closed</, 'but for those that are closed');

#
# In a browser
#

foreach my $count (0, 1, 50, 1000)
{
	$node->safe_psql('postgres', "CREATE DATABASE d$count");
	$node->safe_psql("d$count", qq{
SET client_min_messages = warning;
CREATE EXTENSION ttl_index;
DO \$\$ BEGIN
	FOR i IN 1 .. $count LOOP
		EXECUTE format('CREATE TABLE t%1\$s (at timestamptz);
			CREATE INDEX t%1\$s_ttl ON t%1\$s (at) WHERE ttl_index.expire_after_seconds(0)', i);
		COMMIT;
	END LOOP;
END \$\$});
	($out, $err, $status) = report("d$count");
	is("$err$status", '0', "a page of $count indexes");
	my $details = () = $out =~ /<details id="index-/g;
	is($details, $count, 'has them all');

  SKIP:
	{
		skip 'there is no chromium', 2 unless $browser;
		my $dom = dom($out, '--dump-dom');
		my $seen = () = $dom =~ /<details id="index-/g;
		is($seen, $count, 'and so has the browser');
		is($dom =~ /<label>/ ? 1 : 0, $count > 15 ? 1 : 0, 'the script of the page runs: many get a filter');
	}
}

SKIP:
{
	skip 'there is no chromium', 7 unless $browser;
	my ($page) = report('postgres');
	my $dom = dom($page, '--dump-dom');
	my $scripts = () = $dom =~ /<script/g;

	is($scripts, 1, 'there is one script, that of the page');
	like($dom, qr{<title>TTL indexes of database postgres</title>}, 'and none of a name has run');
	like($dom, qr/&lt;script&gt;document/, 'the name is text');

	# Were a name not escaped, its script would be refused.
	my $broken = $page =~ s{&lt;script&gt;}{<script>}gr =~ s{&lt;/script&gt;}{</script>}gr;
	like($broken, qr/<script>document\.title='pwned'/, 'a page with a hole');
	unlike(dom($broken, '--dump-dom'), qr{<title>pwned}, 'runs no other script');

	foreach my $width (500, 1100)
	{
		dom($page, "--screenshot=$dir/$width.png", "--window-size=$width,1200");
		cmp_ok(-s "$dir/$width.png" || 0, '>', 10000, "a picture $width pixels wide");
	}
}

#
# With a screen reader
#

# What is wrong with the accessibility tree of a page.
sub obstacles
{
	my ($html) = @_;
	my ($level, %count, @obstacles) = (0);

	write_file("$dir/page.html", $html);
	local $SIG{ALRM} = sub { die "the browser takes too long\n" };
	alarm 180;
	my $reader = Browser->start($browser, "--user-data-dir=$dir/reader");
	my @nodes = $reader->accessibility_tree("file://$dir/page.html");
	$reader->stop;
	alarm 0;
	foreach my $node (@nodes)
	{
		my $role = $node->{role};

		$count{$role}++;
		push @obstacles, "$role without a name"
		  if $node->{name} !~ /\w/ && ($role =~ /^(?:heading|image|table|link|button|region|searchbox)$/
			|| ($node->{focusable} && $role ne 'generic'));
		next unless $role eq 'heading';
		push @obstacles, "heading of level $node->{level} behind $level: $node->{name}" if $node->{level} > $level + 1;
		$level = $node->{level};
	}
	push @obstacles, map { "no $_" } grep { !$count{$_} } qw(banner main contentinfo status heading);
	push @obstacles, 'no level 1' unless grep { $_->{role} eq 'heading' && $_->{level} == 1 } @nodes;
	return join(', ', @obstacles);
}

SKIP:
{
	skip 'there is no chromium', 4 unless $browser;
	is(obstacles((report('postgres'))[0]), '', 'a screen reader meets names and an order of headings');
	is(obstacles((report('d0'))[0]), '', 'also where there is no index');
	is(obstacles((report('d50'))[0]), '', 'or a filter');
	is(obstacles((report('--all', '-d', 'postgres', '-U', 'watcher'))[0]), '', 'or all databases are on the page');
}

$node->stop;
done_testing();
