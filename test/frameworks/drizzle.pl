# Copyright (c) 2026, ttl_index contributors

# Drizzle, by push and by migrations, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use PostgreSQL::Test::Utils;
use Test::More;

my $app = Framework->new_of_node('drizzle', 'drizzle-orm');
my $push = 'npx drizzle-kit push --force';

# push compares the schema with the database.
$app->runs($push);
$app->has_seconds(3600, 'both TTLs are declared');
like($app->runs($push), qr/No changes detected/, 'there is no drift');
$app->edit('schema.ts', '3600', '7200');
like($app->runs($push), qr/No changes detected/,
	'changed seconds are not seen');
$app->has_seconds(3600, 'the seconds are the old ones');
$app->sql('SET ROLE app; CREATE INDEX other_ttl ON session (last_seen)');
$app->runs($push);
unlike($app->files, qr/other_ttl/,
	'an index that the schema does not have is dropped');
$app->edit('schema.ts', '7200', '3600');

# generate compares it with what was generated last.
$app->sql('DROP TABLE session');
$app->runs('npx drizzle-kit generate --name session');
$app->runs('npx drizzle-kit migrate');
$app->has_seconds(3600, 'both TTLs are declared by a migration');
$app->edit('schema.ts', '3600', '7200');
$app->runs('npx drizzle-kit generate --name two_hours');
my $generated = 'migrations/0001_two_hours.sql';
like(slurp_file("$app->{dir}/$generated"),
	qr/DROP INDEX "session_ttl".*CREATE INDEX "session_ttl"/s,
	'changed seconds are seen in a migration');
$app->write($generated, $app->remove('two_hours.sql'));
$app->changes_seconds('npx drizzle-kit migrate');
like($app->runs('npx drizzle-kit generate'),
	qr/No schema changes/, 'there is no drift');

done_testing();
