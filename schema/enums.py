"""Enumerations: the domain's, with the descriptions that the graph shows."""

from enum import Enum
from typing import Final

import strawberry

from domain.acceptance import AttemptState as AcceptanceState
from domain.acceptance import CheckState as AcceptanceCheckState
from domain.availability import Availability
from domain.commands import CommandOutcome, CommandState
from domain.conditions import ConditionStatus
from domain.device_health import HealthEnd, HealthSource
from domain.devices import DeviceClass
from domain.diff import ChangeType as InventoryChangeType
from domain.gpu_names import GpuKind
from domain.kernel_faults import FaultKind
from domain.labels import LabelSource
from domain.node import Connectivity, InventoryState, NodeRole, NodeState, Power, ProvisionState, Trust
from domain.node_fault import FaultEnd
from domain.node_view import ViewChange
from domain.pool import PoolAgent, PoolClass, Sharing, SiteKind
from domain.pressure import Pressure
from domain.remediation_run import RemediationState
from domain.xid_rules import Severity, XidClass, XidPolicy, XidRemedy
from domain.xid_verdict import Scope

_DESCRIPTIONS: Final[dict[type[Enum], str]] = {
    Availability: "Why a fact has no value.",
    CommandOutcome: "What became of a command that was run.",
    CommandState: "Where a command is on its way.",
    ConditionStatus: "Whether a condition holds.",
    Connectivity: "Whether a node's agent is heard.",
    DeviceClass: "What a device is.",
    FaultEnd: "Why a fault of the kernel log is over.",
    GpuKind: "What the name of a GPU is the name of.",
    HealthEnd: "Why a fault of a device is over.",
    HealthSource: "Who says that something is wrong with a device.",
    InventoryState: "Where a node's inventory stands.",
    LabelSource: "Whose word a label is.",
    NodeRole: "What a node is for.",
    NodeState: "A node's state for people, derived from its axes.",
    PoolAgent: "How a pool's machines are reached.",
    PoolClass: "What a pool's machines are used as.",
    Power: "Whether a machine has power.",
    ProvisionState: "Where a node is in its life.",
    RemediationState: "Where a run of remediation is on its way.",
    Sharing: "How a pool's GPUs are divided.",
    SiteKind: "Whose hardware a site holds.",
    Trust: "Whose word a node's reports are.",
    XidClass: "What a code of the driver's Xids tells of.",
    XidPolicy: "What a fault of the kernel log does to placement.",
    XidRemedy: "What ends a fault of the kernel log.",
}

strawberry.enum(AcceptanceState, name="AcceptanceState", description="Where an attempt at acceptance is.")
strawberry.enum(AcceptanceCheckState, name="AcceptanceCheckState", description="What became of an acceptance check.")
for _enum, _description in _DESCRIPTIONS.items():
    strawberry.enum(_enum, description=_description)
strawberry.enum(ViewChange, name="NodeChangeKind", description="What became of a node in a live view.")
strawberry.enum(FaultKind, name="XidKind", description="Which of the driver's lines told of a fault.")
strawberry.enum(Pressure, name="PressureKind", description="What of a host's pressure is measured.")
strawberry.enum(Scope, name="XidScope", description="What a fault of the kernel log touches.")
strawberry.enum(Severity, name="XidSeverity", description="How severe a row of the NVLink 5 table is.")
strawberry.enum(InventoryChangeType, name="InventoryChangeType", description="What kind of difference a change is.")

__all__ = [
    "AcceptanceCheckState",
    "AcceptanceState",
    "Availability",
    "CommandOutcome",
    "CommandState",
    "ConditionStatus",
    "Connectivity",
    "DeviceClass",
    "FaultEnd",
    "FaultKind",
    "GpuKind",
    "HealthEnd",
    "HealthSource",
    "InventoryChangeType",
    "InventoryState",
    "LabelSource",
    "NodeRole",
    "NodeState",
    "PoolAgent",
    "PoolClass",
    "Power",
    "Pressure",
    "ProvisionState",
    "RemediationState",
    "Scope",
    "Severity",
    "Sharing",
    "SiteKind",
    "Trust",
    "ViewChange",
    "XidClass",
    "XidPolicy",
    "XidRemedy",
]
