# shellcheck shell=bash
heading="Key inside jsonb documents"
about="As the first; the index is on \`document_date(doc, 'createdAt')\`."
contenders="monitor/2 plain/2 ctid_1000/2"
key="ttl_index.document_date(doc, 'createdAt')"

make_data() {
	copy_data ordered <<-END
		CREATE TABLE document AS SELECT id, ts, jsonb_build_object('_id', id,
				'createdAt', to_char(ts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'payload', payload) AS doc
			FROM event;
		DROP TABLE event;
		ALTER TABLE document RENAME TO event;
		ALTER TABLE event ADD PRIMARY KEY (id);
		CREATE INDEX event_ttl ON event (ttl_index.document_date(doc, 'createdAt'))
			WHERE ttl_index.expire_after_seconds(0);
	END
}
