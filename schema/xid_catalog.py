"""The rules for faults of the kernel log."""

from typing import cast

import strawberry

from domain import xid_rules as domain
from resolvers import xid_catalog as cases
from schema.enums import Severity, XidClass, XidPolicy, XidRemedy


@strawberry.type(description="A value of Xid 154: what the driver asks for to recover a GPU.")
class XidRecoveryAction:
    """`domain.xid_rules.RecoveryAction`."""

    id: strawberry.ID = strawberry.field(description="The rule's id, which verdicts keep.")
    value: int = strawberry.field(description="The number that the line changes to; it decides.")
    label: str = strawberry.field(description="The driver's word for it, which differs between drivers.")
    meaning: str = strawberry.field(description="What it asks for.")
    policy: XidPolicy = strawberry.field(description="What it does to placement by default.")
    remedy: XidRemedy | None = strawberry.field(description="What ends it.")


@strawberry.type(description="A row by which Xids 144 to 150 of NVLink 5 are decoded.")
class XidNvlink5Rule:
    """`domain.xid_rules.Nvlink5Rule`."""

    id: strawberry.ID = strawberry.field(description="The rule's id, which verdicts keep.")
    units: list[str] = strawberry.field(description="Names of the unit that tells of it.")
    bits_before_575: str = strawberry.field(
        name="bitsBefore575",
        description="Bits of the first register under drivers before branch 575, bit 31 first; `-` is any.",
    )
    bits_since_575: str = strawberry.field(
        name="bitsSince575", description="The same under drivers of branch 575 and later."
    )
    severity: Severity = strawberry.field(description="How severe the catalog calls it.")
    origin: str | None = strawberry.field(description="Where it comes from: hardware, software, firmware.")
    action: str = strawberry.field(description="What the catalog says to do, in its words.")
    action_if_fatal: str | None = strawberry.field(
        description="What to do instead where the driver calls it fatal; null where its word changes nothing."
    )
    later: str = strawberry.field(description="What to do if it comes back, in the catalog's words.")

    @strawberry.field(description="The second register, in hexadecimal.")
    def status(self) -> str:
        """Write the status, which is too large for Int."""
        return f"0x{cast('domain.Nvlink5Rule', self).status:08x}"


@strawberry.type(description="A code of the driver's Xids: what it means, and what it does to placement by default.")
class XidRule:
    """`domain.xid_rules.XidRule`."""

    id: strawberry.ID = strawberry.field(description="The rule's id, which verdicts keep with the version.")
    code: int = strawberry.field(description="The Xid's number.")
    name: str | None = strawberry.field(description="The driver's name for it.")
    xid_class: XidClass = strawberry.field(name="class", description="What it tells of.")
    meaning: str = strawberry.field(description="What it means.")
    immediate: str | None = strawberry.field(description="What NVIDIA's catalog says to do at once, in its words.")
    later: str | None = strawberry.field(description="What it says to do if that did not help, in its words.")
    recommended_action: str = strawberry.field(description="What to do, for people.")
    policy: XidPolicy = strawberry.field(description="What it does to placement where the pool's policy says nothing.")
    condition: str | None = strawberry.field(description="The type of condition that it raises.")
    remedy: XidRemedy | None = strawberry.field(description="What ends it.")

    @strawberry.field(description="The version of the rules: raised with every change of one.")
    def version(self) -> int:
        """Return the version."""
        return cases.rules_version()

    @strawberry.field(description="The values that decide: of Xid 154, else none.")
    def recovery_actions(self) -> list[XidRecoveryAction]:
        """Return the values of Xid 154."""
        return cast("list[XidRecoveryAction]", cases.recovery_actions(cast("domain.XidRule", self)))

    @strawberry.field(description="The rows by which it is decoded: of Xids 144 to 150, else none.")
    def nvlink5_rules(self) -> list[XidNvlink5Rule]:
        """Return the rows of NVLink 5."""
        return cast("list[XidNvlink5Rule]", cases.nvlink5_rules(cast("domain.XidRule", self)))
