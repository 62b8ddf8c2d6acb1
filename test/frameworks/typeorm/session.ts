import { Column, Entity, Index, PrimaryGeneratedColumn } from "typeorm";

@Entity()
@Index("session_ttl", ["lastSeen"], { where: "ttl_index.expire_after_seconds(3600)" })
export class Session {
  @PrimaryGeneratedColumn({ type: "bigint" })
  id!: string;

  @Column("timestamptz", { name: "last_seen", nullable: true })
  lastSeen?: Date;

  @Column("jsonb", { nullable: true })
  doc?: object;
}
