"""What sites and pools are."""

from enum import StrEnum


class SiteKind(StrEnum):
    """Whose hardware a site holds."""

    SHARED = "shared"
    DEDICATED = "dedicated"
    CUSTOM = "custom"


class PoolClass(StrEnum):
    """What a pool's machines are used as."""

    METAL_HOST = "metal-host"
    METAL_DEDICATED = "metal-dedicated"
    VPS_HOST = "vps-host"
    PROVIDER = "provider"


class Sharing(StrEnum):
    """How a pool's GPUs are divided."""

    EXCLUSIVE = "exclusive"
    MIG = "mig"
    TIMESLICE = "timeslice"
    MPS = "mps"


class PoolAgent(StrEnum):
    """How a pool's machines are reached."""

    BCD = "bcd"
    NONE = "none"
