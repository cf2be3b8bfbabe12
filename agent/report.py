"""One report, from hello to applied: what both `once` and every round of `run` are made of."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from agent.batches import in_batches
from agent.client import Client
from agent.failures import AgentFailure, NotApplied, Refused
from agent.inventory import Inventory
from agent.wire import Greeting, Hello, NodeStatus, Sections, SlotError, StatusState
from domain.errors import Code

POLL_SECONDS_MIN: Final = 0.05
POLL_SECONDS_MAX: Final = 1.0
_POLL_GROWTH: Final = 1.5

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


class Reported(msgspec.Struct, frozen=True, rename="camel"):
    """An inventory that the server has applied."""

    node_id: str
    snapshot_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The server has not applied the inventory yet."""

    why: str


@dataclass(frozen=True, slots=True)
class ApplyFailed:
    """The server cannot apply the inventory."""

    why: str


async def report_once(  # noqa: PLR0913 - the clock and the sleep are the caller's
    client: Client, hello: Hello, inventory: Inventory, *, seconds_max: float, clock: Clock, sleep: Sleep
) -> Reported:
    """Report an inventory and wait until it is applied.

    Raises NotApplied when that fails or takes more than `seconds_max` seconds, and what the client raises.
    """
    greeting = await introduce(client, hello, inventory)
    await send_sections(client, greeting.node.id, inventory, greeting.request_sections)
    return await wait_until_applied(
        client, greeting.node.id, inventory.digest, seconds_max=seconds_max, clock=clock, sleep=sleep
    )


async def introduce(client: Client, hello: Hello, inventory: Inventory) -> Greeting:
    """Say hello with the inventory's hashes."""
    return await client.hello(msgspec.structs.replace(hello, hashes=inventory.hashes))


async def send_sections(client: Client, node_id: str, inventory: Inventory, names: Sequence[str]) -> None:
    """Send the sections that the server asked for; raises Refused when it does not take them."""
    entry = Sections(node_id=node_id, sections=inventory.pick(tuple(names)))
    for batch in in_batches([entry]):
        for answer in await client.ingest(batch):
            if answer.error is not None:
                raise refused_slot(answer.error)


async def wait_until_applied(  # noqa: PLR0913 - the clock and the sleep are the caller's
    client: Client, node_id: str, digest: str, *, seconds_max: float, clock: Clock, sleep: Sleep
) -> Reported:
    """Ask for the node's status until the digest is applied."""
    until = clock() + seconds_max
    pause = POLL_SECONDS_MIN
    why = "no answer yet"
    while True:
        try:
            (status,) = await client.statuses([node_id])
        except AgentFailure as failure:
            # The sections are stored: a server that restarts goes on with them.
            if not failure.transient:
                raise
            why = str(failure)
        else:
            match judge(node_id, status, digest):
                case Reported() as reported:
                    return reported
                case ApplyFailed(why=reason):
                    raise NotApplied(f"the server cannot apply this inventory: {reason}")
                case Waiting(why=reason):
                    why = reason
        if clock() + pause > until:
            raise NotApplied(f"not applied within {seconds_max:g} s: {why}")
        await sleep(pause)
        pause = min(pause * _POLL_GROWTH, POLL_SECONDS_MAX)


def judge(node_id: str, status: NodeStatus, digest: str) -> Reported | Waiting | ApplyFailed:
    """Say whether the inventory of that digest is the one the server works with."""
    inventory, snapshot = status.inventory_status, status.latest_snapshot
    settled = inventory.state in {StatusState.APPLIED, StatusState.ADVISORY}
    # The inventory of a node that is not trusted is applied as advisory, and says so in its digest.
    applied = (inventory.applied_digest or "").removeprefix("advisory:") == digest
    if settled and applied and snapshot is not None and snapshot.digest == digest:
        return Reported(node_id=node_id, snapshot_id=snapshot.id, digest=digest)
    if inventory.state is StatusState.FAILED and inventory.reported_digest == digest:
        return ApplyFailed(inventory.error or "it does not say why")
    if inventory.reported_digest not in {None, digest}:
        return Waiting("another report of this node came after this one; do two agents share its identity?")
    missing = f", waiting for sections {', '.join(inventory.missing_sections)}" if inventory.missing_sections else ""
    return Waiting(f"the inventory is {inventory.state.value.lower()}{missing}")


def refused_slot(error: SlotError) -> Refused:
    """Turn the error of a batch's slot into the failure it is."""
    code = Code(error.code) if error.code in set(Code) else None
    return Refused(error.message, code, error.retry_after_seconds)
