# Copyright (c) 2026, ttl_index contributors

# Django, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new('django',
	q{python -c 'import django, psycopg2; print(django.__version__)'});

# As long as the first migration is all there is
my $second = 'app/migrations/0002_two_hours.py';
my $two_hours = $app->remove($second);
$app->runs('python manage.py migrate');
$app->has_seconds(3600, 'both TTLs are declared');
$app->runs('python manage.py makemigrations --check', 'there is no drift');

# Django itself would build the index again.
$app->edit('app/models.py', '3600', '7200');
like($app->runs('python manage.py makemigrations --dry-run'),
	qr/Remove index session_ttl.*Create index session_ttl/s,
	'changed seconds are seen');

# and with the second
$app->write($second, $two_hours);
$app->runs('python manage.py makemigrations --check', 'there is no drift again');
$app->changes_seconds('python manage.py migrate',
	'python manage.py migrate app 0001');

# The test asks for the setting and makes a pass of its own.
$app->runs('python manage.py test');

done_testing();
