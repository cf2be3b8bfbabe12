"""What every agent says of itself at its hello."""

from importlib.metadata import version
from typing import Final

from msgspec import UNSET

from agent.wire import Hello, Label
from domain.protocol import PROTOCOL

AGENT_VERSION: Final = version("fleetgraph")


def introduction(
    identity_key: str,
    *,
    hostname: str | None = None,
    boot_id: str | None = None,
    management_address: str | None = None,
    labels: tuple[Label, ...] | None = None,
) -> Hello:
    """Return a hello of this agent; what is not known stays unsaid, so that the server keeps what it knows."""
    return Hello(
        identity_key=identity_key,
        hostname=hostname or UNSET,
        boot_id=boot_id or UNSET,
        agent_version=AGENT_VERSION,
        protocol=PROTOCOL,
        management_address=management_address or UNSET,
        labels=UNSET if labels is None else labels,
    )
