"""The rules for faults over the wire."""

from collections.abc import AsyncIterator

import pytest

from db.database import Database
from domain.xid_rules import XID_RULES
from tests.support.server import RunningServer, running_server

CATALOG = """
query ($code: Int) { xidCatalog(code: $code) {
  id code version name class meaning immediate later recommendedAction policy condition remedy
  recoveryActions { id value label meaning policy remedy }
  nvlink5Rules { id units bitsBefore575 bitsSince575 status severity origin action actionIfFatal later }
} }
"""


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    async with running_server(database, reconcile=False) as running:
        yield running


async def test_the_catalog_has_every_rule_and_each_by_its_code(server: RunningServer) -> None:
    rules = (await server.operator.data(CATALOG))["xidCatalog"]
    assert [rule["code"] for rule in rules] == [rule.code for rule in XID_RULES.codes]
    (fell,) = (await server.agent.data(CATALOG, code=79))["xidCatalog"]
    assert fell == rules[78]
    told = ("id", "version", "class", "policy", "condition", "remedy", "immediate", "recoveryActions", "nvlink5Rules")
    assert [fell[name] for name in told] == [
        "xid.79",
        XID_RULES.version,
        "HARDWARE",
        "NODE_NO_SCHEDULE",
        "Xid79",
        "REBOOT",
        "RESTART_BM",
        [],
        [],
    ]
    assert (await server.agent.data(CATALOG, code=999))["xidCatalog"] == []


async def test_codes_that_more_decides_tell_what_does(server: RunningServer) -> None:
    (state,) = (await server.agent.data(CATALOG, code=154))["xidCatalog"]
    assert [action["policy"] for action in state["recoveryActions"][:3]] == ["CLEAR", "QUARANTINE", "NODE_NO_SCHEDULE"]
    (link,) = (await server.agent.data(CATALOG, code=145))["xidCatalog"]
    rows = {row["id"]: row for row in link["nvlink5Rules"]}
    assert rows["xid.145.RLW_CTRL.80000000"] == {
        "id": "xid.145.RLW_CTRL.80000000",
        "units": ["RLW_CTRL"],
        "bitsBefore575": "------000000----------0001100010",
        "bitsSince575": "------000000-------------0000011",
        "status": "0x80000000",
        "severity": "NONFATAL",
        "origin": "SW",
        "action": "IGNORE",
        "actionIfFatal": None,
        "later": "CONTACT_SUPPORT",
    }
