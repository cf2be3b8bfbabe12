"""Slots of batches: why an entry was refused."""

import strawberry

from domain.errors import InvalidSection, RateLimited
from resolvers.slots import Slot


@strawberry.type(description="Why one entry of a batch was refused.")
class SlotError:
    """A refusal in its slot."""

    code: str = strawberry.field(description="Such as INVALID_INPUT, NOT_FOUND or RATE_LIMITED.")
    message: str = strawberry.field(description="What is wrong, where, and what would be right.")
    section: str | None = strawberry.field(description="The section it is about.")
    place: str | None = strawberry.field(description="The place in the section, such as `gpus.3.uuid`.")
    retry_after_seconds: float | None = strawberry.field(
        description="With RATE_LIMITED: the entry is taken after so many seconds."
    )


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
        retry_after_seconds=refusal.retry_after_seconds if isinstance(refusal, RateLimited) else None,
    )
