# Copyright (c) 2026, ttl_index contributors

# Rails' migrations and schema.rb, as doc/frameworks.md shows them.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use PostgreSQL::Test::Utils;
use Test::More;

my $app = Framework->new('rails',
	q{ruby -e 'require "active_record"; require "pg"; require "rake"; puts ActiveRecord.version'}
);

$app->runs('rake db:migrate VERSION=1');
$app->has_seconds(3600, 'both TTLs are declared');
$app->changes_seconds('rake db:migrate', 'rake db:rollback');

# What a database shows is dumped as it is: the schema that is loaded from the dump
# gives the same dump.
$app->runs('rake db:migrate');
my $schema = slurp_file("$app->{dir}/db/schema.rb");
like($schema, qr/where: "\(?ttl_index\.expire_after_seconds\(7200\)/,
	'schema.rb has the seconds of the database');
$app->runs('RAILS_ENV=test rake db:create db:schema:load db:schema:dump');
is(slurp_file("$app->{dir}/db/schema.rb"), $schema, 'there is no drift');
is( $app->{node}->safe_psql('app_test',
		q{SELECT count(*) FROM ttl_index.indexes WHERE state = 'active'}),
	2,
	'the test database has both TTLs');

done_testing();
