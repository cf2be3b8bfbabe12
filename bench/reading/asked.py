"""The requests that are measured: each as this server is asked and as PostGraphile is, and the same for the floor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.reading.fleet import SERVED, Fleet

PAGE: Final = 100
FAR_PAGE_NUMBER: Final = 90
FIRST_PAGE: Final = "page_1"
FAR_PAGE: Final = f"page_{FAR_PAGE_NUMBER}"


@dataclass(frozen=True, slots=True)
class Body:
    """A GraphQL request over HTTP."""

    operation: str
    query: str
    variables: Mapping[str, Any]

    def json(self) -> dict[str, Any]:
        """Return it as it is posted."""
        return {"query": self.query, "operationName": self.operation, "variables": dict(self.variables)}


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A request under its name, as ours (and the floor's) and as the peer's; the same only as itself."""

    name: str
    ours: Body
    peers: Body


@dataclass(frozen=True, slots=True)
class Places:
    """The cursor behind which the far page starts: ours and the peer's."""

    ours: str
    peers: str


_DEVICES: Final = "devices(first: 8) { nodes { id gpuModel healthy bookable vramGiB } }"
_SHORT: Final = "id hostname provisionState role generation conditions { type status }"
_PAGE_INFO: Final = "pageInfo { hasNextPage endCursor }"

_LIST: Final = f"""query List($first: Int!) {{
  nodes(first: $first) {{
    edges {{ node {{ id hostname provisionState labels {{ key value }} conditions {{ type status }} {_DEVICES} }} }}
    {_PAGE_INFO}
  }}
}}"""
_ONE: Final = f"query One($id: ID!) {{ computeNode(id: $id) {{ id hostname provisionState {_DEVICES} }} }}"
_COUNTS: Final = "query Counts { fleetSummary { gpuModels { value count } } }"
_FILTERED: Final = f"""query Filtered($first: Int!, $filter: NodeFilter!) {{
  nodes(first: $first, filter: $filter) {{ edges {{ node {{ {_SHORT} }} }} {_PAGE_INFO} }}
}}"""
_ROWS: Final = f"""query Rows($first: Int!, $after: Cursor) {{
  nodes(first: $first, after: $after) {{ edges {{ node {{ {_SHORT} }} }} {_PAGE_INFO} }}
}}"""
_WALK: Final = f"""query Walk($first: Int!, $after: Cursor) {{
  nodes(first: $first, after: $after) {{ {_PAGE_INFO} }}
}}"""

# The peer names what it makes of tables and columns; aliases give the answer our names where they can.
_PEERS_DEVICES: Final = """devices: devicesByNodeId(first: 8, orderBy: ROW_ID_ASC) {
      nodes { id: rowId gpuModel healthy bookable vramGiB: vramGib }
    }"""
_PEERS_CONDITIONS: Final = "conditions: machineStatesByNodeIdList(orderBy: TYPE_ASC) { type status }"
_PEERS_SHORT: Final = f"id: rowId hostname provisionState role generation {_PEERS_CONDITIONS}"
_PEERS_LABELS: Final = "labels: labelPairsList { key value }"
_PEERS_NODES: Final = "nodes: allMachines(first: $first, condition: {tenantId: $tenant}, orderBy: ROW_ID_ASC"

_PEERS_LIST: Final = f"""query List($tenant: String!, $first: Int!) {{
  {_PEERS_NODES}) {{
    edges {{ node {{ id: rowId hostname provisionState {_PEERS_LABELS} {_PEERS_CONDITIONS} {_PEERS_DEVICES} }} }}
    {_PAGE_INFO}
  }}
}}"""
_PEERS_ONE: Final = f"""query One($id: String!) {{
  computeNode: machineByRowId(rowId: $id) {{ id: rowId hostname provisionState {_PEERS_DEVICES} }}
}}"""
_PEERS_COUNTS: Final = """query Counts($tenant: String!) {
  fleetSummary: allDevices(condition: {tenantId: $tenant, deviceClass: "gpu"}) {
    gpuModels: groupedAggregates(groupBy: [GPU_MODEL]) { keys distinctCount { rowId } }
  }
}"""
_PEERS_FILTERED: Final = f"""query Filtered($tenant: String!, $first: Int!, $filter: MachineFilter!) {{
  {_PEERS_NODES}, filter: $filter) {{ edges {{ node {{ {_PEERS_SHORT} }} }} {_PAGE_INFO} }}
}}"""
_PEERS_ROWS: Final = f"""query Rows($tenant: String!, $first: Int!, $after: Cursor) {{
  {_PEERS_NODES}, after: $after) {{ edges {{ node {{ {_PEERS_SHORT} }} }} {_PAGE_INFO} }}
}}"""
_PEERS_WALK: Final = f"""query Walk($tenant: String!, $first: Int!, $after: Cursor) {{
  {_PEERS_NODES}, after: $after) {{ {_PAGE_INFO} }}
}}"""

_STATES: Final = ("ADOPTED",)
_MODEL: Final = "H100"


def all_asked(fleet: Fleet, far: Places) -> tuple[Asked, ...]:
    """Return the requests on a fleet, the far page behind its place."""
    return (
        listed(100),
        listed(1000),
        one(fleet),
        _rows(FIRST_PAGE, None),
        _rows(FAR_PAGE, far),
        _counts(),
        _filtered(),
    )


def grouped(asked: Sequence[Asked]) -> list[list[Asked]]:
    """Return what is measured together: the pages are compared with each other, so their rounds alternate."""
    groups: dict[str, list[Asked]] = {}
    for each in asked:
        groups.setdefault(FIRST_PAGE if each.name == FAR_PAGE else each.name, []).append(each)
    return list(groups.values())


def listed(first: int) -> Asked:
    """Return the list of so many nodes with all that belongs to them."""
    return Asked(
        f"list_{first}",
        Body("List", _LIST, {"first": first}),
        Body("List", _PEERS_LIST, {"tenant": SERVED, "first": first}),
    )


def one(fleet: Fleet) -> Asked:
    """Return the request of one node."""
    variables = {"id": fleet.node_id}
    return Asked("one", Body("One", _ONE, variables), Body("One", _PEERS_ONE, variables))


def walk(after: str | None) -> Asked:
    """Return the request of a page's end."""
    ours = {"first": PAGE, "after": after}
    return Asked("walk", Body("Walk", _WALK, ours), Body("Walk", _PEERS_WALK, {"tenant": SERVED, **ours}))


def _counts() -> Asked:
    return Asked("counts", Body("Counts", _COUNTS, {}), Body("Counts", _PEERS_COUNTS, {"tenant": SERVED}))


def _filtered() -> Asked:
    ours = {"provisionState": list(_STATES), "selector": f"gpu.model={_MODEL}"}
    peers = {
        "provisionState": {"in": [state.lower() for state in _STATES]},
        "labels": {"contains": {"gpu.model": _MODEL}},
    }
    return Asked(
        "filtered",
        Body("Filtered", _FILTERED, {"first": PAGE, "filter": ours}),
        Body("Filtered", _PEERS_FILTERED, {"tenant": SERVED, "first": PAGE, "filter": peers}),
    )


def _rows(name: str, after: Places | None) -> Asked:
    ours = {"first": PAGE, "after": after.ours if after else None}
    peers = {"tenant": SERVED, "first": PAGE, "after": after.peers if after else None}
    return Asked(name, Body("Rows", _ROWS, ours), Body("Rows", _PEERS_ROWS, peers))
