from alembic import context
from sqlalchemy import create_engine

from models import Base


def include_name(name, type_, parent_names):
    return not (type_ == "schema" and name == "ttl_index")


with create_engine("postgresql://").connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_schemas=True,
        include_name=include_name,
    )
    with context.begin_transaction():
        context.run_migrations()
