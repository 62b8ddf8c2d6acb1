import { sql } from "kysely";

export async function up(db) {
  await db.schema
    .createTable("session")
    .addColumn("id", "bigserial", (column) => column.primaryKey())
    .addColumn("last_seen", "timestamptz")
    .addColumn("doc", "jsonb")
    .execute();
  await db.schema
    .createIndex("session_ttl")
    .on("session")
    .column("last_seen")
    .where(sql`ttl_index.expire_after_seconds(3600)`)
    .execute();
  await db.schema
    .createIndex("session_doc_ttl")
    .on("session")
    .expression(sql`ttl_index.document_date(doc, 'meta', 'createdAt')`)
    .where(sql`ttl_index.expire_after_seconds(86400)`)
    .execute();
}

export async function down(db) {
  await db.schema.dropTable("session").execute();
}
