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
# What the numbers say
#

$node->safe_psql('postgres', 'CREATE DATABASE numbers');
$node->safe_psql(
	'numbers', q{
CREATE EXTENSION ttl_index;
CREATE TABLE parent (id int PRIMARY KEY, at timestamptz) WITH (autovacuum_enabled = off);
CREATE SCHEMA "My";
CREATE TABLE "My"."first child" (id int CONSTRAINT no_index REFERENCES parent);
CREATE TABLE second (a int CONSTRAINT with_index REFERENCES parent, b int CONSTRAINT with_partial_index REFERENCES parent,
	c int CONSTRAINT with_unsuitable_index REFERENCES parent);
CREATE INDEX ON second (a);
CREATE INDEX ON second (b) WHERE b IS NOT NULL;
CREATE INDEX ON second (c) WHERE b IS NOT NULL;
CREATE TABLE along (id int PRIMARY KEY REFERENCES parent ON DELETE CASCADE);
CREATE TABLE last_one (id int CONSTRAINT of_those_deleted_along REFERENCES along);
CREATE TABLE third (p int CONSTRAINT of_partitions REFERENCES parent) PARTITION BY LIST (p);
CREATE TABLE third_1 PARTITION OF third FOR VALUES IN (1);
CREATE TABLE gone (at timestamptz);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE E'first line\nsecond line'; END $$;
CREATE TABLE kept (at timestamptz);
CREATE TRIGGER refuse BEFORE DELETE ON kept FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TABLE silent (at timestamptz);
CREATE TRIGGER keep BEFORE DELETE ON silent FOR EACH ROW EXECUTE FUNCTION keep();
INSERT INTO silent VALUES ('2001-01-01');
INSERT INTO parent SELECT n, '2001-01-01' FROM generate_series(1, 1200) AS n;
INSERT INTO gone SELECT '2001-01-01' FROM generate_series(1, 34);
INSERT INTO kept VALUES ('2001-01-01');
SELECT ttl_index.create_index(t, 'at', 86400) FROM unnest('{parent, gone, kept, silent}'::regclass[]) AS t});
$node->safe_psql('numbers', 'ANALYZE');
$node->safe_psql('numbers', 'CALL ttl_index.run_pass(); DROP TABLE gone');
$node->safe_psql('numbers', q{INSERT INTO parent VALUES (0, now() - interval '1 day 10 s')});
my ($hour, $deleted) = split /\|/, $node->safe_psql('numbers',
	q{SELECT to_char(max(hour), 'YYYY-MM-DD HH24:MI'), sum(deleted_documents) FROM ttl_index.history});
is($deleted, 1234, 'the view has what was deleted, also by an index that is gone');
($out, $err, $status) = report('numbers');
is("$status $err", '0 ', 'a report of it');
like($out, qr{<dt>Deleted in 24 hours</dt><dd>1,234</dd>}, 'the tile has as many');
like($out, qr{Rows deleted by hour: in all: 1,234, at most 1,}, 'so has the chart');
my ($hours) = $out =~ m{<caption class="hidden">Rows deleted by hour</caption>.*?<tbody>(.*?)</tbody>}s;
my @hours = $hours =~ m{<th scope="row">(.*?)</th>}g;
is(scalar @hours, 24, 'with a row for each hour');
is_deeply(\@hours, [ reverse sort @hours ], 'the newest comes first');
like($hours, qr{>\Q$hour\E</th><td class="n">1,\d{3}</td><td class="n">0</td><td class="n">1<}, 'with rows, partitions and errors');
like($out, qr/34 rows of the last 24 hours were deleted by indexes that no longer exist/, 'what the list does not have is told');
like($out, qr{due now: 3; in 7 days: 0<}, 'no more is due than the lag allows, whatever the statistics say');
like($out, qr{<dt>Table</dt><dd>[\d.]+ kB, its indexes [\d.]+ kB; about 1 row and 1,200 dead rows; last vacuum: never<}, 'the table');
like($out, qr{<bdi>first line</bdi><br><bdi>second line</bdi>}, 'an error keeps its lines');
like($out, qr{<h3>1 index with a warning</h3>.*silent_at_ttl.*: <bdi>behind by [\d,]+ d; a trigger keeps the rows}, 'what an active index leaves');
my ($note) = $out =~ m{(<h3>\d+ foreign keys without an index.*?)</section>}s;
is(join(' ', sort $note =~ m{: <bdi>(\w+)</bdi>}g), 'no_index of_partitions of_those_deleted_along with_unsuitable_index', 'foreign keys without an index');
my @commands = map { s/&quot;/"/gr } $note =~ m{<pre [^>]*>(.*?)</pre>}g;
is( join("\n", sort @commands),
	qq{CREATE INDEX CONCURRENTLY ON "My"."first child" (id);\nCREATE INDEX CONCURRENTLY ON public.last_one (id);\nCREATE INDEX CONCURRENTLY ON public.second (c);\nCREATE INDEX ON public.third (p);},
	'and the commands that create them');
$node->safe_psql('numbers', $_) foreach @commands;
unlike((report('numbers'))[0], qr/foreign keys? without an index/, 'which is then no longer said');

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
@commands = $out =~ m{<pre [^>]*>(.*?)</pre>}gs;
is(scalar @commands, 13, 'four commands for each index, and one that ends the pause');
s/&lt;/</g, s/&gt;/>/g, s/&quot;/"/g, s/&amp;/&/g foreach @commands;
$node_sql->(join("\n", 'BEGIN;', @commands, 'ROLLBACK;'));
pass('all commands run');

($out, $err, $status) = report('--watch', 'postgres');
is("$err$status", '0', 'the overview is written once where there is no terminal');
unlike($out, $active, 'without control characters');
is(join("\n", grep { length > 80 } split /\n/, $out), '', 'and in 80 columns');
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
like($out, qr/The lag of 3 indexes is not shown.*nobody_in_particular is not a member of pg_monitor/s, 'which says what it may not see');
unlike($out, qr/Rows that fall due/, 'and does not show it');
($out, $err, $status) = report('-U', 'nobody_in_particular', 'pair');
like($out, qr/<div class="tile "><dt>Need attention</, 'nor is anything green, where it sees nothing wrong');
unlike($out, qr/Nothing needs attention/, 'or said to be well');
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
		skip 'there is no chromium', 1 unless $browser;
		my $dom = dom($out, '--dump-dom');
		my $seen = () = $dom =~ /<details id="index-/g;
		is($seen, $count, 'and so has the browser');
	}
}

