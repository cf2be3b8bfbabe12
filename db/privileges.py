"""What the server may do in its own database: the role that its connections take, which cannot change history.

docs/decisions/0012 says why. The owner of the tables migrates, and gives the role what it needs each time.
"""

from typing import Final

import asyncpg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from db.tables import metadata

APPLICATION_ROLE: Final = "fleetgraph_app"
"""One for all databases of a PostgreSQL server; what it may do is granted in each."""
_REFUSALS: Final = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidParameterValueError,
    asyncpg.UndefinedObjectError,
)

_ALL: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})
_APPENDED: Final = frozenset({"SELECT", "INSERT"})
_EXCEPTIONS: Final = {
    "events": _APPENDED,
    "inventory_snapshots": _APPENDED,
    # The bytes that snapshots are made of.
    "inventory_sections": _APPENDED,
    # What belongs to a node goes with its row, as the owner of the tables: snapshots, too.
    "nodes": _ALL - {"DELETE"},
    "tenants": _ALL - {"DELETE"},
    "feed_head": frozenset({"SELECT", "UPDATE"}),
    "event_partitions": frozenset({"SELECT"}),
    "alembic_version": frozenset({"SELECT"}),
}
WANTED: Final = frozenset(
    (table, privilege)
    for table, privileges in (dict.fromkeys(metadata.tables, _ALL) | _EXCEPTIONS).items()
    for privilege in privileges
)

# A role that another database's start makes at the same time is made.
_MAKE: Final = """
do $$ begin
    if to_regrole('{role}') is null then
        create role {role} nologin;
        grant {role} to current_user;
    end if;
exception when insufficient_privilege or duplicate_object or unique_violation then
    null;
end $$
"""
_HAS: Final = """
select c.relname, a.privilege_type from pg_class c cross join aclexplode(c.relacl) a
where c.relnamespace = current_schema()::regnamespace and a.grantee = to_regrole(:role)
"""
_REST: Final = """
do $$ begin
    execute format('grant usage on schema %I to {role}', current_schema());
    grant execute on function make_event_partition(bigint), drop_event_partitions(timestamptz) to {role};
end $$
"""


def prepare_role(connection: Connection) -> str | None:
    """Make the role and give it what it needs, and no more; returns it where the connection's user may take it.

    None where the user may not, or may not give: then an administrator has to, or the server works as the user.
    """
    role = APPLICATION_ROLE
    connection.execute(text(_MAKE.format(role=role)))
    try:
        with connection.begin_nested():
            _grant(connection, role)
        with connection.begin_nested() as tried:
            connection.execute(text(f"set local role {role}"))
            tried.rollback()
    except DBAPIError as error:
        if isinstance(error.orig and error.orig.__cause__, _REFUSALS):
            return None
        raise
    return role


def _grant(connection: Connection, role: str) -> None:
    has = {(row.relname, row.privilege_type) for row in connection.execute(text(_HAS), {"role": role})}
    if has == WANTED:
        return
    for table, privilege in sorted(WANTED - has):
        connection.execute(text(f'grant {privilege} on "{table}" to {role}'))
    for table, privilege in sorted(has - WANTED):
        connection.execute(text(f'revoke {privilege} on "{table}" from {role}'))
    connection.execute(text(_REST.format(role=role)))
