"""The fields that are not compiled, each with the reason. Entries may go away; a new one needs a very good reason."""

from collections.abc import Mapping
from typing import Final

_IN_PYTHON: Final = "a Python resolver computes it"
_NO_READ: Final = "a root field that is no read"

NOT_COMPILED: Final[Mapping[str, str]] = {
    "Query.fleetDiff": _NO_READ,
    "Query.gpuModels": _NO_READ,
    "Query.inventoryDiff": _NO_READ,
    "Query.normalizeGpuProduct": _NO_READ,
    "Query.viewer": _NO_READ,
    "Query.xidCatalog": _NO_READ,
    "Snapshot.diff": _IN_PYTHON,
    "SnapshotSections.raw": _IN_PYTHON,
    "SnapshotSections.sha256": _IN_PYTHON,
}
