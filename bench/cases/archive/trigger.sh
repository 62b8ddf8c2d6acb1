# shellcheck shell=bash
heading="a trigger on the table that rows leave"
# shellcheck disable=SC2034 # for make_events
attach='CREATE FUNCTION let() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
	CREATE TRIGGER let BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION let();'
