import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "1"
down_revision = None


def upgrade():
    op.create_table(
        "session",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=True),
        sa.Column("doc", postgresql.JSONB(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "session_ttl",
        "session",
        ["last_seen"],
        postgresql_where=sa.text("ttl_index.expire_after_seconds(3600)"),
    )
    op.create_index(
        "session_doc_ttl",
        "session",
        [sa.text("ttl_index.document_date(doc, VARIADIC ARRAY['meta'::text, 'createdAt'::text])")],
        postgresql_where=sa.text("ttl_index.expire_after_seconds(86400)"),
    )


def downgrade():
    op.drop_table("session")
