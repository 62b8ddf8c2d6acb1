# shellcheck shell=bash disable=SC2034
heading="1 TTL index of $(number "$count") partitions"
contenders="pass views"

prepare() {
	say "making $count partitions"
	as_user "$bindir/createdb" -T template0 --strategy=file_copy "$case_name"
	sql -d "$case_name" -o /dev/null -f - <<-END
		CREATE EXTENSION ttl_index;
		CREATE TABLE t (ts timestamptz) PARTITION BY RANGE (ts);
		SELECT format('CREATE TABLE t_%s PARTITION OF t FOR VALUES FROM (%L) TO (%L)', i, at, at + interval '1 day')
			FROM generate_series(1, $count) AS i, LATERAL (SELECT timestamptz '2100-01-01 00:00Z' + i * interval '1 day') AS p (at) \gexec
		INSERT INTO t SELECT timestamptz '2100-01-01 12:00Z' + i * interval '1 day' FROM generate_series(1, $count) AS i;
		CREATE INDEX ON t (ts) WHERE ttl_index.expire_after_seconds(0);
		VACUUM ANALYZE;
		CHECKPOINT;
	END
}
