import { MigrationInterface, QueryRunner } from "typeorm";

export class TwoHours1700000000002 implements MigrationInterface {
  async up(runner: QueryRunner) {
    await runner.query("SELECT ttl_index.coll_mod_index('session_ttl', 7200)");
  }

  async down(runner: QueryRunner) {
    await runner.query("SELECT ttl_index.coll_mod_index('session_ttl', 3600)");
  }
}
