"""Slots of batches: why an entry was refused."""

import strawberry

from domain.errors import InvalidSection
from resolvers.slots import Slot


@strawberry.type(description="Why one entry of a batch was refused.")
class SlotError:
    """A refusal in its slot."""

    code: str = strawberry.field(description="Such as INVALID_INPUT or NOT_FOUND.")
    message: str = strawberry.field(description="What is wrong, where, and what would be right.")
    section: str | None = strawberry.field(description="The section it is about.")
    place: str | None = strawberry.field(description="The place in the section, such as `gpus.3.uuid`.")


def slot_error(slot: Slot) -> SlotError | None:
    """Return a slot's refusal as GraphQL shows it."""
    refusal = slot.refusal
    if refusal is None:
        return None
    inside = refusal if isinstance(refusal, InvalidSection) else None
    return SlotError(
        code=refusal.code.value,
        message=refusal.message,
        section=inside.section if inside else None,
        place=(inside.place or None) if inside else None,
    )
