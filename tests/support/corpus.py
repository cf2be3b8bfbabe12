"""The hand-written operations of `tests/contracts/corpus`, with the variables that each is sent with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphql import OperationDefinitionNode, parse

from domain.cursor import FeedCursor, encode_feed, encode_page
from domain.digest import inventory_digest
from domain.ids import Prefix
from tests.support.both import Operation
from tests.support.world import BROKEN, OURS, THEIRS, base_of
from tests.support.world_fleet import an_id
from tests.support.world_history import SETS

_FILES: Final = Path(__file__).parent.parent / "contracts" / "corpus"
Variables = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """An operation of the corpus, with everything it is sent with."""

    name: str
    document: str
    variables: Sequence[Variables]

    @property
    def operations(self) -> list[Operation]:
        """What is sent."""
        return [Operation(self.document, variables, self.name) for variables in self.variables]


def _id(kind: Prefix, number: int = 0, tenant: str = OURS) -> str:
    return an_id(kind, base_of(tenant) + number)


NODE, SITE, POOL, SNAPSHOT = _id("node"), _id("site"), _id("pool"), _id("inv")
DEVICE: Final = f"{NODE}/gpu.mig/0000:18:00.0"
THEIR_NODE: Final = _id("node", tenant=THEIRS)
NOBODY: Final = "node_00000000000000000000000000"
STRANGE_IDS: Final = (NOBODY, "", "x", "\0", "node_' or 1=1", "é" * 1000)
_ANY_ID: Final = [NODE, DEVICE, SNAPSHOT, SITE, POOL, *STRANGE_IDS]
_KINDS: Final[tuple[Prefix, ...]] = ("node", "inv", "site")
_OF_OTHERS: Final = [_id(kind, tenant=tenant) for kind in _KINDS for tenant in (THEIRS, BROKEN)]
_CURSORS: Final = {
    "nodes": encode_page("nodes:id", (_id("node", 4),)),
    "devices": encode_page("devices:id", (DEVICE,)),
    "snapshots": encode_page("snapshots:newest", (_id("inv", 3),)),
}
_BAD_CURSORS: Final = ("", "x", "WyJm", "é", encode_page("sites:id", (SITE,)), encode_page("nodes:id", ("a", "b")))
_BAD_FILTERS: Final[Sequence[Variables]] = (
    {"id": []},
    {"id": ["x"] * 1001},
    {"siteId": [""]},
    {"text": " "},
    {"text": "x" * 256},
    {"selector": "a=b=c"},
)
_ONE_PAGE: Final = [{}, _CURSORS, {**_CURSORS, "nodes": encode_page("nodes:id", ("zzz",))}]
_NESTED_FIRST: Final = [{"given": given, "null": None} for given in (0, 1, 1000)]
_STEERING: Final = [
    {"yes": yes, "maybe": maybe, **no} for yes in (True, False) for maybe in (True, False) for no in ({}, {"no": True})
]

VARIABLES: Final[Mapping[str, Sequence[Variables]]] = {
    "OneOfEach": [{"node": NODE, "device": DEVICE, "snapshot": SNAPSHOT}],
    "LatestAndEarlierSnapshots": [{"node": NODE, "digest": inventory_digest(SETS[2])}, {"node": NODE}],
    "SnapshotsAsOfTimes": [{"time": "2026-03-04T00:00:00.000001Z"}, {"time": "2026-03-04T02:00:00+02:00"}],
    "ConditionsByStatus": [{}, {"status": None}, {"status": "TRUE"}, {"status": "UNKNOWN"}],
    "DevicesByClass": [{}, {"class": None}, {"class": "NODE"}],
    "EverySectionOfOne": [{"id": _id("inv", number)} for number in range(len(SETS))],
    "SectionsOneByOne": [{"id": _id("inv", number)} for number in range(len(SETS))],
    "TheSameSectionTwice": [{"id": SNAPSHOT}],
    "TheWholePageAndOneMore": [{"first": first} for first in (15, 16, 17, 1000)],
    "BehindACursor": _ONE_PAGE,
    "FirstInEveryWay": [{"given": 1, "null": None}, {"given": 0, "null": None, "default": None}],
    "NestedFirstInEveryWay": _NESTED_FIRST,
    "OrdersInEveryWay": [{}, {"given": "HOSTNAME"}, {"given": "ID", "default": "ID"}, {"given": None, "default": None}],
    "FilterAsAVariable": [
        {"filter": given}
        for given in (
            None,
            {},
            {"id": [NODE, THEIR_NODE, NOBODY]},
            {"id": NODE},
            {"state": ["READY", "CORDONED", "DRAINING"], "provisionState": "ADOPTED"},
            {"poolId": [POOL], "siteId": [SITE, _id("site", 1)], "text": "identity-"},
            {"tenantId": [_id("tenant", tenant=THEIRS)]},
        )
    ],
    "FilterFieldsAsVariables": [
        {"site": SITE},
        {"site": SITE, "ids": [NODE, _id("node", 2)], "state": "LOST", "states": ["PROVISIONING", "READY"]},
        {"site": _id("site", 1), "provision": ["ADOPTED"], "text": "same", "states": None},
    ],
    "EveryFieldOfTheNodeFilter": [
        {"tenant": _id("tenant", tenant=tenant), "site": SITE, "pool": _id("pool", 1)} for tenant in (OURS, THEIRS)
    ],
    "EveryFieldOfTheSummary": [
        {},
        {"filter": {"siteId": SITE, "selector": "only.agent"}},
        {"filter": {"id": [NOBODY, THEIR_NODE]}},
    ],
    "NodesWithImages": [
        {"image": ["debian:13", "sha256:0"], "weights": "images.weights.1.path "},
        {"image": None, "weights": "/nowhere"},
    ],
    "Selectors": [
        {"selector": "Z notin (z), a", "filter": {"selector": "numa.nodes<1000", "state": "READY"}},
        {"selector": None, "filter": {"selector": "", "text": "same"}},
    ],
    "TextFilters": [
        {"a": "%", "b": "_", "c": "\\", "d": "'", "e": "zoë"},
        {"a": '"quoted"', "b": "100%_D", "c": "back\\s", "d": "\x1f\x7f", "e": "é"},
        {"a": "東京", "b": "same identity", "c": "🚀", "d": "zz" * 100},
    ],
    "EveryFieldOfTheDeviceFilter": [
        {"ids": [DEVICE, "nothing"], "nodes": [NODE], "healthy": False, "filter": {"class": "GPU", "healthy": True}},
        {"nodes": [NODE, THEIR_NODE], "filter": {"healthy": False, "nodeId": NODE}},
        {"ids": None, "healthy": None, "filter": None},
    ],
    "EveryFieldOfTheEventFilter": [
        {"types": ["node.inventory.changed", 'x"y 🚀'], "nodes": [NODE, NOBODY], "filter": {"nodeId": NODE}},
        {"types": None, "nodes": None, "filter": {"type": "node.gpu.missing", "nodeId": [NODE]}},
        {"types": "node.teleported", "nodes": THEIR_NODE},
    ],
    "SharedOne": [{}, {"first": 2}, {"first": None}],
    "SharedThree": [{"first": 0}, {"first": 2}],
    "AnyNode": [{"id": each} for each in (NODE, DEVICE, SNAPSHOT, SITE, POOL)],
    "AnyNodeByItsId": [{"id": each} for each in (NODE, DEVICE, SNAPSHOT, SITE, POOL)],
    "AnyNodeByItsType": [{"id": each} for each in (NODE, DEVICE, SNAPSHOT, SITE, POOL)],
    "EventsBehindACursor": [
        {},
        {"after": encode_feed(FeedCursor(5)), "first": 4},
        {"after": encode_feed(FeedCursor(0)), "first": None},
        {"after": encode_feed(FeedCursor(6, "100:106:103,104", 3)), "first": 3},
        {"after": encode_feed(FeedCursor(6, "100:106:103,104", 3)), "first": 0},
    ],
    "DirectivesWithVariables": _STEERING,
    "NothingIsLeft": [{"no": False}, {"no": True}],
    "UnknownNode": [{"id": each} for each in (*STRANGE_IDS, SITE, *_OF_OTHERS)],
    "UnknownDevice": [{"id": each} for each in (*STRANGE_IDS, NODE, f"{THEIR_NODE}/gpu.mig/0000:18:00.0")],
    "UnknownSnapshot": [{"id": each} for each in (*STRANGE_IDS, NODE, *_OF_OTHERS)],
    "UnknownObject": [{"id": each} for each in (*STRANGE_IDS, "tenant_" + NODE[-26:], *_OF_OTHERS)],
    "SnapshotOfAnUnknownNode": [
        {"node": NOBODY},
        {"node": _id("node", 5)},
        {"node": NODE, "digest": "0" * 64},
        {"node": THEIR_NODE, "digest": inventory_digest(SETS[0])},
        {"node": "\0"},
        {"node": NODE, "digest": "x" * 1000},
    ],
    "SeveralUnknown": [{"id": NOBODY}, {"id": THEIR_NODE}],
    "BadCursor": [{"after": each} for each in _BAD_CURSORS],
    "BadFeedCursor": [
        {"after": each} for each in (*_BAD_CURSORS[:5], encode_feed(FeedCursor(10_000)), encode_feed(FeedCursor(-1)))
    ],
    "BadNestedCursor": [{"after": each} for each in _BAD_CURSORS],
    "BadFirst": [{"first": each} for each in (-1, 1001, -(2**31), 2**31 - 1)],
    "BadNestedFirst": [{"first": each} for each in (-1, 1001)],
    "BadFirstOfNoRows": [{"first": -1}],
    "BadFirstBelowANullableField": [{"id": NODE}],
    "BadFilter": [{"filter": each} for each in _BAD_FILTERS],
    "RefusedBehindALargePage": [{"id": NOBODY}],
    "ANullInADirective": [{"if": None}, {}, {"if": False}],
    "ANullInARootDirective": [{"if": None}, {}, {"if": False}],
    "ANullForWhatIsNeeded": [{"time": None}, {"id": None}, {"id": NODE, "time": None}],
    "TooMuchInOneOfTwo": [{"id": SITE}],
    "BesideADiff": [{"node": NODE}],
    "BytesOfSections": [{"id": SNAPSHOT}],
    "EverythingAtOnce": [{"id": NODE}],
}
"""What operations with variables are sent with; the others are sent once, without."""

REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "UnknownNode",
            "UnknownDevice",
            "UnknownSnapshot",
            "UnknownObject",
            "SeveralUnknown",
            "RefusedBehindALargePage",
        ),
        "NOT_FOUND",
    ),
    **dict.fromkeys(
        (
            "SnapshotOfNothing",
            "BadCursor",
            "BadNestedCursor",
            "BadFirst",
            "BadNestedFirst",
            "BadFirstBesideGoodOnes",
            "BadFirstBelowANullableField",
            "BadTime",
            "BadFilter",
            "ANullInADirective",
            "ANullInARootDirective",
            "TooMuch",
            "TooMuchInOneOfTwo",
            "RefusedBehindALargePageForAll",
        ),
        "INVALID_INPUT",
    ),
    "ANullForWhatIsNeeded": "NOT_FOUND INVALID_INPUT",
    "SnapshotOfAnUnknownNode": "NOT_FOUND INVALID_INPUT",
    "BadFeedCursor": "INVALID_INPUT CURSOR_EXPIRED",
}
"""The codes that our operator is answered, each at least once."""

_REFUSED_BELOW: Final = "a refusal has its place below the root"
EXECUTED: Final[Mapping[str, str]] = {
    "LongNames": "PostgreSQL cuts names after 63 bytes",
    "BadNestedCursor": _REFUSED_BELOW,
    "BadNestedFirst": _REFUSED_BELOW,
    "BadFirstOfNoRows": _REFUSED_BELOW,
    "BadFirstBelowANullableField": _REFUSED_BELOW,
    "BadTime": _REFUSED_BELOW,
    "ANullForWhatIsNeeded": _REFUSED_BELOW,
    "DiffsOfSnapshots": "`diff` compares in Python",
    "BytesOfSections": "`raw` and `sha256` have resolvers",
}
"""Why an operation has a root field that is executed field by field."""
LEFT_TO_THE_GRAPH: Final[Mapping[str, str]] = {
    "BesideTheViewer": "`viewer` is no read",
    "EverythingAtOnce": "`viewer` is no read",
    "BesideADiff": "`inventoryDiff` compares in Python",
    "ANullInARootDirective": "there is an error before there are fields",
    "BesideIntrospection": "introspection is the graph's",
}
"""Why the front does not answer an operation, besides those that are executed."""


def cases() -> list[Case]:
    """Return every operation of every file."""
    found: list[Case] = []
    for file in sorted(_FILES.glob("*.graphql")):
        text = file.read_text()
        for definition in parse(text).definitions:
            if isinstance(definition, OperationDefinitionNode) and definition.name is not None:
                name = definition.name.value
                found.append(Case(name, text, VARIABLES.get(name, [{}])))
    return found
