# shellcheck shell=bash
heading="A foreign key that cascades, ten rows for each"
due=$((option[rows] / 40))

attach() {
	cat <<-END
		CREATE TABLE item (event bigint REFERENCES event ON DELETE CASCADE, n int);
		INSERT INTO item SELECT id, n FROM event, generate_series(1, 10) AS n ORDER BY id, n;
		CREATE INDEX ON item (event);
	END
}
