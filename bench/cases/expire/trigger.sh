# shellcheck shell=bash
heading="A trigger on DELETE"
about="As the first, with a trigger AFTER DELETE FOR EACH STATEMENT that does nothing: ttl_index deletes through SQL. A trigger that did something would hide the difference."
contenders="ttl plain ctid_1000 ctid_10000 skip_1000"

make_data() {
	copy_data ordered <<-'END'
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER nothing AFTER DELETE ON event EXECUTE FUNCTION nothing();
	END
}
