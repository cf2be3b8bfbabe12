"""What follows from a node's axes."""

from domain.node import ProvisionState, generation_at_join, provision_state_at_join


def test_a_node_without_checks_is_adopted_when_it_joins() -> None:
    assert provision_state_at_join(checks=0) is ProvisionState.ADOPTED
    assert provision_state_at_join(checks=1) is ProvisionState.ADOPTING
    assert generation_at_join(ProvisionState.ADOPTED) == 1
    assert generation_at_join(ProvisionState.ADOPTING) == 0
