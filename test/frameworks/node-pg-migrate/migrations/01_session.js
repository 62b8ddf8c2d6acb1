export function up(pgm) {
  pgm.createTable("session", {
    id: "id",
    last_seen: "timestamptz",
    doc: "jsonb",
  });
  pgm.createIndex("session", "last_seen", {
    name: "session_ttl",
    where: "ttl_index.expire_after_seconds(3600)",
  });
  pgm.createIndex("session", "(ttl_index.document_date(doc, 'meta', 'createdAt'))", {
    name: "session_doc_ttl",
    where: "ttl_index.expire_after_seconds(86400)",
  });
}
