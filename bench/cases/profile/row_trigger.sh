# shellcheck shell=bash
heading="A row trigger that does nothing"

attach() {
	cat <<-'END'
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
		CREATE TRIGGER nothing BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION nothing();
	END
}
