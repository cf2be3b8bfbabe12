"""How Alembic reaches the database: `db.migrate` hands it a connection."""

from alembic import context
from sqlalchemy import Connection

from db.tables import metadata


def run(connection: Connection) -> None:
    """Run the migrations that Alembic's command asks for, each in its own transaction."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        compare_server_default=True,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
