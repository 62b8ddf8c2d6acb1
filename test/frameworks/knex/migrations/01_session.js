export function up(knex) {
  return knex.schema.createTable("session", (table) => {
    table.bigIncrements("id");
    table.timestamp("last_seen", { useTz: true });
    table.jsonb("doc");
    table.index("last_seen", "session_ttl", {
      predicate: knex.whereRaw("ttl_index.expire_after_seconds(3600)"),
    });
    table.index(knex.raw("(ttl_index.document_date(doc, 'meta', 'createdAt'))"), "session_doc_ttl", {
      predicate: knex.whereRaw("ttl_index.expire_after_seconds(86400)"),
    });
  });
}

export function down(knex) {
  return knex.schema.dropTable("session");
}
