import pytest

from agent.gpus.fabric import mask_issues


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (0, ()),  # nothing is supported
        (0xAA, ()),  # every flag is supported and false
        (0x55, ("access_timeout_recovery", "degraded_bandwidth", "route_recovery_in_progress", "route_unhealthy")),
        (0x0100, ()),  # the configuration is checked and right
        (0x0800, ("incorrect_configuration_gpu_state_invalid",)),
        (0x2000, ("partition_unassigned",)),
        (0x8000, ("fabric_manager_disconnected",)),
        (0x0F00, ("0xf00",)),  # a configuration without a name
        (0x0003, ("0x3",)),  # a flag's fourth value
        (0x10010, ("route_unhealthy", "0x10000")),
    ],
)
def test_the_health_mask_is_named_field_by_field_and_the_rest_stays_raw(mask: int, expected: tuple[str, ...]) -> None:
    assert mask_issues(mask) == expected
