from alembic import op

revision = "2"
down_revision = "1"


def upgrade():
    op.execute("SELECT ttl_index.coll_mod_index('session_ttl', 7200)")


def downgrade():
    op.execute("SELECT ttl_index.coll_mod_index('session_ttl', 3600)")
