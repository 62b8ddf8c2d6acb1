# Copyright (c) 2026, ttl_index contributors

# An index whose batch had to be canceled does not cost every pass its time: it is
# tried again after 1, 2, 4 ... minutes (rule 23), with small batches, and at once
# by run_pass().

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../perl";
use Faults;
use PostgreSQL::Test::Utils;
use Test::More;
use TtlNode;

my $faults = Faults->new;
my $node = TtlNode->running(
	q{
autovacuum = off
log_statement = none
ttl_index.batch_timeout = '200ms'
}, faults => $faults);

# Each batch is canceled while there is a row in the table of switches.
$node->safe_psql(
	'postgres', q{
CREATE TABLE switches (on_at timestamptz);
CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM public.switches) THEN
		PERFORM pg_sleep(3600);
	END IF;
	RETURN OLD;
END $$;
INSERT INTO switches VALUES (now());
CREATE TABLE hangs (at timestamptz);
INSERT INTO hangs SELECT '2000-01-01' FROM generate_series(1, 1000);
CREATE TRIGGER hang BEFORE DELETE ON hangs FOR EACH ROW EXECUTE FUNCTION hang();
CREATE TABLE sizes (n serial, rows bigint);
CREATE FUNCTION sizes() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.sizes (rows) SELECT count(*) FROM gone; RETURN NULL; END $$;
CREATE TRIGGER sizes AFTER DELETE ON hangs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION sizes();
CREATE INDEX hangs_ttl ON hangs (at) WHERE ttl_index.expire_after_seconds(3600);
});

sub errors_are
{
	my ($count, $name) = @_;

	$node->poll_query_until('postgres',
		"SELECT errors >= $count FROM ttl_index.index_stats WHERE relname = 'hangs'")
	  or die 'the index is not visited';
	$node->wait_for_passes(2);
	is( $node->safe_psql(
			'postgres', q{
SELECT errors, last_error_sqlstate, (SELECT count(*) FROM hangs)
FROM ttl_index.index_stats WHERE relname = 'hangs'}),
		"$count|57014|1000", $name);
	return;
}

my $minute = 1 / 1440;
errors_are(1, 'rule 23: it is not tried again in the next passes');
$faults->clock_ahead(0, $minute * 1.1);
errors_are(2, 'rule 23: but after a minute');
$faults->clock_ahead(0, $minute * 2.2);
errors_are(2, 'rule 23: then not after another minute');
$faults->clock_ahead(0, $minute * 3.5);
errors_are(3, 'rule 23: but after two');

my ($stdout, $stderr);
$node->psql('postgres', 'CALL ttl_index.run_pass()', stderr => \$stderr);
like($stderr, qr/canceled after ttl_index.batch_timeout/,
	'run_pass() does not wait');
$node->safe_psql('postgres', 'TRUNCATE switches');
$faults->clock_ahead(0, $minute * 8);
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM hangs')
  or die 'the rows stay';
is( $node->safe_psql('postgres', 'SELECT rows FROM sizes ORDER BY n LIMIT 1'),
	1,
	'after that the first batch is of one row');
$node->safe_psql('postgres',
	q{INSERT INTO hangs VALUES ('2000-01-01'); CALL ttl_index.run_pass()});
is($node->safe_psql('postgres', 'SELECT count(*) FROM hangs'),
	0, 'all goes once its code behaves');

# The next time it begins with a minute again.
$node->wait_for_passes(2);
$node->safe_psql(
	'postgres', q{
INSERT INTO switches VALUES (now());
INSERT INTO hangs SELECT '2000-01-01' FROM generate_series(1, 1000);
});
errors_are(5, 'rule 23: what hangs once more');
$faults->clock_ahead(0, $minute * 9.2);
errors_are(6, 'rule 23: is tried again after a minute, as at first');
$node->safe_psql('postgres', 'DROP TABLE hangs');

