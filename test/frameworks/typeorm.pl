# Copyright (c) 2026, ttl_index contributors

# TypeORM, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new_of_node('typeorm', 'typeorm');
my $typeorm = 'npx tsx node_modules/typeorm/cli.js -d data_source.ts';
my $log = "$typeorm schema:log";

# As long as the first migration is all there is
my $second = 'migrations/2-TwoHours.ts';
my $two_hours = $app->remove($second);
$app->runs("$typeorm migration:run");
$app->has_seconds(3600, 'both TTLs are declared');
like($app->runs($log), qr/schema is up to date/, 'there is no drift');
$app->edit('session.ts', '3600', '7200');
like($app->runs($log), qr/schema is up to date/,
	'changed seconds are not seen');

# and with the second
$app->write($second, $two_hours);
$app->changes_seconds("$typeorm migration:run", "$typeorm migration:revert");
like($app->runs($log), qr/schema is up to date/, 'there is no drift again');

# An index on columns that no entity declares would go, one on an expression not.
$app->edit('session.ts',
	q[@Index("session_ttl", ["lastSeen"], { where: "ttl_index.expire_after_seconds(7200)" })], '');
like($app->runs($log), qr/\(1\):.*DROP INDEX "public"."session_ttl"/s,
	'an index that no entity declares would be dropped');

done_testing();
