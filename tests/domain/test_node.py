"""What follows from a node's axes."""

import pytest

from domain.node import InventoryState, ProvisionState, inventory_state, provision_state_at_join

SET, OTHER = {"os": "a"}, {"os": "b"}


@pytest.mark.parametrize(
    ("reported", "applied", "failed", "digest", "state"),
    [
        (None, None, None, None, InventoryState.NONE),
        (SET, None, None, None, InventoryState.PENDING),
        (SET, OTHER, None, "d", InventoryState.PENDING),
        (SET, SET, None, "d", InventoryState.APPLIED),
        (SET, SET, None, "advisory:d", InventoryState.ADVISORY),
        (SET, OTHER, SET, "d", InventoryState.FAILED),
        (SET, OTHER, OTHER, "d", InventoryState.PENDING),
    ],
)
def test_where_an_inventory_stands(
    reported: dict[str, str] | None,
    applied: dict[str, str] | None,
    failed: dict[str, str] | None,
    digest: str | None,
    state: InventoryState,
) -> None:
    assert inventory_state(reported, applied, failed, digest) is state


def test_a_node_without_checks_is_adopted_when_it_joins() -> None:
    assert provision_state_at_join(checks=0) is ProvisionState.ADOPTED
    assert provision_state_at_join(checks=1) is ProvisionState.ADOPTING
