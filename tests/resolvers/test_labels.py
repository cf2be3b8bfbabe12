"""Labels that agents and operators give, through the API."""

import asyncio
from typing import Any

from tests.support.server import Client, RunningServer, hello

LABELS = "query ($id: ID!) { computeNode(id: $id) { labels { key value source } } }"
LABEL = """
mutation ($id: ID!, $set: [LabelInput!], $remove: [String!]) {
  labelNode(id: $id, set: $set, remove: $remove) { labels { key value source } }
}
"""


def pairs(labels: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in labels.items()]


def _by_key(node: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {label["key"]: (label["value"], label["source"]) for label in node["labels"]}


async def labels_of(client: Client, node_id: str) -> dict[str, tuple[str, str]]:
    return _by_key((await client.data(LABELS, id=node_id))["computeNode"])


async def label(client: Client, node_id: str, put: dict[str, str], remove: list[str]) -> dict[str, tuple[str, str]]:
    return _by_key((await client.data(LABEL, id=node_id, set=pairs(put), remove=remove))["labelNode"])


async def refusal(client: Client, query: str, **variables: Any) -> tuple[str, str]:  # noqa: ANN401 - any variable
    (error,) = (await client.send(query, **variables))["errors"]
    return error["extensions"]["code"], error["message"]


async def test_an_operators_label_covers_the_agents_until_it_is_removed(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1", labels=pairs({"zone": "a", "rack": "r1"}))
    assert await labels_of(server.agent, node_id) == {"zone": ("a", "AGENT"), "rack": ("r1", "AGENT")}
    assert await label(server.operator, node_id, {"zone": "b", "spot": ""}, []) == {
        "zone": ("b", "OPERATOR"),
        "rack": ("r1", "AGENT"),
        "spot": ("", "OPERATOR"),
    }
    await hello(server.agent, "n1", labels=pairs({"zone": "c"}))
    assert await label(server.operator, node_id, {}, ["zone", "never-set"]) == {
        "zone": ("c", "AGENT"),
        "spot": ("", "OPERATOR"),
    }


async def test_a_hello_without_labels_and_drivers_changes_none(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1", labels=pairs({"zone": "a"}), drivers=[{"id": "x", "version": "1"}])
    before = await labels_of(server.agent, node_id)
    await hello(server.agent, "n1")
    assert await labels_of(server.agent, node_id) == before
    await hello(server.agent, "n1", labels=[], drivers=[])
    assert await labels_of(server.agent, node_id) == {}


async def test_drivers_are_labels_that_go_when_they_are_no_longer_advertised(server: RunningServer) -> None:
    drivers = [{"id": "ipmi", "kinds": ["power", "Bad"]}, {"id": "Bad"}, {"id": "kvm", "version": "1.2"}]
    node_id = await hello(server.agent, "n1", drivers=drivers)
    assert await labels_of(server.agent, node_id) == {
        "bc.dev/driver.ipmi": ("unknown", "SYSTEM"),
        "bc.dev/driver-kind.ipmi.power": ("1", "SYSTEM"),
        "bc.dev/driver.kvm": ("1.2", "SYSTEM"),
    }
    found = await server.operator.data(
        'query { nodes(filter: {selector: "bc.dev/driver-kind.ipmi.power=1"}) { nodes { id } } }'
    )
    assert found["nodes"]["nodes"] == [{"id": node_id}]
    await hello(server.agent, "n1", drivers=drivers[2:])
    assert await labels_of(server.agent, node_id) == {"bc.dev/driver.kvm": ("1.2", "SYSTEM")}


async def test_labels_of_inventory_and_system_cannot_be_overwritten(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1", drivers=[{"id": "x"}])
    for key in ("gpu.model", "bc.dev/driver.x"):
        put = [*pairs({"zone": "a"}), {"key": key, "value": "mine"}]
        code, message = await refusal(server.operator, LABEL, id=node_id, set=put)
        assert code == "INVALID_INPUT"
        assert message.startswith("set.1.key: ")
    assert await labels_of(server.agent, node_id) == {"bc.dev/driver.x": ("unknown", "SYSTEM")}


async def test_a_hello_with_bad_labels_is_refused_with_the_place_and_makes_no_node(server: RunningServer) -> None:
    said = "mutation ($input: HelloInput!) { hello(input: $input) { nodeId } }"
    bad = [*pairs({"zone": "a"}), {"key": "no key", "value": ""}]
    code, message = await refusal(server.agent, said, input={"identityKey": "n1", "labels": bad})
    assert (code, message[:14]) == ("INVALID_INPUT", "labels.1.key: ")
    assert (await server.operator.data("{ nodes { totalCount } }"))["nodes"]["totalCount"] == 0


async def test_who_may_not_label_a_node_does_not(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    put = pairs({"zone": "a"})
    assert (await refusal(server.agent, LABEL, id=node_id, set=put))[0] == "FORBIDDEN"
    assert (await refusal(server.stranger, LABEL, id=node_id, set=put))[0] == "NOT_FOUND"
    for nobody in ("node_00000000000000000000000000", "x\0"):
        assert (await refusal(server.operator, LABEL, id=nobody, set=put))[0] == "NOT_FOUND"
    assert await labels_of(server.agent, node_id) == {}


async def test_operators_who_label_at_once_lose_nothing(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await asyncio.gather(*(label(server.operator, node_id, {f"k{number}": "1"}, []) for number in range(20)))
    assert len(await labels_of(server.agent, node_id)) == 20


async def test_a_node_has_so_many_labels_and_no_more(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await label(server.operator, node_id, {f"k{number}": "1" for number in range(64)}, [])
    code, message = await refusal(server.operator, LABEL, id=node_id, set=pairs({"more": "1"}))
    assert (code, message) == (
        "CONFLICT",
        "set: the node would have 65 labels of operators; at most 64 are kept",
    )
    assert len(await label(server.operator, node_id, {"more": "1"}, ["k0"])) == 64
