"""Clients that go on over every fault, and record what they saw."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from tests.faults.stand import TOKEN
from tests.support.server import HELLO, INGEST, RECORD, hash_of, section

EVENTS = "subscription ($after: Cursor) { events(after: $after) { __typename id cursor nodeId } }"
FIELDS = """
  id hostname latestSnapshot { digest } inventoryStatus { state reportedDigest appliedDigest error }
  labels { key value } devices(first: 10) { nodes { id healthy } }
"""
FITTING = f"""
subscription ($after: Cursor, $filter: NodeFilter) {{
  events(after: $after, nodes: $filter) {{ id cursor nodeId node {{ {FIELDS} }} }}
}}
"""
CHANGES = f"""
subscription ($after: Cursor, $filter: NodeFilter) {{
  nodeChanges(after: $after, filter: $filter) {{ kind nodeId cursor node {{ {FIELDS} }} }}
}}
"""
NODES = f"query ($filter: NodeFilter) {{ nodes(first: 100, filter: $filter) {{ nodes {{ {FIELDS} }} }} }}"
LATER = {"UNAVAILABLE", "RATE_LIMITED"}
"""Codes of what is to be sent again."""
REQUEST_SECONDS_MAX = 2.0
PATIENCE_SECONDS = 60.0
"""How long a client that never gives a request up waits for its answer: longer than anything is stopped."""


class Refused(Exception):  # noqa: N818 - what a server answers that a client cannot go on with
    """An answer that only a bug of ours gives."""


async def cursor_at(port: int) -> str:
    """Return where the feed stands now, by the server on that port."""
    return str((await _asked(port, "{ feedCursor }"))["feedCursor"])


async def nodes_at(port: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nodes that fit as they are now, by the server on that port."""
    return {node["id"]: node for node in (await _asked(port, NODES, filter=given))["nodes"]["nodes"]}


