"""How Alembic reaches the database: `db.migrate` hands it a connection."""

from alembic import context
from sqlalchemy import Connection, text

from db.tables import metadata

_PARTITIONS = "select relname from pg_class where relispartition and relnamespace = current_schema()::regnamespace"


def run(connection: Connection) -> None:
    """Run the migrations that Alembic's command asks for, each in its own transaction."""

    def is_declared(name: str | None, kind: str, _: object) -> bool:
        # Partitions come and go with the log.
        return kind != "table" or name not in set(connection.scalars(text(_PARTITIONS)))

    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        compare_server_default=True,
        include_name=is_declared,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
