"""The rules for faults that GPUs and their switches print to the kernel log.

The rules are data of the package (`xid_rules.json`), with where they come from. A change of any row raises `version`:
each verdict is kept with the id and the version of the rule that gave it.
"""

from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from typing import Final

import msgspec


class XidPolicy(StrEnum):
    """What a fault does to placement; the last three are decided by what else is known of the fault."""

    EVENT = "event"
    UNKNOWN = "unknown"
    """An event too: what the code means is not known."""
    QUARANTINE = "quarantine"
    QUARANTINE_AND_DRAIN = "quarantine_and_drain"
    NODE_NO_SCHEDULE = "node_no_schedule"
    NODE_ALERT = "node_alert"
    CLEAR = "clear"
    """What Xid 154 set is over."""
    ROW_REMAP = "row_remap"
    RECOVERY_ACTION = "recovery_action"
    NVLINK5 = "nvlink5"


class XidClass(StrEnum):
    """What a code tells of."""

    APPLICATION = "application"
    """Of a program: with a MIG instance it touches that instance, never the board."""
    DRIVER = "driver"
    FIRMWARE = "firmware"
    HARDWARE = "hardware"
    MEMORY = "memory"
    LINK = "link"
    CONSEQUENCE = "consequence"
    STATE = "state"
    INFORMATIONAL = "informational"
    LEGACY = "legacy"
    UNUSED = "unused"
    UNLISTED = "unlisted"
    """The driver's header names it; no catalog tells more."""


class XidRemedy(StrEnum):
    """What ends it."""

    GPU_RESET = "gpu_reset"
    REBOOT = "reboot"
    IMEX_RESTART = "imex_restart"


class Severity(StrEnum):
    """How severe a row of the NVLink 5 table is."""

    FATAL = "fatal"
    LINK_FATAL = "link_fatal"
    NONFATAL = "nonfatal"


class Fatality(StrEnum):
    """Whether an error of a switch is fatal."""

    ALWAYS = "always"
    POTENTIAL = "potential"
    NEVER = "never"


class XidSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where facts of the rules come from."""

    key: str
    description: str


class XidRule(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"xid_class": "class", "recommended_action": "recommendedAction"},
):
    """A code. `immediate` and `later` are NVIDIA's words for what to do, `recommended_action` ours."""

    code: int
    xid_class: XidClass
    meaning: str
    recommended_action: str
    policy: XidPolicy
    name: str | None = None
    immediate: str | None = None
    later: str | None = None
    condition: str | None = None
    remedy: XidRemedy | None = None

    @property
    def id(self) -> str:
        """The rule's id, which verdicts keep."""
        return f"xid.{self.code}"


class RecoveryAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value of Xid 154; the label differs between drivers, the value does not."""

    value: int
    label: str
    meaning: str
    policy: XidPolicy
    remedy: XidRemedy | None = None

    @property
    def id(self) -> str:
        """The rule's id, which verdicts keep."""
        return f"xid.154.{self.value}"


class Nvlink5Rule(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"bits_before_575": "bitsBefore575", "bits_since_575": "bitsSince575", "action_if_fatal": "actionIfFatal"},
):
    """A row for Xids 144 to 150: unit, bits of the first register (bit 31 first, `-` is any) and error status.

    `action_if_fatal` stands where the driver's own word of severity decides.
    """

    id: str
    code: int
    units: tuple[str, ...]
    bits_before_575: str
    bits_since_575: str
    status: int
    severity: Severity
    action: str
    later: str
    action_if_fatal: str | None = None
    origin: str | None = None


class SxidRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A code of an NVSwitch of HGX A100 and H100."""

    code: int
    name: str
    fatal: Fatality


class XidRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One version of the rules."""

    version: int
    sources: tuple[XidSource, ...]
    codes: tuple[XidRule, ...]
    recovery: tuple[RecoveryAction, ...]
    nvlink5: tuple[Nvlink5Rule, ...]
    sxids: tuple[SxidRule, ...]

    @cached_property
    def by_code(self) -> dict[int, XidRule]:
        """The codes' rules."""
        return {rule.code: rule for rule in self.codes}

    @cached_property
    def by_recovery_action(self) -> dict[int, RecoveryAction]:
        """The values of Xid 154."""
        return {action.value: action for action in self.recovery}

    @cached_property
    def by_sxid(self) -> dict[int, SxidRule]:
        """The codes of switches."""
        return {rule.code: rule for rule in self.sxids}


XID_RULES: Final = msgspec.json.decode(
    files("domain").joinpath("xid_rules.json").read_bytes(), type=XidRules, strict=True
)
