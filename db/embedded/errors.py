"""What the embedded server raises."""


class EmbeddedPostgresError(RuntimeError):
    """PostgreSQL cannot be started, joined or stopped here; the message says why, where and what to do."""