# One that does not let itself be canceled costs the worker its life, as seldom.
$node->safe_psql(
	'postgres', q{
CREATE TABLE refuses (at timestamptz);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	LOOP
		BEGIN
			PERFORM pg_sleep(3600);
		EXCEPTION WHEN query_canceled THEN
			NULL;
		END;
	END LOOP;
END $$;
INSERT INTO refuses VALUES ('2000-01-01');
CREATE TRIGGER refuse BEFORE DELETE ON refuses FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE INDEX refuses_ttl ON refuses (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->poll_query_until('postgres',
	"SELECT errors = 1 FROM ttl_index.index_stats WHERE relname = 'refuses'")
  or die 'the worker does not die';
$node->wait_for_passes(3);
is( $node->safe_psql(
		'postgres',
		"SELECT errors FROM ttl_index.index_stats WHERE relname = 'refuses'"),
	1,
	'rule 23: the same for an index that costs the worker its life');
$node->safe_psql('postgres', 'DROP TABLE refuses');

# A single row that takes too long does not keep those behind it for ever: what was
# canceled is taken one by one, and then the others go.
my $one_hangs = q{
CREATE TABLE one_hangs (id int, at timestamptz);
INSERT INTO one_hangs SELECT i, timestamptz '2000-01-01' + i * interval '1 s' FROM generate_series(1, 500) AS i;
CREATE TRIGGER hang BEFORE DELETE ON one_hangs FOR EACH ROW WHEN (OLD.id = 50) EXECUTE FUNCTION hang();
CREATE INDEX one_hangs_ttl ON one_hangs (at) WHERE ttl_index.expire_after_seconds(3600);
};
my $visits =
  "SELECT errors >= %d FROM ttl_index.index_stats WHERE relname = 'one_hangs'";
$node->safe_psql('postgres', $one_hangs);
$node->poll_query_until('postgres', sprintf($visits, 1))
  or die 'the row does not hang';
$faults->clock_ahead(0, $minute * 10.5);
$node->poll_query_until('postgres', sprintf($visits, 2))
  or die 'the row is not tried again';
$faults->clock_ahead(0, $minute * 13);
$node->becomes('postgres',
	'SELECT array_agg(id) = ARRAY[50] FROM one_hangs',
	'a row that takes too long keeps no others');

# Nor does one that costs the worker its life, each time that it is tried.
$node->safe_psql(
	'postgres', q{
CREATE TABLE one_refuses (id int, at timestamptz);
INSERT INTO one_refuses SELECT i, timestamptz '2000-01-01' + i * interval '1 s' FROM generate_series(1, 500) AS i;
CREATE TRIGGER refuse BEFORE DELETE ON one_refuses FOR EACH ROW WHEN (OLD.id = 50) EXECUTE FUNCTION refuse();
CREATE INDEX one_refuses_ttl ON one_refuses (at) WHERE ttl_index.expire_after_seconds(3600);
});
$visits =
  "SELECT errors >= %d FROM ttl_index.index_stats WHERE relname = 'one_refuses'";
$node->poll_query_until('postgres', sprintf($visits, 1))
  or die 'the worker does not die';
$faults->clock_ahead(0, $minute * 14.2);
$node->poll_query_until('postgres', sprintf($visits, 2))
  or die 'the row is not tried again';
$faults->clock_ahead(0, $minute * 16.4);
$node->becomes('postgres',
	'SELECT array_agg(id) = ARRAY[50] FROM one_refuses',
	'a row that costs the worker its life keeps no others');
$node->safe_psql('postgres', 'DROP TABLE one_refuses');

# Nor does a partition whose rows all take too long keep the other partitions.
$node->safe_psql(
	'postgres', q{
CREATE TABLE parts (at timestamptz, part int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT '2000-01-01', i % 2 + 1 FROM generate_series(1, 100) AS i;
CREATE TRIGGER hang BEFORE DELETE ON parts_1 FOR EACH ROW EXECUTE FUNCTION hang();
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->poll_query_until('postgres',
	"SELECT errors >= 1 FROM ttl_index.index_stats WHERE relname = 'parts'")
  or die 'the partition does not hang';
$faults->clock_ahead(0, $minute * 18);
$node->empties('postgres', 'parts_2',
	'a partition that takes too long keeps no others');
$node->poll_query_until('postgres',
	"SELECT errors >= 2 FROM ttl_index.index_stats WHERE relname = 'parts'")
  or die 'the partition is not tried again';
$faults->clock_at(
	$node->safe_psql(
		'postgres', 'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint'
	));
$node->safe_psql('postgres',
	"INSERT INTO parts SELECT '2000-01-01', 2 FROM generate_series(1, 100)");
$node->empties('postgres', 'parts_2',
	'rule 23: they do not wait until it is tried again');
$faults->clock_at(0);
$node->safe_psql(
	'postgres', q{
DROP TABLE parts;
CREATE TABLE parts (at timestamptz, part int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT '2000-01-01', i FROM generate_series(1, 2) AS i;
CREATE TRIGGER refuse BEFORE DELETE ON parts_1 FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->poll_query_until('postgres',
	"SELECT errors >= 1 FROM ttl_index.index_stats WHERE relname = 'parts'")
  or die 'the worker does not die';
$faults->clock_ahead(0, $minute * 20);
$node->empties('postgres', 'parts_2',
	'nor does one that costs the worker its life');

# Nor do the rows of another partition take the place of those that are taken one by one.
$node->safe_psql(
	'postgres', q{
DROP TABLE parts;
CREATE TABLE parts (id int, at timestamptz, part int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT i, timestamptz '2000-01-01' + i * interval '1 s', 2 FROM generate_series(1, 100) AS i;
CREATE TRIGGER hang BEFORE DELETE ON parts_2 FOR EACH ROW WHEN (OLD.id = 50) EXECUTE FUNCTION hang();
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(3600);
});
my $minutes = 20;
foreach my $visit (1, 2)
{
	$node->poll_query_until('postgres',
		"SELECT errors >= $visit FROM ttl_index.index_stats WHERE relname = 'parts'")
	  or die 'the partition does not hang';
	$node->safe_psql('postgres',
		"INSERT INTO parts_1 SELECT 0, '2000-01-01', 1 FROM generate_series(1, 300)");
	$minutes += $visit + 0.2;
	$faults->clock_ahead(0, $minute * $minutes);
}
$node->becomes('postgres', 'SELECT array_agg(id) = ARRAY[50] FROM parts',
	'a row that takes too long keeps no others of its partition, however many the others get');
$node->safe_psql('postgres', 'DROP TABLE parts');

# However many of its partitions take too long, one that does not gets its turn.
my $hanging = 5;
$node->safe_psql(
	'postgres', qq{
CREATE TABLE parts (at timestamptz, part int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE parts_%1\$s PARTITION OF parts FOR VALUES IN (%1\$s)', i) FROM generate_series(1, $hanging + 1) AS i \\gexec
INSERT INTO parts SELECT '2000-01-01', i FROM generate_series(1, $hanging + 1) AS i;
SELECT format('CREATE TRIGGER hang BEFORE DELETE ON parts_%1\$s FOR EACH ROW EXECUTE FUNCTION hang()', i) FROM generate_series(1, $hanging) AS i \\gexec
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(3600);
});
foreach my $visit (1 .. $hanging)
{
	$node->poll_query_until('postgres',
		"SELECT errors >= $visit FROM ttl_index.index_stats WHERE relname = 'parts'")
	  or die "partition $visit does not hang";
	$minutes += 4.2;
	$faults->clock_ahead(0, $minute * $minutes);
}
$node->becomes('postgres', "SELECT array_agg(part ORDER BY part) = ARRAY[1, 2, 3, 4, 5] FROM parts",
	'several partitions that take too long keep no others for hours');
$node->safe_psql('postgres', 'DROP TABLE parts');

# Dropping a partition can take too long as well.
$node->safe_psql(
	'postgres', q{
CREATE TABLE buckets (at timestamptz) PARTITION BY RANGE (at);
CREATE TABLE buckets_1 PARTITION OF buckets FOR VALUES FROM ('2000-01-01') TO ('2001-01-01');
CREATE FUNCTION hang_drop() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_sleep(3600); END $$;
CREATE EVENT TRIGGER hang_drop ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION hang_drop();
CREATE INDEX buckets_ttl ON buckets (at) WHERE ttl_index.expire_after_seconds(3600) AND ttl_index.drop_expired_partitions();
});
$node->poll_query_until('postgres',
	"SELECT errors >= 1 FROM ttl_index.index_stats WHERE relname = 'buckets'")
  or die 'the partition is dropped';
$node->wait_for_passes(2);
is( $node->safe_psql(
		'postgres', q{
SELECT errors, state FROM ttl_index.index_stats JOIN ttl_index.indexes USING (indexrelid) WHERE relname = 'buckets'}),
	'1|failing',
	'rule 23: the same for a partition that takes too long to drop');
$node->safe_psql('postgres', 'DROP EVENT TRIGGER hang_drop');
$minutes += 1.2;
$faults->clock_ahead(0, $minute * $minutes);
$node->becomes('postgres', "SELECT to_regclass('buckets_1') IS NULL",
	'and it goes once it can');
$node->safe_psql('postgres', 'DROP TABLE buckets');

# So can making one.
$node->safe_psql(
	'postgres', q{
CREATE TABLE series (at timestamptz) PARTITION BY RANGE (at);
SELECT ttl_index.create_time_series('series', 'at', bucket_max_span_seconds => 31536000, expire_after_seconds => 3600);
});
my $last_bucket = q{SELECT max(inhrelid::regclass::text) FROM pg_inherits
WHERE inhparent = 'series'::regclass AND inhrelid::regclass::text ~ '[0-9]'};
my $bucket = $node->safe_psql('postgres', $last_bucket);
$node->safe_psql(
	'postgres', qq{
BEGIN;
DROP TABLE $bucket;
CREATE EVENT TRIGGER hang_make ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION hang_drop();
COMMIT;
});
$node->poll_query_until('postgres',
	"SELECT errors >= 1 FROM ttl_index.index_stats WHERE relname = 'series'")
  or die 'the bucket is made';
$node->wait_for_passes(2);
is( $node->safe_psql('postgres',
		"SELECT errors FROM ttl_index.index_stats WHERE relname = 'series'"),
	1,
	'rule 23: the same for one that takes too long to make');
$node->safe_psql('postgres', 'DROP EVENT TRIGGER hang_make');
$minutes += 1.2;
$faults->clock_ahead(0, $minute * $minutes);
$node->becomes('postgres', "SELECT to_regclass('$bucket') IS NOT NULL",
	'and it is made once it can');
$node->safe_psql('postgres', 'DROP TABLE series');

# Rows of a table that references itself go as one DELETE would take them, and those that a row
# that is not due references stay.  They are tried again after a minute.  No batch of theirs hangs,
# and none may be canceled because the machine is busy.
$node->set('batch_timeout', '30s');
$node->safe_psql(
	'postgres', q{
CREATE TABLE replies (id int PRIMARY KEY, at timestamptz, replies_to int REFERENCES replies);
CREATE INDEX ON replies (replies_to);
INSERT INTO replies SELECT i, timestamptz '2000-01-01' + i * interval '1 s', nullif(i - 1, 0) FROM generate_series(1, 300) AS i;
INSERT INTO replies VALUES (301, 'infinity', 2);
CREATE INDEX replies_ttl ON replies (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->becomes('postgres', "SELECT array_agg(id ORDER BY id) = '{1,2,301}' FROM replies",
	'rows that wait for each other do not wait for the next pass');
$node->safe_psql('postgres', 'DELETE FROM replies WHERE id = 301');
$minutes += 1.2;
$faults->clock_ahead(0, $minute * $minutes);
$node->empties('postgres', 'replies', 'and the others go once they can');
$node->safe_psql('postgres', 'DROP TABLE replies');
$node->set('batch_timeout', '200ms');

# Nor is it tried sooner where a pass lasts, and tries again what else it has left.
$node->set('delete_rate_limit', '10');
$node->safe_psql(
	'postgres', q{
CREATE TABLE much (at timestamptz);
INSERT INTO much SELECT '2000-01-01' FROM generate_series(1, 100000);
CREATE INDEX ON much (at) WHERE ttl_index.expire_after_seconds(3600);
});
$node->poll_query_until('postgres', 'SELECT count(*) < 100000 FROM much')
  or die 'nothing is deleted';
$node->safe_psql(
	'postgres', q{
CREATE TABLE long_hangs (at timestamptz);
INSERT INTO long_hangs SELECT '2000-01-01' FROM generate_series(1, 100);
CREATE TRIGGER hang BEFORE DELETE ON long_hangs FOR EACH ROW EXECUTE FUNCTION hang();
CREATE INDEX ON long_hangs (at) WHERE ttl_index.expire_after_seconds(3600);
});
foreach my $delay (1, 2)
{
	$node->poll_query_until('postgres',
		"SELECT errors >= $delay FROM ttl_index.index_stats WHERE relname = 'long_hangs'")
	  or die 'the index is not tried again in the same pass';
	$minutes += $delay + 0.2;
	$faults->clock_ahead(0, $minute * $minutes);
}
$node->poll_query_until('postgres',
	"SELECT errors >= 3 FROM ttl_index.index_stats WHERE relname = 'long_hangs'")
  or die 'the index is not tried again in the same pass';
# all else is tried again after this minute, and this index after four
$minutes += 1.2;
$faults->clock_ahead(0, $minute * $minutes);
my $sub_passes = $node->safe_psql('postgres', 'SELECT sub_passes FROM ttl_index.stats');
$node->poll_query_until('postgres', "SELECT sub_passes > $sub_passes + 2 FROM ttl_index.stats")
  or die 'the pass does not go on';
$node->safe_psql('postgres', 'TRUNCATE much');
$node->wait_for_passes(3);
is( $node->safe_psql('postgres',
		"SELECT errors FROM ttl_index.index_stats WHERE relname = 'long_hangs'"),
	3,
	'rule 23: also after a pass that lasted, and has tried again what else it left');
$node->set('delete_rate_limit', '0');
$node->safe_psql('postgres', 'DROP TABLE much, long_hangs');

# A session knows nothing of its earlier passes, but can take all rows one by one.
$node->set('monitor_enabled', 'off');
$node->safe_psql('postgres', "DROP TABLE one_hangs; $one_hangs");
$node->psql('postgres', q{
SET ttl_index.batch_target_docs = 1;
SET ttl_index.index_delete_target_time = 0;
CALL ttl_index.run_pass()});
is($node->safe_psql('postgres', 'SELECT array_agg(id) FROM one_hangs'),
	'{50}', 'nor does it in run_pass(), row by row');

# It goes on behind a partition that takes too long, unless its pass gets long by that.
my $parts_hang = q{
CREATE TABLE parts (at timestamptz, part int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT '2000-01-01', i FROM generate_series(1, 2) AS i;
CREATE TRIGGER hang BEFORE DELETE ON parts FOR EACH ROW EXECUTE FUNCTION hang();
CREATE INDEX parts_ttl ON parts (at) WHERE ttl_index.expire_after_seconds(3600);
SELECT ttl_index.stats_reset();
};
$node->safe_psql('postgres', "DROP TABLE one_hangs; $parts_hang");
$node->psql('postgres', q{SET ttl_index.batch_timeout = '1100ms'; CALL ttl_index.run_pass()});
is( $node->safe_psql('postgres', "SELECT errors FROM ttl_index.index_stats WHERE relname = 'parts'"),
	1,
	'run_pass() is not held up by each of many partitions that take too long');

$node->stop;
done_testing();