SKIP:
{
	skip 'there is no chromium', 26 unless $browser;
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

	# Narrow and wide, light and dark: nothing is beside the screen, or cannot be read.
	local $SIG{ALRM} = sub { die "the browser takes too long\n" };
	alarm 180;
	my $reader = Browser->start($browser, "--user-data-dir=$dir/wide");
	my %back;
	$reader->command('Browser.grantPermissions', permissions => ['clipboardReadWrite']);
	write_file("$dir/page.html", (report('numbers'))[0]);
	foreach my $width (400, 1400)
	{
		foreach my $scheme ('light', 'dark')
		{
			my $seen = $reader->look("file://$dir/page.html", $width, $scheme, <<'END');
document.querySelectorAll("details").forEach(one => { one.open = true; });
new Promise(done => setTimeout(done, 100)).then(async () => {
	// as WCAG has it
	const parts = color => color.match(/[\d.]+/g).map(Number);
	const light = color => {
		const [r, g, b] = parts(color).map(v => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b + .05;
	};
	const back = one => {
		const color = getComputedStyle(one).backgroundColor;
		return parts(color)[3] === 0 ? back(one.parentElement) : color;
	};
	const texts = [...document.querySelectorAll("body *:not(script)")].filter(one => !one.closest(".hidden, svg")
		&& [...one.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.textContent.trim()));
	const contrast = one => [light(getComputedStyle(one).color), light(back(one))].sort((a, b) => b - a);
	const command = document.querySelector(".command");
	command.querySelector("button").click();
	await new Promise(done => setTimeout(done, 100));
	return JSON.stringify({
		beside: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		faint: texts.filter(one => { const [high, low] = contrast(one); return high / low < 4.5; }).map(one => one.textContent),
		back: back(document.body),
		numbers: getComputedStyle(document.querySelector(".row .n")).textAlign,
		buttons: document.querySelectorAll(".command button").length,
		commands: document.querySelectorAll(".command").length,
		copied: await navigator.clipboard.readText(),
		command: command.querySelector("pre").textContent });
})
END
			is($seen->{beside}, 0, "$width pixels, $scheme: the page fits");
			is(join(', ', @{ $seen->{faint} }), '', 'all text can be read');
			is($seen->{numbers}, $width == 400 ? 'left' : 'right', 'numbers are where they belong');
			is("$seen->{buttons} $seen->{commands}", '12 12', 'the script of the page runs: each command has a button');
			is($seen->{copied}, $seen->{command}, 'which copies it');
			$back{$scheme} = $seen->{back};
		}
	}
	isnt($back{light}, $back{dark}, 'light is not dark');
	$reader->stop;
	alarm 0;
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
	is(obstacles((report('numbers'))[0]), '', 'or commands stand beside what is wrong');
	is(obstacles((report('--all', '-d', 'postgres', '-U', 'watcher'))[0]), '', 'or all databases are on the page');
}

$node->stop;
done_testing();
