"""Drivers and agents that are not what a node is to have."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from domain.conditions import ConditionStatus
from domain.errors import InvalidInput
from domain.hygiene import Upkeep, hygiene, version_numbers
from domain.node_spec import UNITS_MAX, Unit, read_units

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
FINE: Final = Upkeep(
    generation=2,
    observed_generation=2,
    units=(Unit("nvidia-driver", "580"),),
    drivers=frozenset({"580.105.08"}),
    agent_version="1.4.0",
    protocol="1",
    certificate=None,
)


def _said(upkeep: Upkeep, version_min: str | None = None) -> dict[str, str | None]:
    """Return each type's reason while it holds, else its status."""
    return {
        each.type: each.reason if each.status is ConditionStatus.TRUE else each.status.value
        for each in hygiene(upkeep, version_min, NOW)
    }


@pytest.mark.parametrize(
    ("upkeep", "said"),
    [
        (FINE, "false"),
        (replace(FINE, drivers=frozenset({"550.90.07"})), "OtherBranch"),
        (replace(FINE, drivers=frozenset({"580.1", "550.90.07"})), "OtherBranch"),
        (replace(FINE, units=(Unit("nvidia-driver", "580.65.06"),)), "false"),
        (replace(FINE, drivers=frozenset({"550.90.07"}), observed_generation=1), "false"),
        (replace(FINE, drivers=frozenset({"550.90.07"}), units=()), "false"),
        (replace(FINE, drivers=frozenset({"550.90.07"}), units=(Unit("nvidia-driver"),)), "false"),
        (replace(FINE, drivers=frozenset()), None),
        (replace(FINE, drivers=frozenset({"N/A"})), None),
    ],
)
def test_a_driver_of_another_branch_than_a_converged_nodes_unit_is_a_mismatch(upkeep: Upkeep, said: str | None) -> None:
    assert _said(upkeep).get("DriverMismatch") == said


@pytest.mark.parametrize(
    ("protocol", "version", "version_min", "said"),
    [
        ("1", "1.4.0", None, "false"),
        ("0.9", "1.4.0", None, "OlderProtocol"),
        ("1.2", "1.4.0", None, "false"),
        (None, "1.4.0", None, None),
        (None, "1.4.0", "1.4", None),
        (None, "1.3.9", "1.4", "OlderVersion"),
        ("1", "1.4.0", "1.4", "false"),
        ("1", "1.10", "1.4", "false"),
        ("1", "v1.3.9-rc1", "1.4", "OlderVersion"),
        ("1", "built by hand", "1.4", None),
        ("1", None, "1.4", None),
    ],
)
def test_an_agent_is_outdated_by_its_protocol_or_its_version(
    protocol: str | None, version: str | None, version_min: str | None, said: str | None
) -> None:
    assert _said(replace(FINE, protocol=protocol, agent_version=version), version_min).get("DaemonOutdated") == said


def test_versions_compare_by_their_numbers() -> None:
    assert version_numbers("1.0") == version_numbers("1") == (1,)
    assert version_numbers("v580.105.08-server") == (580, 105, 8)
    assert version_numbers("0") == (0,)
    assert version_numbers("unknown") is None
    assert version_numbers("9" * 5000) == (999_999_999,)


def test_units_stand_by_kind_and_each_kind_once() -> None:
    assert read_units([Unit("nvidia-driver", "580"), Unit("iommu")]) == (Unit("iommu"), Unit("nvidia-driver", "580"))
    for units, said in (
        ([Unit("a"), Unit("a", "2")], "units.1.kind: 'a' stands at 0 already"),
        ([Unit("NVIDIA driver")], "units.0.kind"),
        ([Unit("a", " ")], "units.0.version: empty"),
        ([Unit(f"u{number}") for number in range(UNITS_MAX + 1)], "at most 64"),
    ):
        with pytest.raises(InvalidInput, match=said):
            read_units(units)
