import { MigrationInterface, QueryRunner } from "typeorm";

export class Session1700000000001 implements MigrationInterface {
  async up(runner: QueryRunner) {
    await runner.query(`CREATE TABLE "session" ("id" BIGSERIAL NOT NULL, "last_seen" TIMESTAMP WITH TIME ZONE,
      "doc" jsonb, CONSTRAINT "PK_f55da76ac1c3ac420f444d2ff11" PRIMARY KEY ("id"))`);
    await runner.query(`CREATE INDEX "session_ttl" ON "session" ("last_seen")
      WHERE ttl_index.expire_after_seconds(3600)`);
    await runner.query(`CREATE INDEX "session_doc_ttl" ON "session"
      (ttl_index.document_date(doc, 'meta', 'createdAt')) WHERE ttl_index.expire_after_seconds(86400)`);
  }

  async down(runner: QueryRunner) {
    await runner.query(`DROP TABLE "session"`);
  }
}
