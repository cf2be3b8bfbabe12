"""The three sides: each one server process on a database of its own, where the same events are committed."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import psutil

from bench.feeding.subscriber import Target
from bench.reading import peer
from bench.stand.processes import free_port, running, wait_until_listening
from db.access import ensure_tenant
from db.database import Database
from db.identifiers import new_id
from db.migrate import migrate
from db.nodes import Arrival, Hello, register
from domain.ids import NodeId, TenantId
from domain.node import provision_state_at_join
from web.first_start import TENANT_NAME

POOL_SIZE: Final = 8
CHANNEL: Final = "bench_feed"
TOKEN: Final = "operator-of-the-bench"  # noqa: S105 - of a server that lives as long as the bench
_ROOT: Final = Path(__file__).parents[2]
_FIELDS: Final = "id cursor type at nodeId condition status reason"
_OURS: Final = f"subscription($after: Cursor) {{ event: nodeConditionChanged(after: $after) {{ {_FIELDS} }} }}"
_THEIRS: Final = f"subscription {{ event {{ {_FIELDS} }} }}"
# What a trigger tells a channel is how both peers learn of a commit; a cursor they have none, and send the like of it.
_TOLD: Final = f"""
create schema peer;
create function peer.tell() returns trigger language plpgsql as $$
begin
    perform pg_notify('{CHANNEL}', json_build_object(
        'id', new.id, 'cursor', new.sequence::text, 'type', new.type, 'at', new.at, 'node_id', new.node_id,
        'condition', new.payload ->> 'condition', 'status', upper(new.payload ->> 'status'),
        'reason', new.payload ->> 'reason')::text);
    return null;
end $$;
create trigger tell after insert on outbox for each row execute function peer.tell();
"""


class Kind(StrEnum):
    """Who serves."""

    OURS = "ours"
    BROADCASTER = "broadcaster"
    POSTGRAPHILE = "postgraphile"


@dataclass(frozen=True, slots=True)
class Fleet:
    """A database with one tenant and one node."""

    dsn: str
    tenant_id: TenantId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class Side:
    """A running server, and where it is subscribed to."""

    kind: Kind
    process: psutil.Process
    target: Target
    fleet: Fleet

    def rss_mib(self) -> float:
        """Return its resident memory."""
        return float(self.process.memory_info().rss) / 2**20

    def arguments(self, document: str | None = None) -> dict[str, str | int]:
        """Return the target of a subscriber, with another document when one is given."""
        return {**asdict(self.target), **({"document": document} if document else {})}


def make_fleet(dsn: str, kind: Kind) -> Fleet:
    """Bring a new database up to date, with what the kind of side needs."""
    return asyncio.run(_made(dsn, kind))


@contextmanager
def serving(kind: Kind, fleet: Fleet, folder: Path) -> Iterator[Side]:
    """Run a side's server while the block lasts; raises CannotMeasure when it does not start."""
    port = free_port()
    command, env = _how(kind, fleet, port)
    log = folder / f"{kind}-{port}.log"
    with running(command, log, env, _ROOT, stop_seconds_max=1) as process:
        wait_until_listening(process, port, log)
        document = _OURS if kind is Kind.OURS else _THEIRS
        yield Side(kind, process, Target("127.0.0.1", port, "/graphql", TOKEN, document), fleet)


async def _made(dsn: str, kind: Kind) -> Fleet:
    await migrate(dsn)
    database = await Database.connect(dsn, size_max=2)
    try:
        async with database.transaction() as tx:
            tenant_id = await ensure_tenant(tx, TenantId(new_id("tenant")), TENANT_NAME)
            arrival = Arrival(new_id("sess"), NodeId(new_id("node")), provision_state_at_join(checks=0))
            node_id = await register(tx, tenant_id, _HELLO, arrival)
            if kind is not Kind.OURS:
                await tx.execute(_TOLD)
    finally:
        await database.close()
    return Fleet(dsn, tenant_id, node_id)


_HELLO: Final = Hello(
    identity_key="11111111-2222-5333-8444-555555555555",
    hostname="bench",
    display_name=None,
    management_address=None,
    agent_version="bench",
    protocol="1",
    features=(),
    boot_id=None,
)


def _how(kind: Kind, fleet: Fleet, port: int) -> tuple[tuple[str | Path, ...], Mapping[str, str]]:
    given = {"DATABASE_URL": fleet.dsn, "POOL_SIZE": str(POOL_SIZE), "PORT": str(port), "CHANNEL": CHANNEL}
    match kind:
        case Kind.OURS:
            return (Path(sys.executable).with_name("fleetgraph"), "serve"), {
                "DATABASE_URL": fleet.dsn,
                "FLEETGRAPH_POOL_SIZE": str(POOL_SIZE),
                "FLEETGRAPH_PORT": str(port),
                "FLEETGRAPH_OPERATOR_TOKEN": TOKEN,
                "FLEETGRAPH_LOG_LEVEL": "warning",
                "BROADCAST_URL": fleet.dsn,
            }
        case Kind.BROADCASTER:
            return (sys.executable, "-m", "bench.feeding.broadcaster"), given
        case Kind.POSTGRAPHILE:
            node, _ = peer.command()
            return (node, peer.FOLDER / "feed.mjs"), {**given, "NODE_ENV": "production", "GRAPHILE_ENV": "production"}
