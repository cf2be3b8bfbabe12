"""Pools' policy documents."""

from typing import Any

import pytest

from domain.errors import InvalidInput
from domain.pool import Sharing
from domain.pool_policy import Check, PoolPolicy, read_policy, slots_per_gpu
from domain.xid_rules import XidPolicy


def test_everything_may_be_left_out() -> None:
    assert read_policy({}) == PoolPolicy()


def test_a_whole_document_is_read() -> None:
    policy = read_policy(
        {
            "sharing": {"replicas": 48},
            "expect": {"gpuCount": 8},
            "overcommit": {"memory": 1.5, "cores": 4},
            "acceptance": ["diag.nvml", "diag.dcgm"],
            "disruptionBudget": 0.05,
            "lostAfter": 600,
            "admission": {"budgetCheck": True},
            "maxPending": 100,
            "hardwareProfile": "hgx-h100",
            "migLayout": ["3g.40gb", "3g.40gb"],
            "tenantRoot": "acme",
            "xids": {"109": "event", "94": "quarantine"},
        }
    )
    assert policy.xid_policies == {"109": XidPolicy.EVENT, "94": XidPolicy.QUARANTINE}
    assert policy.sharing.replicas == 48
    assert policy.expect.gpu_count == 8
    assert policy.acceptance == (Check.NVML, Check.DCGM)
    assert (policy.disruption_budget, policy.lost_after) == (0.05, 600)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"shering": {}}, "policy: Object contains unknown field `shering`"),
        ({"sharing": {"replica": 2}}, "policy.sharing: Object contains unknown field `replica`"),
        ({"sharing": {"replicas": 0}}, "policy.sharing.replicas: Expected `int` >= 1"),
        ({"sharing": {"replicas": 49}}, "policy.sharing.replicas: Expected `int` <= 48"),
        ({"sharing": {"replicas": "4"}}, "policy.sharing.replicas: Expected `int | null`, got `str`"),
        ({"expect": {"gpuCount": 65}}, "policy.expect.gpuCount: Expected `int` <= 64"),
        ({"acceptance": ["diag.nvml", "diag.gpu"]}, "policy.acceptance.1: Invalid enum value 'diag.gpu'"),
        ({"acceptance": ["diag.nvml", "diag.nvml"]}, "policy.acceptance: 'diag.nvml' stands there twice"),
        ({"xids": {"109": "clear"}}, "policy.xids: Invalid enum value 'clear'"),
        ({"xids": {"Xid109": "event"}}, "policy.xids: Expected `str` matching regex"),
        ({"disruptionBudget": 0}, "policy.disruptionBudget: Expected `float` > 0"),
        ({"disruptionBudget": 5}, "policy.disruptionBudget: Expected `float` <= 1"),
    ],
)
def test_a_slip_is_told_with_its_place(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_policy(document)
    assert refused.value.message.startswith(said)


def test_slots_come_from_the_policy_or_the_kind_of_sharing() -> None:
    assert [slots_per_gpu(sharing, PoolPolicy()) for sharing in Sharing] == [0, 0, 4, 10]
    twelve = read_policy({"sharing": {"replicas": 12}})
    assert [slots_per_gpu(sharing, twelve) for sharing in Sharing] == [0, 0, 12, 12]
