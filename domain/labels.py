"""Labels: what a node says of itself, and who says it (rule 6)."""

from enum import StrEnum


class LabelSource(StrEnum):
    """Whose word a label is; each covers those before it, and nobody overwrites the last two."""

    AGENT = "agent"
    OPERATOR = "operator"
    INVENTORY = "inventory"
    SYSTEM = "system"
