"""What the schema does not have yet; once it has all of it, this module goes."""

from typing import Final

LABELS_OF_NODES: Final = False
"""`ComputeNode.labels`, in the lists."""
SELECTOR: Final = False
"""`NodeFilter.selector`, in `filtered`."""
FLEET_SUMMARY: Final = False
"""`Query.fleetSummary`, in `counts`."""
