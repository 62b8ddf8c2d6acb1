# Copyright (c) 2026, ttl_index contributors

# Kysely, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new_of_node('kysely', 'kysely');

$app->runs('node migrate.js up');
$app->has_seconds(3600, 'both TTLs are declared');
$app->changes_seconds('node migrate.js', 'node migrate.js down');

$app->runs('node migrate.js');
is($app->runs('node migrate.js'), '', 'a second run does nothing');
$app->has_seconds(7200);

done_testing();
