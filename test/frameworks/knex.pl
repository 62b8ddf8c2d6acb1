# Copyright (c) 2026, ttl_index contributors

# Knex, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

Framework->new_of_node('knex', 'knex')->migrates(
	first => 'npx knex migrate:up',
	all => 'npx knex migrate:latest',
	back => 'npx knex migrate:down',
	nothing => qr/Already up to date/);

done_testing();
