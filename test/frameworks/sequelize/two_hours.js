import { sequelize } from "./models.js";

await sequelize.query("SELECT ttl_index.coll_mod_index('session_ttl', 7200)");
await sequelize.close();
