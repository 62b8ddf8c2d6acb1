# Copyright (c) 2026, ttl_index contributors

# SQLAlchemy with Alembic, as doc/frameworks.md shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Framework;
use Test::More;

my $app = Framework->new('alembic',
	q{python -c 'import alembic, psycopg2, sqlalchemy; print(alembic.__version__, sqlalchemy.__version__)'}
);

# What Alembic would change to bring the database to the models.
my $looks = 0;

sub changes
{
	my $look = 'look_' . ++$looks;

	$app->runs("alembic revision --autogenerate --rev-id $look -m look");
	my ($changes) = $app->remove("migrations/versions/${look}_look.py") =~
	  /def upgrade\(\):\n(.*?)\n\n/s;
	return join "\n", grep { !/^#/ } map { s/^\s+//r } split /\n/, $changes;
}

# As long as the first migration is all there is
my $second = 'migrations/versions/2_two_hours.py';
my $two_hours = $app->remove($second);
$app->runs('alembic upgrade head');
$app->has_seconds(3600, 'both TTLs are declared');
is(changes(), 'pass', 'there is no drift');
$app->edit('models.py', '3600', '7200');
is(changes(), 'pass', 'changed seconds are not seen');

# and with the second
$app->write($second, $two_hours);
$app->changes_seconds('alembic upgrade head', 'alembic downgrade -1');

$app->runs('alembic upgrade head');
$app->edit('migrations/env.py', "        include_name=include_name,\n", '');
like(changes(), qr/op\.drop_table\('\w+', schema='ttl_index'\)/,
	"without the filter it would drop the extension's tables");

done_testing();
