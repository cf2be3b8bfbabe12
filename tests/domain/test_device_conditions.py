"""Faults of devices as conditions of their node."""

from datetime import UTC, datetime

from domain.conditions import ConditionStatus, Observed
from domain.device_conditions import device_conditions
from domain.device_health import DeviceHealth, HealthSource
from domain.ids import DeviceId


def _fault(
    device_id: str, cause: str, reason: str = "NvlinkDegraded", message: str | None = "so it is"
) -> DeviceHealth:
    return DeviceHealth(
        device_id=DeviceId(device_id),
        source=HealthSource.INVENTORY,
        cause=cause,
        reason=reason,
        message=message,
        rule=None,
        since=datetime(2026, 1, 1, tzinfo=UTC),
    )


def _said(*faults: DeviceHealth) -> dict[str, Observed]:
    return {each.type: each for each in device_conditions(faults)}


def test_every_type_of_device_condition_is_told_and_holds_where_a_device_has_it() -> None:
    said = _said(_fault("GPU-1", "LinkInactive"))
    holding = {kind for kind, each in said.items() if each.status is ConditionStatus.TRUE}
    assert set(said) == {"RowRemapPending", "RowRemapFailed", "UncorrectableEcc", "NvlinkDegraded"}
    assert holding == {"NvlinkDegraded"}


def test_the_devices_are_named_in_their_order_with_what_is_wrong() -> None:
    said = _said(_fault("GPU-2", "LinkInactive", message=None), _fault("GPU-1", "LinkInactive"))["NvlinkDegraded"]
    assert (said.reason, said.message) == ("LinkInactive", "GPU-1: so it is; GPU-2: LinkInactive")


def test_several_causes_are_one_condition() -> None:
    said = _said(_fault("GPU-1", "LinkInactive"), _fault("GPU-1", "FabricFailed"))["NvlinkDegraded"]
    assert said.reason == "SeveralCauses"


def test_many_devices_are_named_up_to_a_bound() -> None:
    said = _said(*(_fault(f"GPU-{number:02}", "LinkInactive") for number in range(20)))["NvlinkDegraded"]
    assert said.message is not None
    assert said.message.endswith("; and 12 more")
