"""What `nvidia-smi -q -x` calls its facts, in every dialect: a table of names, newest first.

Source: recorded logs of drivers 390 to 595 (DTD v10 to v13) and the renames reported since (case A15). Paths start at
their parent element, so that a MIG device's memory is never taken for its board's. Readings that change by the second
have no name here and so never enter.
"""

from collections.abc import Mapping
from typing import Final

Paths = tuple[str, ...]

ATTACHED: Final[Paths] = ("attached_gpus",)
DRIVER: Final[Paths] = ("driver_version", "kmd_version")
CUDA: Final[Paths] = ("cuda_version", "cuda_umd_version")

NAME: Final[Paths] = ("product_name",)
UUID: Final[Paths] = ("uuid",)
SERIAL: Final[Paths] = ("serial",)
ARCHITECTURE: Final[Paths] = ("product_architecture",)
VBIOS: Final[Paths] = ("vbios_version",)
PCI: Final[Paths] = ("pci/pci_bus_id",)
MEMORY: Final[Paths] = ("fb_memory_usage/total", "memory_usage/total")
PART_NUMBER: Final[Paths] = ("board_part_number", "gpu_part_number")
VIRTUALIZATION: Final[Paths] = ("gpu_virtualization_mode/virtualization_mode",)

ECC_MODE: Final[Mapping[str, Paths]] = {"current": ("ecc_mode/current_ecc",), "pending": ("ecc_mode/pending_ecc",)}
MIG_MODE: Final[Mapping[str, Paths]] = {"current": ("mig_mode/current_mig",), "pending": ("mig_mode/pending_mig",)}
LINK_WIDTH: Final[Mapping[str, Paths]] = {
    "current": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
}

REMAPPED_ROWS: Final[Mapping[str, Paths]] = {
    "correctable": ("remapped_rows/remapped_row_corr",),
    "uncorrectable": ("remapped_rows/remapped_row_unc",),
}
REMAPPED_ROWS_STATE: Final[Mapping[str, Paths]] = {
    "pending": ("remapped_rows/remapped_row_pending",),
    "failure": ("remapped_rows/remapped_row_failure",),
}
RETIRED_PAGES: Final[Mapping[str, Paths]] = {
    "sbe": ("retired_pages/multiple_single_bit_retirement/retired_count",),
    "dbe": ("retired_pages/double_bit_retirement/retired_count",),
}
RETIRED_PAGES_PENDING: Final[Paths] = ("retired_pages/pending_retirement", "retired_pages/pending_blacklist")

ECC_COUNTERS: Final[Mapping[str, str]] = {"volatile": "ecc_errors/volatile", "aggregate": "ecc_errors/aggregate"}
ECC_UNCORRECTABLE: Final[tuple[Paths, ...]] = (
    ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable"),
    ("sram_uncorrectable", "dram_uncorrectable"),
    ("double_bit/total",),
)
"""Counters whose sum is the total of uncorrectable errors; the first dialect that is all known counts."""

MIG_DEVICES: Final = "mig_devices/mig_device"
MIG_GI: Final[Paths] = ("gpu_instance_id",)
MIG_CI: Final[Paths] = ("compute_instance_id",)
MIG_UUID: Final[Paths] = ("uuid",)
MIG_PROFILE: Final[Paths] = ("profile",)
MIG_MEMORY: Final[Paths] = ("fb_memory_usage/total",)

FABRIC_STATE: Final[Paths] = ("fabric/state", "gpu_fabric/state")
FABRIC_STATUS: Final[Paths] = ("fabric/status", "gpu_fabric/status")
FABRIC_CLUSTER: Final[Paths] = ("fabric/clusterUuid", "gpu_fabric/clusterUuid", "fabric/cluster_uuid")
FABRIC_CLIQUE: Final[Paths] = ("fabric/cliqueId", "gpu_fabric/cliqueId", "fabric/clique_id")
FABRIC_SUMMARY: Final[Paths] = ("fabric/health/summary", "gpu_fabric/health/summary")
FABRIC_CONFIGURATION: Final[Paths] = (
    "fabric/health/incorrect_configuration",
    "gpu_fabric/health/incorrect_configuration",
)
FABRIC_ISSUES: Final[tuple[tuple[str, Paths, str], ...]] = (
    ("degraded_bandwidth", ("fabric/health/bandwidth", "gpu_fabric/health/bandwidth"), "degraded"),
    (
        "route_recovery_in_progress",
        ("fabric/health/route_recovery_in_progress", "gpu_fabric/health/route_recovery_in_progress"),
        "true",
    ),
    ("route_unhealthy", ("fabric/health/route_unhealthy", "gpu_fabric/health/route_unhealthy"), "true"),
    (
        "access_timeout_recovery",
        ("fabric/health/access_timeout_recovery", "gpu_fabric/health/access_timeout_recovery"),
        "true",
    ),
    (
        "partition_unassigned",
        ("fabric/health/partition_assigned", "gpu_fabric/health/partition_assigned"),
        "false",
    ),
)
"""Conditions of the fabric's health: the name, where it stands, and the word by which it is reported."""

VOLATILE: Final = frozenset({"processes", "accounted_processes", "supported_clocks"})
"""Lists whose texts are not the GPU's own words: a process may be called anything."""
