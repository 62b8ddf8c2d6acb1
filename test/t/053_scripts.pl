# Copyright (c) 2026, ttl_index contributors

# What script/test says beside the output of its suites: that it runs, and what was skipped.

use strict;
use warnings;
use File::Temp;
use Test::More;

my $dir = File::Temp->newdir;

# Runs commands of bash after those of script/lib.sh.
sub run_bash
{
	my ($commands) = @_;
	my $script = "$dir/commands";

	open my $file, '>', $script or die "$script: $!";
	print $file "set -euo pipefail\n. script/lib.sh\n$commands\n";
	close $file;
	return scalar `bash $script 2>&1`;
}

# the output of prove -v --timer, of pg_regress, and of a file that skips some tests
open my $log, '>', "$dir/log" or die "$dir/log: $!";
print $log <<'END';
test keys                         ... ok         1012 ms
[03:16:21] test/citus/moves.pl ............. skipped: Citus is not installed
[03:16:21] test/citus/shards.pl ............ skipped: Citus is not installed
[03:16:22] test/frameworks/knex.pl ......... skipped: Knex is not installed
[03:16:22] test/t/006_cron.pl .............. skipped: pg_cron is not installed
[03:16:23] test/t/072_report.pl ............
ok 1 - a page is written
ok 2 # skip there is no chromium
ok 3 # skip there is no chromium
ok 4 # SKIP there is no chromium
ok
[03:16:24] test/t/041_partman.pl ........... skipped: pg_partman is not installed
END
close $log;

is(run_bash("skips_in $dir/log | say_skipped"), <<'END', 'what was skipped is summed up in four lines');
## skipped 3: there is no chromium (072_report)
## skipped 2: Citus is not installed (moves, shards)
## skipped 1: Knex is not installed (knex)
## skipped 2: pg_cron is not installed (006_cron); pg_partman is not installed (041_partman)
END
is(run_bash("printf '\\nisolation\\tnot there\\n\\n' | say_skipped"),
	"## skipped 1: not there (isolation)\n", 'or in fewer');

# ends when it has said so twice, or when the test is killed by its harness
like(run_bash("say_alive $dir/log 0.1 > >(head -n 2) & wait \$!"),
	qr/\A(?:## running for 0 min \d+ s\n){2}\z/, 'in a silence the script says that it runs');

done_testing();
