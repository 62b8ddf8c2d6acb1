/* Checks the TTL indexes of this database.  Returns one row: the number of problems, and
   their descriptions.  For psql (psql -XAtq -f health.sql app), cron and check_postgres: see
   doc/operating.md.  Run it as a member of pg_monitor; it is an error for other roles.  The limits
   are those of alerts.yml: a lag of an hour, unless a running pass will end within 6 hours, and
   ten minutes without a pass.  A paused index is no problem, nor is a database without TTL indexes,
   nor a standby.  search_path is set so that no function of another role is called. */
SET search_path = pg_catalog, pg_temp;
WITH every AS MATERIALIZED (
  SELECT indexrelid, parent_indexrelid, state, reason FROM ttl_index.indexes
), problem(rank, what) AS (
  SELECT 1, concat_ws(': ', 'nothing is deleted', reason)
  FROM every WHERE state = 'no_monitor' AND NOT pg_is_in_recovery() GROUP BY reason
  UNION ALL
  SELECT 2, concat_ws(': ', 'held', min(reason)) FROM every WHERE state = 'held' HAVING count(*) > 0
  UNION ALL
  SELECT 3, 'no pass has ended since ' || last_pass_end
  FROM (
    SELECT greatest(max(s.last_pass_end), max(d.last_pass_end)) AS last_pass_end
    FROM ttl_index.stats AS s LEFT JOIN ttl_index.databases AS d ON d.datname = current_database()
  ) AS pass
  WHERE last_pass_end < clock_timestamp() - interval '10 minutes'
      - 2 * coalesce(current_setting('ttl_index.monitor_sleep', true), '60s')::interval
    AND EXISTS (SELECT FROM every WHERE state = 'active')
    AND NOT EXISTS (SELECT FROM ttl_index.current_op WHERE datname = current_database())
  UNION ALL
  SELECT 4, concat_ws(': ', format('%s is %s', indexrelid, state), reason)
  FROM every WHERE state NOT IN ('active', 'paused', 'held', 'no_monitor')
  UNION ALL
  SELECT 5, format('%s is behind by %s', indexrelid, behind)
  FROM (
    SELECT indexrelid, date_trunc('second', ttl_index.lag(indexrelid)) AS behind
    FROM every WHERE state IN ('active', 'failing') AND parent_indexrelid IS NULL
  ) AS lag
  WHERE behind > interval '1 hour'
    AND NOT EXISTS (SELECT FROM ttl_index.databases AS d, ttl_index.index_stats AS s
      WHERE d.datname = current_database() AND d.pass_time_left < interval '6 hours'
        AND s.indexrelid = lag.indexrelid AND s.last_deleted > clock_timestamp() - interval '5 minutes')
)
SELECT count(*) AS result,
  coalesce(string_agg(what, '; ' ORDER BY rank, what), 'all TTL indexes are well') AS data
FROM problem;
