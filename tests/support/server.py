"""The server in the test's own process: reconcilers and feed run, requests go straight to the application."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
from starlette.applications import Starlette

from db.access import ensure_tenant, revoke_token
from db.database import Database
from db.hints import Hints
from db.identifiers import new_id
from db.replica import Replica
from domain.access import Role
from domain.ids import TenantId, TokenId
from reconcilers.conflicts import conflicts
from reconcilers.inventory import inventory
from reconcilers.loop import run
from reconcilers.relay import relay
from resolvers.admission import Admission
from resolvers.context import Meter, Services
from web.app import application, open_services, utc_now
from web.authentication import issue_token
from web.server import background, listening
from web.settings import Settings

WAIT_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the API with one token."""

    http: httpx.AsyncClient
    token: str
    tenant_id: TenantId

    async def send(self, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401 - any variable
        """Return the whole response."""
        response = await self.http.post(
            "/graphql",
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        return dict(response.json())

    async def data(self, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the data of a response without errors."""
        answer = await self.send(query, **variables)
        assert "errors" not in answer, answer["errors"]
        return dict(answer["data"])


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server."""

    app: Starlette
    services: Services
    operator: Client
    agent: Client
    stranger: Client


@asynccontextmanager
async def listening_server(
    database: Database, settings: Settings | None = None, *, reconcile: bool = True
) -> AsyncIterator[tuple[RunningServer, str]]:
    """Run the server with a real listener too, and give its address: for sockets and other programs.

    Its relay runs in any case: who listens wants to hear.
    """
    async with (
        running_server(database, reconcile=reconcile, relayed=True) as running,
        listening(running.services, settings or Settings(port=0)) as (_, address),
    ):
        yield running, address


@asynccontextmanager
async def running_server(
    database: Database,
    *,
    reconcile: bool = True,
    relayed: bool = False,
    compiled_reads: bool = True,
    meter: Meter | None = None,
    replica: Replica | None = None,
    admission: Admission | None = None,
) -> AsyncIterator[RunningServer]:
    hints = Hints("memory://")
    async with open_services(database, hints, compiled_reads=compiled_reads, replica=replica) as opened:
        services = replace(opened, meter=meter or opened.meter, admission=admission or opened.admission)
        app = application(services, Settings())
        transport = httpx.ASGITransport(app)
        loops = [relay(database, hints)] if reconcile or relayed else []
        loops += [inventory(database, utc_now), conflicts(database)] if reconcile else []
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://test") as http,
            background(services.feed.run(), *([replica.run()] if replica else []), *(run(loop) for loop in loops)),
        ):
            clients = [
                await client_of(database, http, tenant, role)
                for tenant, role in (("ours", Role.OPERATOR), ("ours", Role.AGENT), ("theirs", Role.OPERATOR))
            ]
            yield RunningServer(app, services, *clients)


async def client_of(database: Database, http: httpx.AsyncClient, tenant: str, role: Role) -> Client:
    """Return a client with a new token of that tenant, which is made when it is not there."""
    async with database.transaction() as tx:
        tenant_id = await ensure_tenant(tx, TenantId(new_id("tenant")), tenant)
        token = await issue_token(tx, tenant_id, role, f"{tenant} {role.value}")
    return Client(http, token, tenant_id)


async def feed_cursor(client: Client) -> str:
    """Return the cursor behind everything that is there now."""
    return str((await client.data("{ feedCursor }"))["feedCursor"])


async def revoke_tokens(database: Database, client: Client) -> None:
    """Revoke all tokens of the client's tenant."""
    async with database.transaction() as tx:
        for token in await tx.fetch("select id from api_tokens where tenant_id = $1", client.tenant_id):
            await revoke_token(tx, client.tenant_id, TokenId(token.id))


HELLO = """
mutation ($input: HelloInput!) { hello(input: $input) { nodeId sessionId requestSections leaseSeconds feedCursor } }
"""
RECORD = """
mutation ($entries: [HashReportInput!]!) {
  recordInventoryHashes(entries: $entries) { nodeId requestSections error { code message section place } }
}
"""
INGEST = """
mutation ($entries: [SectionsInput!]!) {
  ingestSections(entries: $entries) { nodeId stored error { code message section place } }
}
"""
STATUS = """
query ($id: ID!) {
  computeNode(id: $id) {
    inventoryStatus { state reportedDigest appliedDigest missingSections error }
    latestSnapshot { id digest }
  }
}
"""


def section(name: str, document: Mapping[str, Any] | bytes) -> dict[str, str]:
    """Return a section as an input of ingestSections."""
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return {
        "name": name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "content": base64.b64encode(content).decode(),
    }


def hash_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return a section's hash as an input of recordInventoryHashes."""
    return {"name": given["name"], "sha256": given["sha256"]}


async def hello(client: Client, identity: str, **more: Any) -> str:  # noqa: ANN401
    """Say hello and return the node's id."""
    said = await client.data(HELLO, input={"identityKey": identity, "hostname": identity, **more})
    return str(said["hello"]["nodeId"])


async def ingest(client: Client, node_id: str, documents: Mapping[str, Mapping[str, Any]]) -> None:
    """Send sections."""
    sections = [section(name, document) for name, document in documents.items()]
    said = await client.data(INGEST, entries=[{"nodeId": node_id, "sections": sections}])
    assert said["ingestSections"][0]["error"] is None


async def applied(client: Client, node_id: str) -> dict[str, Any]:
    """Wait until the node's report is applied, and return its status."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while True:
            found = (await client.data(STATUS, id=node_id))["computeNode"]
            if found["inventoryStatus"]["state"] in {"APPLIED", "FAILED"}:
                return dict(found)
            await asyncio.sleep(0.01)


async def report(client: Client, identity: str, documents: Mapping[str, Mapping[str, Any]]) -> str:
    """Bring a node's inventory in, wait until it is applied, and return the node's id."""
    node_id = await hello(client, identity)
    await ingest(client, node_id, documents)
    await applied(client, node_id)
    return node_id
