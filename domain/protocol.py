"""What agents and servers speak with each other."""

from typing import Final

PROTOCOL: Final = "1"
"""The newest version. An agent that says an older one is outdated; one that is too old to say constrains nothing."""
