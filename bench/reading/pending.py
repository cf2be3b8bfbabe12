"""What the schema does not have yet; once it has all of it, this module goes."""

from typing import Final

SELECTOR: Final = True
"""`NodeFilter.selector`, in `filtered`."""
FLEET_SUMMARY: Final = True
"""`Query.fleetSummary`, in `counts`."""
