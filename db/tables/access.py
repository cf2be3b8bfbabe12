"""Who may use the system."""

from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment


class TenantRow(SQLModel, table=True):
    """The owner of records; no function reads without one."""

    __tablename__ = "tenants"

    id: str = columns.text_key()
    name: str = columns.text(unique=True)
    created_at: Moment = columns.moment(now=True)


class ApiTokenRow(SQLModel, table=True):
    """A bearer token, kept as the SHA-256 of its text: the text is shown once and stored nowhere."""

    __tablename__ = "api_tokens"

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id", index=True)
    name: str = columns.text()
    role: str = columns.text()
    sha256: bytes = Field(unique=True)
    created_at: Moment = columns.moment(now=True)
    expires_at: Moment | None = columns.moment(nullable=True)
    revoked_at: Moment | None = columns.moment(nullable=True)


class StreamTicketRow(SQLModel, table=True):
    """What opens an event stream for a moment in place of a token, kept as the SHA-256 of its text."""

    __tablename__ = "stream_tickets"

    sha256: bytes = Field(primary_key=True)
    token_id: str = columns.reference("api_tokens.id", on_delete="CASCADE")
    expires_at: Moment = columns.moment(index=True)
