"""What the schema does not have yet; once it has all of it, this module goes."""

from typing import Final

SELECTOR: Final = False
"""`NodeFilter.selector`, in `filtered`."""
FLEET_SUMMARY: Final = False
"""`Query.fleetSummary`, in `counts`."""
