# Copyright (c) 2026, ttl_index contributors

# Kysely, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

Framework->new_of_node('kysely', 'kysely')->migrates(
	first => 'node migrate.js up',
	all => 'node migrate.js',
	back => 'node migrate.js down',
	nothing => qr/^\z/);

done_testing();