async def _asked(port: int, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401 - any variable
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
        answer = await http.post(
            f"http://127.0.0.1:{port}/graphql",
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
    return dict(answer.json()["data"])


@dataclass(slots=True)
class Node:
    """A machine as it truly is; each version has other bytes and another number of GPUs."""

    name: str
    version: int = 0
    id: str | None = None
    acknowledged: int = -1
    """The newest version that a server has acknowledged."""
    ballast: int = 0
    """Bytes that its report has besides, which do not compress."""

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return its sections now."""
        gpus = [
            {"uuid": f"GPU-{self.name}-{index}", "index": index, "name": "NVIDIA H100 80GB HBM3", "vramMiB": 81559}
            for index in range(1 + self.version % 3)
        ]
        ballast = random.Random(f"{self.name} {self.version}").randbytes(self.ballast // 2).hex()  # noqa: S311 - no secret
        system = {"kernel": f"6.0.{self.version}", "ofANewerAgent": ballast}
        return {"os": system, "gpus": {"enumeration": "complete", "gpus": gpus}}

    def sections(self) -> list[dict[str, str]]:
        """Return them as a report carries them."""
        return [section(name, document) for name, document in self.documents().items()]


@dataclass(slots=True)
class Reporter:
    """An agent of some nodes: it repeats what failed, by any server, until it is told that it was taken."""

    ports: Sequence[int]
    nodes: Sequence[Node]
    chance: random.Random
    seconds_max: float
    reports: int = 0
    failures: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Report until told to stop, and finish what was begun."""
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=self.seconds_max, limits=limits) as http:
            while not stop.is_set():
                node = self.chance.choice(self.nodes)
                if self.chance.random() < 0.7 or node.acknowledged < 0:
                    node.version += 1
                await self.report(http, node)
                await asyncio.sleep(self.chance.uniform(0, 0.1))

    async def report(self, http: httpx.AsyncClient, node: Node) -> None:
        """Bring a node's present version in."""
        sections = node.sections()
        hashes = [hash_of(each) for each in sections]
        if node.id is None:
            said = await self._until_taken(http, HELLO, input={"identityKey": node.name, "hostname": node.name})
            node.id = said["hello"]["nodeId"]
        missing = ["?"]
        while missing:
            said = await self._until_taken(http, RECORD, entries=[{"nodeId": node.id, "hashes": hashes}])
            missing = said["recordInventoryHashes"][0]["requestSections"]
            if missing:
                wanted = [each for each in sections if each["name"] in missing]
                await self._until_taken(http, INGEST, entries=[{"nodeId": node.id, "sections": wanted}])
        node.acknowledged = node.version
        self.reports += 1

    async def _until_taken(self, http: httpx.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401
        while True:
            with suppress(httpx.TransportError, httpx.HTTPStatusError):
                url = f"http://127.0.0.1:{self.chance.choice(self.ports)}/graphql"
                headers = {"Authorization": f"Bearer {TOKEN}"}
                answer = await http.post(url, json={"query": query, "variables": variables}, headers=headers)
                if not answer.headers.get("content-type", "").startswith("application/"):
                    answer.raise_for_status()  # a server on its way out
                said = answer.json()
                refused = _refused(said)
                if not refused:
                    return dict(said["data"])
                if not refused <= LATER:
                    raise Refused(str(said))
            self.failures += 1
            await asyncio.sleep(0.1)


def _refused(said: Mapping[str, Any]) -> set[str]:
    """Return the codes of all that an answer refuses, slots of a batch included."""
    slots = [slot for field in (said.get("data") or {}).values() if isinstance(field, list) for slot in field]
    errors = [error["extensions"] for error in said.get("errors") or ()]
    return {error["code"] for error in [*errors, *(slot["error"] for slot in slots if slot["error"])]}


@dataclass(slots=True)
class Subscriber:
    """One that resumes behind the last it was told, by the next server, whenever its socket or subscription ends."""

    ports: Sequence[int]
    cursor: str | None
    connections: int = 0
    query: ClassVar[str]

    def take(self, told: dict[str, Any]) -> None:
        """Take what it is told next, with its cursor."""
        raise NotImplementedError

    def variables(self) -> dict[str, Any]:
        """Return what it asks for."""
        return {"after": self.cursor}

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            port = self.ports[self.connections % len(self.ports)]
            self.connections += 1
            with suppress(OSError, WebSocketException, TimeoutError):
                await self._follow(f"ws://127.0.0.1:{port}/graphql")
            await asyncio.sleep(0.05)

    async def _follow(self, url: str) -> None:
        protocols = [Subprotocol("graphql-transport-ws")]
        # A server that is stopped closes nothing: only a ping that stays unanswered tells.
        async with connect(url, subprotocols=protocols, open_timeout=2, ping_interval=0.5, ping_timeout=1.5) as socket:
            await socket.send(json.dumps({"type": "connection_init", "payload": {"authorization": f"Bearer {TOKEN}"}}))
            await asyncio.wait_for(socket.recv(), 2)
            payload = {"query": self.query, "variables": self.variables()}
            await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
            async for frame in socket:
                assert isinstance(frame, str)
                said = json.loads(frame)
                if said["type"] == "complete":
                    return
                if said["type"] != "next" or "errors" in said["payload"]:
                    # Who took a cursor from what could not be read would never be told it.
                    told = said["type"] == "next" and any((said["payload"]["data"] or {}).values())
                    if told or '"code":"UNAVAILABLE"' not in frame:
                        raise Refused(frame)
                    return
                (told,) = said["payload"]["data"].values()
                self.take(told)


@dataclass(slots=True)
class Watcher(Subscriber):
    """A subscriber to every event."""

    seen: list[str] = field(default_factory=list)
    told: list[tuple[str, str | None]] = field(default_factory=list)
    """Of what it saw, the type and the node."""
    query = EVENTS

    def take(self, told: dict[str, Any]) -> None:
        """Note an event."""
        self.seen.append(told["id"])
        self.told.append((told["__typename"], told["nodeId"]))
        self.cursor = told["cursor"]


@dataclass(slots=True)
class Selector(Subscriber):
    """A subscriber to the events of nodes with a text in their names, who has each node as it was shown last."""

    text: str = ""
    seen: list[str] = field(default_factory=list)
    nodes: dict[str, Any] = field(default_factory=dict)
    query = FITTING

    def variables(self) -> dict[str, Any]:
        """Return what it asks for."""
        return {"after": self.cursor, "filter": self.filter}

    @property
    def filter(self) -> dict[str, Any]:
        """Return which nodes."""
        return {"text": self.text}

    def take(self, told: dict[str, Any]) -> None:
        """Note an event, and its node as it is."""
        if told["node"] is None:
            raise Refused(f"{told} of a node that exists")
        self.seen.append(told["id"])
        self.nodes[told["nodeId"]] = told["node"]
        self.cursor = told["cursor"]


@dataclass(slots=True)
class Viewer(Subscriber):
    """A console's view of the nodes that fit."""

    filter: Mapping[str, Any] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    query = CHANGES

    def variables(self) -> dict[str, Any]:
        """Return what it asks for; without a cursor it begins anew."""
        if self.cursor is None:
            self.nodes.clear()
        return {"after": self.cursor, "filter": self.filter}

    def take(self, told: dict[str, Any]) -> None:
        """Keep the view."""
        self.kinds[told["kind"]] += 1
        if told["kind"] == "LEFT":
            self.nodes.pop(told["nodeId"], None)
        elif told["kind"] != "SYNCED":
            if told["node"] is None:
                raise Refused(f"{told} of a node that exists")
            self.nodes[told["nodeId"]] = told["node"]
        self.cursor = told["cursor"] or self.cursor
