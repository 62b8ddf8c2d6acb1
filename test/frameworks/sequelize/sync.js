import { sequelize } from "./models.js";

await sequelize.sync();
await sequelize.close();
