import { sql } from "kysely";

export async function up(db) {
  await sql`SELECT ttl_index.coll_mod_index('session_ttl', 7200)`.execute(db);
}

export async function down(db) {
  await sql`SELECT ttl_index.coll_mod_index('session_ttl', 3600)`.execute(db);
}
