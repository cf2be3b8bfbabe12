"""Column kinds that the tables share, and the names of their constraints."""

from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlmodel import Field, SQLModel

SQLModel.metadata.naming_convention = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}

JSONB: Final = postgresql.JSONB
TEXT_ARRAY: Final = postgresql.ARRAY(sa.Text)


def text_key() -> Any:  # noqa: ANN401 - SQLModel types every Field() as the annotated value
    """Declare a text primary key."""
    return Field(sa_type=sa.Text, primary_key=True)


def text(default: str | None = None, **options: Any) -> Any:  # noqa: ANN401
    """Declare a text column; nullable follows the annotation."""
    if default is not None:
        return Field(sa_type=sa.Text, sa_column_kwargs={"server_default": sa.text(f"'{default}'")}, **options)
    return Field(sa_type=sa.Text, **options)


def reference(column: str, *, on_delete: str = "NO ACTION", **options: Any) -> Any:  # noqa: ANN401
    """Declare a text foreign key."""
    return Field(sa_type=sa.Text, foreign_key=column, ondelete=on_delete, **options)  # type: ignore[call-overload]


def jsonb(default: str | None = "{}", **options: Any) -> Any:  # noqa: ANN401
    """Declare a jsonb column with a default written as JSON."""
    kwargs = {} if default is None else {"server_default": sa.text(f"'{default}'::jsonb")}
    return Field(sa_type=JSONB, sa_column_kwargs=kwargs, **options)


def computed_jsonb(expression: str) -> Any:  # noqa: ANN401
    """Declare a jsonb column that the database keeps computed from others of its row."""
    return Field(sa_column=sa.Column(JSONB, sa.Computed(expression, persisted=True), nullable=False))


def texts() -> Any:  # noqa: ANN401
    """Declare a text array that is empty by default."""
    return Field(sa_type=TEXT_ARRAY, sa_column_kwargs={"server_default": sa.text("'{}'::text[]")})


def flag(*, default: bool = False) -> Any:  # noqa: ANN401
    """Declare a boolean with a default."""
    return Field(sa_column_kwargs={"server_default": sa.true() if default else sa.false()})


def moment(*, now: bool = False, **options: Any) -> Any:  # noqa: ANN401
    """Declare a time with its zone; `now` makes the transaction's time the default."""
    kwargs = {"server_default": sa.func.now()} if now else {}
    return Field(sa_type=sa.DateTime(timezone=True), sa_column_kwargs=kwargs, **options)


def big_key(*, identity: bool = False) -> Any:  # noqa: ANN401
    """Declare a 64-bit primary key, drawn from a sequence when `identity`."""
    drawn = [sa.Identity(always=True)] if identity else []
    return Field(sa_column=sa.Column(sa.BigInteger, *drawn, primary_key=True, autoincrement=identity))


Moment = datetime


def number(default: int) -> Any:  # noqa: ANN401
    """Declare an integer column with a default."""
    return Field(sa_column_kwargs={"server_default": str(default)})


def number_key() -> Any:  # noqa: ANN401
    """Declare an integer that is part of a primary key and that nobody draws."""
    return Field(sa_column=sa.Column(sa.Integer, primary_key=True, autoincrement=False))
