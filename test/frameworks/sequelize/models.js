import { DataTypes, Sequelize } from "sequelize";

export const sequelize = new Sequelize({
  dialect: "postgres",
  host: process.env.PGHOST,
  port: process.env.PGPORT,
  database: process.env.PGDATABASE,
  username: process.env.PGUSER,
});

export const Session = sequelize.define(
  "Session",
  {
    lastSeen: { type: DataTypes.DATE, field: "last_seen" },
    doc: DataTypes.JSONB,
  },
  {
    tableName: "session",
    timestamps: false,
    indexes: [
      {
        name: "session_ttl",
        fields: ["last_seen"],
        where: Sequelize.literal("ttl_index.expire_after_seconds(3600)"),
      },
      {
        name: "session_doc_ttl",
        fields: [Sequelize.literal("(ttl_index.document_date(doc, 'meta', 'createdAt'))")],
        where: Sequelize.literal("ttl_index.expire_after_seconds(86400)"),
      },
    ],
  },
);
