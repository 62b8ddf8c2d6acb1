import { DataSource } from "typeorm";
import { Session } from "./session.js";

export default new DataSource({
  type: "postgres",
  url: process.env.DATABASE_URL,
  entities: [Session],
  migrations: ["migrations/*.ts"],
});
