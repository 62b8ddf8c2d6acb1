import { promises as fs } from "node:fs";
import path from "node:path";
import { FileMigrationProvider, Kysely, Migrator, PostgresDialect } from "kysely";
import pg from "pg";

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
const migrator = new Migrator({
  db,
  provider: new FileMigrationProvider({ fs, path, migrationFolder: path.resolve("migrations") }),
});
const steps = { up: "migrateUp", down: "migrateDown", undefined: "migrateToLatest" };
const { error, results } = await migrator[steps[process.argv[2]]]();

for (const { direction, migrationName, status } of results ?? []) {
  console.log(`${direction} ${migrationName}: ${status}`);
}
await db.destroy();
if (error) throw error;
