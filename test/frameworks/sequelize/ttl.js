import { sequelize } from "./models.js";

await sequelize.query("SELECT ttl_index.create_index('session', 'last_seen', 7200, or_change => true)");
await sequelize.close();
