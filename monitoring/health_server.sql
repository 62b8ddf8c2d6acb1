/* Checks all databases of this server that have TTL indexes, by the last passes of the
   monitor.  Run it in any database that has the extension.  It names the databases with
   problems; run health.sql there for details. */
SET search_path = pg_catalog, pg_temp;
WITH known AS MATERIALIZED (
  SELECT * FROM ttl_index.databases
), problem(what) AS (
  SELECT datname || ': ' || concat_ws(', ', reason,
    CASE WHEN failing > 0 THEN failing || ' failing' END,
    CASE WHEN not_active > 0 THEN not_active || ' not active' END,
    CASE WHEN behind THEN 'behind by ' || date_trunc('second', worst_lag) END,
    CASE WHEN late THEN coalesce('no pass has ended since ' || last_pass_end, 'no pass has ended yet') END)
  FROM (
    SELECT *, reason IS NULL
      AND greatest(last_pass_start, last_pass_end) < clock_timestamp() - interval '10 minutes'
        - 2 * coalesce(current_setting('ttl_index.monitor_sleep', true), '60s')::interval
      AND NOT EXISTS (SELECT FROM ttl_index.current_op AS o WHERE o.datname = d.datname) AS late,
      worst_lag > interval '1 hour' AND coalesce(pass_time_left >= interval '6 hours', true) AS behind
    FROM known AS d
  ) AS d
  WHERE failing > 0 OR not_active > 0 OR behind OR late OR reason IS NOT NULL
  UNION ALL
  SELECT concat_ws(': ', 'the monitor has visited no database', reason)
  FROM ttl_index.monitor_status()
  WHERE status NOT IN ('monitor', 'standby') AND NOT EXISTS (SELECT FROM known)
)
SELECT count(*) AS result,
  coalesce(string_agg(what, '; ' ORDER BY what),
    CASE WHEN EXISTS (SELECT FROM known) THEN 'all TTL indexes of the server are well'
      ELSE 'the monitor knows of no TTL indexes' END) AS data
FROM problem;
