-- Rows that are due when they come, behind the place where a pass is: it catches up on
-- them, whatever happens in the middle of that (rule 26).
SET client_min_messages = warning;
CREATE SCHEMA late;
SET search_path = late;
CREATE ROLE regress_ttl_late;
GRANT USAGE ON SCHEMA late TO regress_ttl_late;

-- A visit deletes 2000 rows.  Of 3000 rows 1000 are left for the second visit, before which
-- 1900 others come whose dates the first one has passed.  The second visit begins a round
-- of batches over these, and does not get through it, as the index stops being active, or
-- as they are not due for a while.  The pages of the index do not change any more, so a
-- round that counts as complete would leave the rest for good.
SET ttl_index.index_delete_target_docs = 2000;
SET ttl_index.index_delete_target_time = 0;
SET ttl_index.batch_target_docs = 100;
SET ttl_index.batch_target_time = '1h';
CREATE TABLE revoked (ts timestamptz) WITH (autovacuum_enabled = off);
CREATE TABLE shortened (LIKE revoked) WITH (autovacuum_enabled = off);
CREATE TABLE drains (LIKE revoked) WITH (autovacuum_enabled = off);
INSERT INTO revoked SELECT timestamptz '2001-01-01 UTC' + g * interval '1 s' FROM generate_series(1, 3000) AS g;
INSERT INTO shortened TABLE revoked;
INSERT INTO drains SELECT '2001-01-01' FROM generate_series(1, 12000);
ANALYZE drains;
ALTER TABLE revoked OWNER TO regress_ttl_late;
CREATE INDEX revoked_ttl ON revoked (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX shortened_ttl ON shortened (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE INDEX drains_ttl ON drains (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE FUNCTION meanwhile() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	remaining bigint := (SELECT count(*) FROM late.drains);
BEGIN
	IF remaining = 10000 THEN
		INSERT INTO late.revoked SELECT timestamptz '2001-01-01 UTC' + g * interval '1 s' FROM generate_series(1, 1900) AS g;
		INSERT INTO late.shortened SELECT timestamptz '2001-01-01 UTC' + g * interval '1 s' FROM generate_series(1, 1900) AS g;
	ELSIF remaining = 8000 THEN
		-- not active in the third visit
		REVOKE DELETE ON late.revoked FROM regress_ttl_late;
		PERFORM ttl_index.coll_mod_index('late.shortened_ttl', 3600);
	ELSIF remaining = 6000 THEN
		GRANT DELETE ON late.revoked TO regress_ttl_late;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER meanwhile AFTER DELETE ON drains EXECUTE FUNCTION meanwhile();
CREATE FUNCTION lengthen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	-- the first batch of the round: until the next visit, the other rows are not due
	IF (SELECT count(*) FROM late.drains) = 10000 AND (SELECT count(*) FROM late.shortened) = 1800 THEN
		PERFORM ttl_index.coll_mod_index('late.shortened_ttl', extract(epoch FROM now() - '2001-01-01 UTC')::int - 60);
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER lengthen AFTER DELETE ON shortened EXECUTE FUNCTION lengthen();
CALL ttl_index.run_pass();
SELECT (SELECT count(*) FROM revoked) AS revoked, (SELECT count(*) FROM shortened) AS shortened;
SELECT relname, visits FROM ttl_index.index_stats WHERE relname IN ('revoked', 'shortened', 'drains') ORDER BY 1;
DROP TABLE revoked, shortened, drains;
RESET ttl_index.index_delete_target_docs;

-- In the order of the heap a row is not missed if a HOT update moves it to the front of its
-- block: the row behind the last one of each batch, where line pointers in front are free.
SET ttl_index.batch_target_docs = 1000;
CREATE TABLE shuffled (id int, ts timestamptz, version int) WITH (autovacuum_enabled = off);
INSERT INTO shuffled SELECT g, timestamptz '2001-01-01 UTC' + hashint4(g) * interval '1 ms', 0 FROM generate_series(1, 20000) AS g;
DELETE FROM shuffled WHERE id % 2 = 0;
VACUUM ANALYZE shuffled;
CREATE INDEX shuffled_ttl ON shuffled (ts) WHERE ttl_index.expire_after_seconds(3600);
CREATE TABLE moved (line smallint, old_line smallint, same_block bool);
CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	next int := (SELECT max(id) + 2 FROM gone);
	old_place tid := (SELECT ctid FROM late.shuffled WHERE id = next);
	place tid;
BEGIN
	UPDATE late.shuffled SET version = version + 1 WHERE id = next RETURNING ctid INTO place;
	INSERT INTO late.moved SELECT (place::text::point)[1], (old_place::text::point)[1], (place::text::point)[0] = (old_place::text::point)[0];
	RETURN NULL;
END $$;
CREATE TRIGGER move AFTER DELETE ON shuffled REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION move();
CALL ttl_index.run_pass();
SELECT count(*) FROM shuffled;
SELECT count(*) > 5 AS often FROM moved WHERE same_block AND line < old_line;
DROP TABLE shuffled, moved;
DROP SCHEMA late CASCADE;
DROP ROLE regress_ttl_late;
