"""The types of conditions: who says them, what they do to placement, what raises and what clears them (rule 8).

Those of Xids are made by their rules (`domain.xid_rules`), whose policy a pool may change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ConditionPolicy(StrEnum):
    """What a condition that holds does to placement."""

    NO_SCHEDULE = "no_schedule"
    NO_SCHEDULE_ON_VPS_HOST = "no_schedule_on_vps_host"
    """NoSchedule in `vps-host` pools, an alert elsewhere."""
    DEVICE = "device"
    """It quarantines the GPU; the node stays."""
    ALERT = "alert"


class ConditionSource(StrEnum):
    """Who says that a condition holds."""

    INVENTORY = "inventory"
    HYGIENE = "hygiene sweep"
    PRESSURE = "host pressure"
    DAEMON = "daemon"
    LIFECYCLE = "lifecycle"


@dataclass(frozen=True, slots=True)
class ConditionType:
    """A type of condition; `raised` and `cleared` say by what, for people."""

    name: str
    source: ConditionSource
    policy: ConditionPolicy
    raised: str
    cleared: str


_REPORTED: Final = "the last status report says so"
_NOT_REPORTED: Final = "a status report that does not"


def _daemon(name: str, policy: ConditionPolicy, what: str) -> ConditionType:
    return ConditionType(name, ConditionSource.DAEMON, policy, f"{what}: {_REPORTED}", _NOT_REPORTED)


CONDITION_TYPES: Final = (
    ConditionType(
        "GpuCountMismatch",
        ConditionSource.INVENTORY,
        ConditionPolicy.NO_SCHEDULE,
        "a complete enumeration has another number of GPUs than the pool expects, else than at the last acceptance",
        "the number, or no expectation",
    ),
    ConditionType(
        "GpuModelUnknown",
        ConditionSource.INVENTORY,
        ConditionPolicy.NO_SCHEDULE,
        "a board whose name the table of models lacks",
        "a table that has it, or a complete enumeration without such a board",
    ),
    ConditionType(
        "DuplicateIdentity",
        ConditionSource.INVENTORY,
        ConditionPolicy.NO_SCHEDULE,
        "a device that another node owns, a hardware key that another node has, or two machines that take turns",
        "the other node letting go, or `resolveDuplicateIdentity`",
    ),
    ConditionType(
        "InventoryDegraded",
        ConditionSource.INVENTORY,
        ConditionPolicy.ALERT,
        "an enumeration of GPUs that is incomplete or unavailable",
        "a complete one",
    ),
    ConditionType(
        "RowRemapPending",
        ConditionSource.INVENTORY,
        ConditionPolicy.DEVICE,
        "a row remap or a page retirement that waits for a reset (Xid 63 may tell it first)",
        "an inventory without it; what Xid 63 told by a reset, a reboot or `clearDeviceHealth`",
    ),
    ConditionType(
        "RowRemapFailed",
        ConditionSource.INVENTORY,
        ConditionPolicy.DEVICE,
        "a row for which no spare was left (Xid 64 may tell it first)",
        "an inventory without it; what Xid 64 told by a reset, a reboot or `clearDeviceHealth`",
    ),
    ConditionType(
        "UncorrectableEcc",
        ConditionSource.INVENTORY,
        ConditionPolicy.DEVICE,
        "uncorrectable ECC errors since the driver was loaded",
        "an inventory that counts none, which a reset brings",
    ),
    ConditionType(
        "NvlinkDegraded",
        ConditionSource.INVENTORY,
        ConditionPolicy.DEVICE,
        "links that were active and are not, fewer than its kind has, or a fabric that failed or is unhealthy",
        "an inventory without it",
    ),
    ConditionType(
        "DriverMismatch",
        ConditionSource.HYGIENE,
        ConditionPolicy.NO_SCHEDULE,
        "a converged node with a GPU driver of another branch than its `nvidia-driver` unit",
        "the branch, or no such unit",
    ),
    ConditionType(
        "CertExpiring",
        ConditionSource.HYGIENE,
        ConditionPolicy.NO_SCHEDULE,
        "the newest certificate has less than a tenth of its life left, or less than an hour",
        "a newer certificate",
    ),
    ConditionType(
        "DaemonOutdated",
        ConditionSource.HYGIENE,
        ConditionPolicy.NO_SCHEDULE,
        "an agent of an older protocol than the server's, or older than `FLEETGRAPH_MIN_AGENT_VERSION`",
        "a newer agent",
    ),
    *(
        ConditionType(
            name,
            ConditionSource.PRESSURE,
            ConditionPolicy.NO_SCHEDULE_ON_VPS_HOST,
            f"{what} at or above the setting's first percentage",
            "all of it below the second",
        )
        for name, what in (
            ("CpuPressure", "PSI of the CPU, or steal,"),
            ("MemoryPressure", "PSI of memory"),
            ("DiskPressure", "PSI of disks"),
        )
    ),
    _daemon("ForeignGpuExposure", ConditionPolicy.NO_SCHEDULE, "GPUs are given out past the platform"),
    _daemon("PodResourcesUnavailable", ConditionPolicy.NO_SCHEDULE, "the kubelet does not tell which GPUs pods have"),
    _daemon("KubernetesReleaseStuck", ConditionPolicy.NO_SCHEDULE, "a pod still holds devices that were released"),
    _daemon("KubernetesReleasesUnreadable", ConditionPolicy.NO_SCHEDULE, "pending releases cannot be read"),
    _daemon("KubernetesReleased", ConditionPolicy.ALERT, "devices were released to Kubernetes"),
    _daemon("KubernetesTaintsDrift", ConditionPolicy.ALERT, "the node's taints are not what they should be"),
    _daemon("FabricManagerDown", ConditionPolicy.ALERT, "the fabric manager does not run"),
    _daemon("MPSDown", ConditionPolicy.ALERT, "the MPS daemon does not run"),
    _daemon("RebootRequired", ConditionPolicy.ALERT, "a setting or a package waits for a reboot"),
    _daemon("HostManagedExternally", ConditionPolicy.ALERT, "somebody else configures the host"),
    ConditionType(
        "AcceptanceFailed",
        ConditionSource.LIFECYCLE,
        ConditionPolicy.NO_SCHEDULE,
        "a check of an acceptance attempt that failed, expired or is unsupported; unknown while it runs",
        "an attempt that passes; only `adoptNode` begins one",
    ),
    ConditionType(
        "NodeUnreachable",
        ConditionSource.LIFECYCLE,
        ConditionPolicy.NO_SCHEDULE,
        "a silence of `FLEETGRAPH_UNREACHABLE_AFTER`, later of `lostAfter`, while somebody listened",
        "the next sign of life",
    ),
    ConditionType(
        "Remediating",
        ConditionSource.LIFECYCLE,
        ConditionPolicy.NO_SCHEDULE,
        "a run of remediation that began",
        "its end",
    ),
    ConditionType(
        "ClockSkew",
        ConditionSource.LIFECYCLE,
        ConditionPolicy.ALERT,
        "a node's clock 10 seconds or more off the server's",
        "less than 5",
    ),
    ConditionType(
        "PcieReplayHigh",
        ConditionSource.LIFECYCLE,
        ConditionPolicy.ALERT,
        "nothing in this version: counters of PCIe replays are no inventory",
        "nothing in this version",
    ),
)
POLICIES: Final[Mapping[str, ConditionPolicy]] = {each.name: each.policy for each in CONDITION_TYPES}
"""By type; of a type without a row its source says what it does."""
NO_SCHEDULE: Final = frozenset(kind for kind, policy in POLICIES.items() if policy is ConditionPolicy.NO_SCHEDULE)
