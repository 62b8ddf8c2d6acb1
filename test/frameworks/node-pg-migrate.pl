# Copyright (c) 2026, ttl_index contributors

# node-pg-migrate, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new_of_node('node-pg-migrate', 'node-pg-migrate');

$app->runs('npx node-pg-migrate up 1');
$app->has_seconds(3600, 'both TTLs are declared');
$app->changes_seconds('npx node-pg-migrate up', 'npx node-pg-migrate down');

$app->runs('npx node-pg-migrate up');
like($app->runs('npx node-pg-migrate up'),
	qr/No migrations to run/, 'a second run does nothing');
$app->has_seconds(7200);

done_testing();
