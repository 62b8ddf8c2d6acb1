# shellcheck shell=bash
group=sql
heading="A row trigger on DELETE"
about="As the first, with a trigger BEFORE DELETE FOR EACH ROW that does nothing: one that did something would hide the difference."
contenders="monitor/3 plain/3 ctid_10000/3"
due=$((option[rows] / 2))
live=$((option[rows] / 2))

make_data() {
	make_events
	in_template "$case_name" <<-'END'
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
		CREATE TRIGGER nothing BEFORE DELETE ON event FOR EACH ROW EXECUTE FUNCTION nothing();
	END
}
