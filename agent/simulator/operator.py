"""The operator of the demo, through the public API: pools, a job, and decisions about machines."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from agent.client import Client

ALIASES: Final = 40
_POOLS: Final = "{ sites(first: 100) { nodes { id name } } pools(first: 100) { nodes { id name } } }"
_SITE: Final = "mutation DemoSite($input: SiteInput!) { made: createSite(input: $input) { id } }"
_POOL: Final = "mutation DemoPool($input: PoolInput!) { made: createPool(input: $input) { id } }"
_ALLOCATE: Final = "mutation DemoJob($input: AllocateInput!) { made: allocate(input: $input) { created } }"
_RELEASE: Final = "mutation DemoJobEnds($shardId: ID!) { ended: release(shardId: $shardId) { id } }"
_CLEAR: Final = "mutation DemoClear($id: ID!) { cleared: clearDeviceHealth(deviceId: $id) { id } }"
_ADOPT: Final = "mutation DemoAdopt($id: ID!) { adopted: adoptNode(id: $id) { id } }"
_NOW: Final = "{ feedCursor }"
_FOLLOW: Final = """subscription DemoEvents($after: Cursor, $nodeIds: [ID!]!) {
  events(after: $after, filter: {nodeId: $nodeIds}) {
    cursor type node { hostname }
    ... on NodeConditionChanged { condition status reason }
    ... on DeviceHealthChanged { deviceId healthy cause end }
    ... on NodeFaultRecorded { cause policy }
    ... on NodeCommandChanged { kind state reason }
  }
}"""

_EVERYDAY: Final = frozenset({"node.inventory.changed"})
_ON_ITS_WAY: Final = frozenset({"PENDING", "ACKNOWLEDGED", "RUNNING"})


class _Named(msgspec.Struct, frozen=True):
    id: str
    name: str = ""


class _Page(msgspec.Struct, frozen=True):
    nodes: tuple[_Named, ...]


class _Host(msgspec.Struct, frozen=True):
    hostname: str | None = None


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """An event about a node, as far as its kind has these facts."""

    cursor: str
    type: str
    node: _Host | None = None
    condition: str | None = None
    status: str | None = None
    reason: str | None = None
    device_id: str | None = None
    healthy: bool | None = None
    cause: str | None = None
    end: str | None = None
    policy: str | None = None
    kind: str | None = None
    state: str | None = None

    @property
    def is_of_interest(self) -> bool:
        """Whether it is a decision or a result: each inventory that comes is not, nor that a command is on its way."""
        return self.type not in _EVERYDAY and self.state not in _ON_ITS_WAY

    def __str__(self) -> str:
        """Say it in one line."""
        because = f" ({self.reason})" if self.reason else ""
        if self.condition is not None:
            text = f"{self.condition} is {(self.status or '').lower()}{because}"
        elif self.device_id is not None:
            ended = f"healthy again ({(self.end or 'found well').lower()})"
            text = f"{self.device_id} is {ended if self.healthy else f'quarantined ({self.cause})'}"
        elif self.policy is not None:
            text = f"{self.cause} is told, to which the policy is {self.policy.lower().replace('_', ' ')}"
        elif self.kind is not None:
            text = f"{self.kind} {(self.state or '').lower()}{because}"
        else:
            text = self.type
        return f"{self.node.hostname if self.node else 'a node'}: {text}"


class Operator(Client):
    """What the demo's operator does. Every method raises what a client's does."""

    async def pool(self, name: str, facts: Mapping[str, Any]) -> str:
        """Return the pool of that name in the demo's site, made when there is none."""
        found = await self._execute(_POOLS, {}, dict[str, _Page])
        known = {pool.name: pool.id for pool in found["pools"].nodes}
        if name in known:
            return known[name]
        sites = {site.name: site.id for site in found["sites"].nodes}
        site_id = sites.get("demo") or await self._made(_SITE, {"name": "demo", "iamRegion": "demo"})
        return await self._made(_POOL, {"name": name, "siteId": site_id, **facts})

    async def assign(self, node_ids: Sequence[str], pool_id: str) -> None:
        """Put nodes into a pool, many in a request; one that is there changes nothing."""
        for first in range(0, len(node_ids), ALIASES):
            some = node_ids[first : first + ALIASES]
            variables = {"pool": pool_id, **{f"i{place}": node_id for place, node_id in enumerate(some)}}
            await self._execute(_assign_query(len(some)), variables, dict[str, _Named])

    async def allocate(self, shard_id: str, device_ids: Sequence[str]) -> None:
        """Give atoms to a job."""
        await self._execute(_ALLOCATE, {"input": {"shardId": shard_id, "deviceIds": device_ids}}, dict[str, Any])

    async def release(self, shard_id: str) -> None:
        """End a job."""
        await self._execute(_RELEASE, {"shardId": shard_id}, dict[str, Any])

    async def clear(self, device_id: str) -> None:
        """Say that a device is well again."""
        await self._execute(_CLEAR, {"id": device_id}, dict[str, Any])

    async def adopt(self, node_id: str) -> None:
        """Let a node be checked and taken into service."""
        await self._execute(_ADOPT, {"id": node_id}, dict[str, Any])

    async def now(self) -> str:
        """Return the place in the server's log up to which all is over."""
        return (await self._execute(_NOW, {}, dict[str, str]))["feedCursor"]

    async def follow(self, node_ids: Sequence[str], after: str | None) -> AsyncIterator[Told]:
        """Yield what happens to these nodes after a place in the log, or from now on."""
        async for data in self._follow(_FOLLOW, {"after": after, "nodeIds": node_ids}):
            yield msgspec.json.decode(data, type=dict[str, Told])["events"]

    async def _made(self, document: str, facts: Mapping[str, Any]) -> str:
        return (await self._execute(document, {"input": facts}, dict[str, _Named]))["made"].id


def _assign_query(count: int) -> str:
    parameters = ", ".join(f"$i{place}: ID!" for place in range(count))
    fields = "\n".join(f"  n{place}: assignPool(id: $i{place}, poolId: $pool) {{ id }}" for place in range(count))
    return f"mutation DemoAssign($pool: ID!, {parameters}) {{\n{fields}\n}}"
