import { sql } from "drizzle-orm";
import { bigint, index, jsonb, pgTable, timestamp } from "drizzle-orm/pg-core";

export const session = pgTable(
  "session",
  {
    id: bigint({ mode: "number" }).primaryKey(),
    lastSeen: timestamp("last_seen", { withTimezone: true }),
    doc: jsonb(),
  },
  (table) => [
    index("session_ttl")
      .on(table.lastSeen)
      .where(sql`ttl_index.expire_after_seconds(3600)`),
    index("session_doc_ttl")
      .on(sql`ttl_index.document_date(doc, VARIADIC ARRAY['meta'::text, 'createdAt'::text])`)
      .where(sql`ttl_index.expire_after_seconds(86400)`),
  ],
);
