"""Alembic migrations of the tables in `db.tables`."""
