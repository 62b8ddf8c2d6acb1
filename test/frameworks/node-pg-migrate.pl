# Copyright (c) 2026, ttl_index contributors

# node-pg-migrate, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

Framework->new_of_node('node-pg-migrate', 'node-pg-migrate')->migrates(
	first => 'npx node-pg-migrate up 1',
	all => 'npx node-pg-migrate up',
	back => 'npx node-pg-migrate down',
	nothing => qr/No migrations to run/);

done_testing();
