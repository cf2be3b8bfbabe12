"""What the agent and the server say to each other: GraphQL documents, their inputs and their answers.

Source: the mutations for agents in the project's schema.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

REPORTS_MAX: Final = 1000
ENTRIES_MAX: Final = 200
BODY_BYTES_MAX: Final = 24 * 1024 * 1024
"""The server takes 32 MiB; the rest is for the document and what JSON adds."""

SLOT_REFUSAL: Final = """
fragment Refusal on SlotError { code message section place retryAfterSeconds }"""
HELLO: Final = """mutation Hello($input: HelloInput!) {
  hello(input: $input) { node { id generation } sessionId requestSections leaseSeconds }
}"""
RECORD_HASHES: Final = f"""mutation RecordInventoryHashes($entries: [HashReportInput!]!) {{
  recordInventoryHashes(entries: $entries) {{ nodeId requestSections error {{ ...Refusal }} }}
}}{SLOT_REFUSAL}"""
INGEST: Final = f"""mutation IngestSections($entries: [SectionsInput!]!) {{
  ingestSections(entries: $entries) {{ nodeId stored error {{ ...Refusal }} }}
}}{SLOT_REFUSAL}"""
_COMMAND_FIELDS: Final = "id sequence kind payload state"
TAKE_COMMANDS: Final = f"""mutation TakeCommands($nodeId: ID!) {{
  takeCommands(nodeId: $nodeId) {{ {_COMMAND_FIELDS} }}
}}"""
START_COMMAND: Final = f"""mutation StartCommand($input: StartCommandInput!) {{
  startCommand(input: $input) {{ {_COMMAND_FIELDS} }}
}}"""
COMPLETE_COMMAND: Final = f"""mutation CompleteCommand($input: CommandResultInput!) {{
  completeCommand(input: $input) {{ {_COMMAND_FIELDS} }}
}}"""
FOLLOW_COMMANDS: Final = """subscription FollowCommands($nodeId: ID!) {
  nodeCommands(nodeId: $nodeId) { id }
}"""
_STATUS_FIELDS: Final = """fragment Status on ComputeNode {
  inventoryStatus { state reportedDigest appliedDigest missingSections error }
  latestSnapshot { id digest }
}"""


def status_query(count: int) -> str:
    """Write the query for the status of `count` nodes: `$i0` is answered as `n0`, and so on."""
    parameters = ", ".join(f"$i{place}: ID!" for place in range(count))
    fields = "\n".join(f"  n{place}: computeNode(id: $i{place}) {{ ...Status }}" for place in range(count))
    return f"query InventoryStatus({parameters}) {{\n{fields}\n}}\n{_STATUS_FIELDS}"


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A value on the wire."""


class SectionHash(Message, frozen=True):
    """A section's name and the hash of its bytes."""

    name: str
    sha256: str


class Label(Message, frozen=True):
    """A label that the agent is configured with."""

    key: str
    value: str


class Certificate(Message, frozen=True):
    """How long the node's identity certificate holds; the serial number in lower-case hexadecimal."""

    serial: str
    not_before: datetime
    not_after: datetime


class Hello(Message, frozen=True, omit_defaults=True):
    """Who the node is; what is unset is left as the server knows it."""

    identity_key: str
    hostname: str | UnsetType = UNSET
    boot_id: str | UnsetType = UNSET
    agent_version: str | UnsetType = UNSET
    protocol: str | UnsetType = UNSET
    features: tuple[str, ...] | UnsetType = UNSET
    management_address: str | UnsetType = UNSET
    labels: tuple[Label, ...] | UnsetType = UNSET
    certificate: Certificate | UnsetType = UNSET
    hashes: tuple[SectionHash, ...] | UnsetType = UNSET


class HashReport(Message, frozen=True):
    """The hashes of a node's sections, and the time by the node's clock."""

    node_id: str
    hashes: tuple[SectionHash, ...]
    sent_at: datetime | UnsetType = UNSET


class SectionContent(Message, frozen=True):
    """A section's bytes, which travel as base64."""

    name: str
    sha256: str
    content: bytes


class Sections(Message, frozen=True):
    """Sections of one node."""

    node_id: str
    sections: tuple[SectionContent, ...]


class NodeRef(Message, frozen=True):
    """A node in an answer, with the generation of its desired state."""

    id: str
    generation: int = 0


class Greeting(Message, frozen=True):
    """The answer to a hello."""

    node: NodeRef
    session_id: str
    request_sections: tuple[str, ...]
    lease_seconds: int


class SlotError(Message, frozen=True):
    """Why one entry of a batch was refused."""

    code: str
    message: str
    section: str | None = None
    place: str | None = None
    retry_after_seconds: float | None = None


class HashAnswer(Message, frozen=True):
    """The sections to send, or why the report was refused."""

    node_id: str
    request_sections: tuple[str, ...] = ()
    error: SlotError | None = None


class IngestAnswer(Message, frozen=True):
    """The sections stored, or why none of the entry was."""

    node_id: str
    stored: tuple[str, ...] = ()
    error: SlotError | None = None


class CommandState(StrEnum):
    """Where a command is, by the name the graph has for it."""

    PENDING = "PENDING"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


class Command(Message, frozen=True):
    """What the node is to do."""

    id: str
    sequence: int
    kind: str
    payload: dict[str, Any]
    state: CommandState


class CommandRef(Message, frozen=True):
    """A command of a node."""

    node_id: str
    command_id: str


class CommandStart(CommandRef, frozen=True):
    """A command that is about to be run, and what the agent calls this run."""

    run_id: str


class CommandOutcome(StrEnum):
    """What became of a command."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class CommandResult(Message, frozen=True, omit_defaults=True):
    """What became of a command, why, and what was found."""

    outcome: CommandOutcome
    reason: str | None = None
    message: str | None = None
    result: dict[str, Any] | None = None


class StatusState(StrEnum):
    """Where a node's inventory stands."""

    NONE = "NONE"
    PENDING = "PENDING"
    APPLIED = "APPLIED"
    ADVISORY = "ADVISORY"
    FAILED = "FAILED"


class InventoryStatus(Message, frozen=True):
    """A node's inventory on its way into the graph."""

    state: StatusState
    reported_digest: str | None = None
    applied_digest: str | None = None
    missing_sections: tuple[str, ...] = ()
    error: str | None = None


class SnapshotRef(Message, frozen=True):
    """A snapshot in an answer."""

    id: str
    digest: str


class NodeStatus(Message, frozen=True):
    """A node's inventory status and its newest snapshot."""

    inventory_status: InventoryStatus
    latest_snapshot: SnapshotRef | None = None
