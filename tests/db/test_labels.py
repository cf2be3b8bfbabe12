"""Labels in the database: what each source says, and which of them holds."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db import labels as store
from db.database import Database, Transaction
from db.labels import ReportedLabels
from db.nodes import DecidedNode, save_decided
from domain.driver_labels import DRIVER_PREFIXES
from domain.hardware import Hardware
from domain.ids import NodeId, TenantId
from domain.labels import LabelSource
from domain.node import Trust
from tests.support.server import RunningServer

TENANT = TenantId("tenant")
# One set of keys for all sources, so that they meet; the database does not know whose a key may be.
KEYS = [
    "zone",
    "gpu.model",
    "a'b",
    "bc.dev/driver.x",
    "bc.dev/driver-kind.x.power",
    "bc.dev/driver",
    "bc.dev/drivers.x",
]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["", "1", "true", "null", '"', "é"]), max_size=4)


@dataclass
class Model:
    """The labels of a node as rule 6 says them, in plain Python."""

    agent: dict[str, str] = field(default_factory=dict)
    operator: dict[str, str] = field(default_factory=dict)
    inventory: dict[str, str] = field(default_factory=dict)
    system: dict[str, str] = field(default_factory=dict)

    def hello(self, said: ReportedLabels) -> None:
        if said.agent is not None:
            self.agent = dict(said.agent)
        if said.drivers is not None:
            others = {key: value for key, value in self.system.items() if not key.startswith(DRIVER_PREFIXES)}
            self.system = others | dict(said.drivers)

    def effective(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for source in LabelSource:
            found |= {key: (value, source.name) for key, value in getattr(self, source.value).items()}
        return found


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("hello"), st.builds(ReportedLabels, st.none() | LABELS, st.none() | LABELS)),
        st.tuples(st.just("operator"), LABELS),
        st.tuples(st.just("inventory"), LABELS),
    ),
    max_size=8,
)
_numbers = itertools.count()


def labelled(node_id: NodeId, labels: Mapping[str, str] | None) -> DecidedNode:
    return DecidedNode(node_id=node_id, hardware=Hardware(), no_schedule_reasons=(), inventory_labels=labels)


async def add_node(tx: Transaction, *, trust: Trust = Trust.PLATFORM, tenant: TenantId = TENANT) -> NodeId:
    node_id = NodeId(f"node_{next(_numbers):026}")
    await tx.execute("insert into tenants (id, name) values ($1, $1) on conflict do nothing", tenant)
    await tx.execute(
        "insert into nodes (id, tenant_id, identity_key, trust) values ($1, $2, $1, $3)", node_id, tenant, trust.value
    )
    return node_id


async def version(tx: Transaction, node_id: NodeId) -> str:
    return str(await tx.value("select ctid::text || xmin::text from nodes where id = $1", node_id))


# Every example has a node of its own, so they may share the database.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(operations=OPERATIONS, others=LABELS)
async def test_the_labels_that_hold_are_those_of_the_sources_in_their_order(
    server: RunningServer, operations: list[tuple[str, ReportedLabels | dict[str, str]]], others: dict[str, str]
) -> None:
    database = server.services.database
    model = Model(system=dict(others))
    async with database.transaction() as tx:
        node_id = await add_node(tx, tenant=server.operator.tenant_id)
        await tx.execute("update nodes set system_labels = $2 where id = $1", node_id, others)
    for name, given_labels in operations:
        async with database.transaction() as tx:
            if isinstance(given_labels, ReportedLabels):
                model.hello(given_labels)
                await store.save_reported_labels(tx, node_id, given_labels)
            elif name == "operator":
                model.operator = given_labels
                await store.save_operator_labels(tx, node_id, given_labels)
            else:
                model.inventory = given_labels
                await save_decided(tx, [labelled(node_id, given_labels)])
    async with database.transaction() as tx:
        stored = await tx.value("select labels from nodes where id = $1", node_id)
    assert stored == {key: value for key, (value, _) in model.effective().items()}
    found = await server.operator.data(
        "query ($id: ID!) { computeNode(id: $id) { labels { key value source } } }", id=node_id
    )
    labels = found["computeNode"]["labels"]
    assert [label["key"] for label in labels] == sorted(stored)
    assert {label["key"]: (label["value"], label["source"]) for label in labels} == model.effective()


async def test_a_hello_that_says_the_same_writes_nothing(database: Database) -> None:
    said = ReportedLabels(agent={"zone": "a"}, drivers={"bc.dev/driver.x": "1"})
    async with database.transaction() as tx:
        node_id = await add_node(tx)
        assert await store.save_reported_labels(tx, node_id, said)
    async with database.transaction() as tx:
        before = await version(tx, node_id)
        assert not await store.save_reported_labels(tx, node_id, said)
        assert not await store.save_reported_labels(tx, node_id, ReportedLabels())
        assert await version(tx, node_id) == before
        assert await store.save_reported_labels(tx, node_id, ReportedLabels(drivers={}))
        assert await tx.value("select labels from nodes where id = $1", node_id) == {"zone": "a"}


async def test_inventory_labels_of_a_batch_are_written_only_where_they_changed(database: Database) -> None:
    async with database.transaction() as tx:
        same, other = await add_node(tx), await add_node(tx)
        await save_decided(tx, [labelled(same, {"os.kernel": "6.1"}), labelled(other, {"os.kernel": "6.1"})])
    async with database.transaction() as tx:
        before = await version(tx, same), await version(tx, other)
        await save_decided(tx, [labelled(same, {"os.kernel": "6.1"}), labelled(other, {"os.kernel": "6.2"})])
        await save_decided(tx, [labelled(same, None)])
        await save_decided(tx, [])
        assert await version(tx, same) == before[0]
        assert await version(tx, other) != before[1]
        assert await tx.value("select inventory_labels from nodes where id = $1", other) == {"os.kernel": "6.2"}


async def test_a_machine_that_its_tenant_controls_labels_nothing_by_its_own_word(database: Database) -> None:
    async with database.transaction() as tx:
        node_id = await add_node(tx, trust=Trust.TENANT_CONTROLLED)
        said = ReportedLabels(agent={"zone": "a"}, drivers={"bc.dev/driver.x": "1"})
        assert not await store.save_reported_labels(tx, node_id, said)
        assert await labels_of(tx, node_id) == {}


async def labels_of(tx: Transaction, node_id: NodeId) -> Mapping[str, str]:
    return dict(await tx.value("select labels from nodes where id = $1", node_id))
