"""The live view of nodes: what is told of it makes what a query shows."""

import pytest

from db.database import Database
from tests.support.node_view import KeptView
from tests.support.server import RunningServer, listening_server, report
from tests.support.socket import open_socket

CHANGES = """
subscription ($filter: NodeFilter, $after: Cursor) {
  nodeChanges(filter: $filter, after: $after) {
    kind nodeId cursor node { id hostname labels { key value } cordoned pool { name } }
  }
}
"""
NODES = """
query ($filter: NodeFilter) {
  nodes(filter: $filter, first: 1000) { nodes { id hostname labels { key value } cordoned pool { name } } }
}
"""
LABEL = (
    'mutation ($node: ID!, $value: String!) { labelNode(nodeId: $node, put: [{key: "zone", value: $value}]) { id } }'
)
CORDON = "mutation ($node: ID!) { cordonNode(id: $node) { id } }"
Served = tuple[RunningServer, str]


async def test_a_view_begins_with_the_nodes_that_fit_and_a_mark(served: Served) -> None:
    server, address = served
    ids = {await report(server.agent, name, {"os": {"kernel": "6.1.0"}}) for name in ("n1", "n2")}
    view = KeptView()
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGES)
        await view.sync(socket)
        assert set(view.nodes) == ids
        await server.operator.data(CORDON, node=min(ids))
        change = (await socket.next())["nodeChanges"]
    assert change["kind"] == "CHANGED"
    assert change["node"]["cordoned"]
