"""Values for the arguments of generated operations: what the world has, what it does not have, and odd ones."""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from domain.cursor import FeedCursor, encode_feed, encode_page
from domain.diff import ChangeType
from domain.digest import inventory_digest
from domain.events import CONDITION_CHANGED, INVENTORY_CHANGED
from domain.ids import Prefix
from tests.support.world import BROKEN, OURS, THEIRS, base_of
from tests.support.world_fleet import HOSTNAMES, an_id
from tests.support.world_history import RECEIVED, SETS
from tests.support.world_holdings import IMAGES


def _ids(kind: Prefix, count: int) -> list[str]:
    ours = [an_id(kind, base_of(OURS) + number) for number in range(count)]
    return [*ours, *(an_id(kind, base_of(tenant) + number) for tenant in (THEIRS, BROKEN) for number in range(2))]


NODES, SITES, POOLS, SNAPSHOTS = _ids("node", 6), _ids("site", 3), _ids("pool", 4), _ids("inv", 6)
DEVICES: Final = [f"{node}/{kind}/0000:18:00.0" for node in NODES for kind in ("gpu.mig", "disk")]
_ODD_TEXTS: Final = ["", " ", "x", "\0", "'; --", "é" * 300, "%", "_", "\\", '"', "🚀"]
_ODD_CURSORS: Final = ["", "x", "WyJm", "é", encode_page("nodes:id", ("a", "b"))]
_PAGED: Final[Mapping[str, list[str]]] = {
    "nodes": [
        *(encode_page("nodes:id", (node,)) for node in [*NODES, "", "zzz"]),
        *(encode_page("nodes:hostname", (name or "", node)) for name, node in zip(HOSTNAMES, NODES, strict=False)),
    ],
    "devices": [encode_page("devices:id", (device,)) for device in [*DEVICES, ""]],
    "snapshots": [encode_page("snapshots:newest", (snapshot,)) for snapshot in [*SNAPSHOTS, ""]],
    "sites": [encode_page("sites:id", (site,)) for site in SITES],
    "pools": [encode_page("pools:id", (pool,)) for pool in POOLS],
    "events": [
        *(encode_feed(FeedCursor(position)) for position in (0, 3, 10, 30, 10_000)),
        encode_feed(FeedCursor(4, "100:108:103,105", 9)),
    ],
}
_IDS: Final[Mapping[str, list[str]]] = {
    "Query.computeNode": NODES,
    "Query.device": DEVICES,
    "Query.snapshot": SNAPSHOTS,
    "Query.node": [*NODES[:2], *DEVICES[:2], *SITES[:1], *POOLS[:1], *SNAPSHOTS[:2], THEIRS],
    "NodeFilter": NODES,
    "DeviceFilter": DEVICES,
}
_TEXTS: Final[Mapping[str, list[str]]] = {
    "nodeId": NODES,
    "siteId": SITES,
    "poolId": POOLS,
    "tenantId": _ids("tenant", 1),
    "digest": [inventory_digest(each) for each in SETS],
    "text": ["same", "SAME", "identity-1", "zoë", "%", "_", "\\", '"', "back\\", "東京", "rack"],
    "type": [INVENTORY_CHANGED, CONDITION_CHANGED, *ChangeType, "node.teleported"],
    "image": [*IMAGES, "sha256:1"],
    "weights": ["images.weights.1.path ", "/nowhere"],
    "selector": [
        "zone=too",
        "only.agent",
        "!only.agent,a!=ä",
        "gpu.model in (H100, x,)",
        "Z notin (z),empty=",
        "numa.nodes>1",
        "numa.nodes<=2,numa.nodes>=-0.5",
        "numa.nodes<10",
        ",",
        "a=b=c",
    ],
    "time": [
        *RECEIVED,
        "2026-03-02T00:00:00.5Z",
        "2020-01-01T00:00:00-11:30",
        "2026-01-01T00:00:00",
        "3000-01-01T00:00:00Z",
    ],
}


def mostly(usual: list[Any], odd: list[Any]) -> st.SearchStrategy[Any]:
    """Draw what is usual, now and then what is not."""
    return st.integers(0, 9).flatmap(lambda number: st.sampled_from(odd if number == 9 else usual))


def scalar(place: str, key: str, kind: str) -> st.SearchStrategy[Any]:
    """Draw a value of a scalar type for an argument of the field at that place, or for a field of that input type."""
    match kind, key:
        case "Int", _:
            return mostly([1, 2, 3, 5], [0, 0, -1, 50, 1000, 1001, 2**31 - 1])
        case "Boolean", _:
            return st.booleans()
        case "Cursor", _:
            return mostly(_PAGED.get(place.rpartition(".")[2], _ODD_CURSORS), [*_ODD_CURSORS, *_PAGED["sites"]])
        case "ID", "id":
            return mostly(_IDS.get(place, NODES), [*_ODD_TEXTS, *SITES])
        case "DateTime", _:
            return st.sampled_from(_TEXTS["time"])
        case _:
            return mostly(_TEXTS.get(key, _ODD_TEXTS), _ODD_TEXTS)
