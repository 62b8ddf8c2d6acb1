# Copyright (c) 2026, ttl_index contributors

# Sequelize, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new_of_node('sequelize', 'sequelize');

$app->runs('node sync.js');
$app->has_seconds(3600, 'both TTLs are declared');
my $files = $app->files;
unlike($app->runs('node sync.js', 'it runs again'),
	qr/CREATE INDEX|DROP INDEX/, 'a second run does nothing');

$app->edit('models.js', '3600', '7200');
unlike($app->runs('node sync.js', 'it runs with other seconds'),
	qr/CREATE INDEX|DROP INDEX/, 'changed seconds are not seen');
$app->has_seconds(3600, 'the seconds are the old ones');

# A statement for each deployment
$app->changes_seconds('node ttl.js');
$app->changes_seconds('node ttl.js');
$app->sql('DROP INDEX session_ttl');
$app->runs('node ttl.js', 'it makes an index that is not there');
is( $app->sql(
		q{SELECT expire_after_seconds FROM ttl_index.indexes WHERE key = 'last_seen'}
	),
	7200,
	'which has the seconds');

done_testing();
