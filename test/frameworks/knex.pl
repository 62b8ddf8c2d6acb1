# Copyright (c) 2026, ttl_index contributors

# Knex, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new_of_node('knex', 'knex');

$app->runs('npx knex migrate:up');
$app->has_seconds(3600, 'both TTLs are declared');
$app->changes_seconds('npx knex migrate:latest', 'npx knex migrate:down');

$app->runs('npx knex migrate:latest');
like($app->runs('npx knex migrate:latest'),
	qr/Already up to date/, 'a second run does nothing');
$app->has_seconds(7200);

done_testing();
