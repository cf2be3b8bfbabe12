"""Answering: the reads of an operation are made, and what they bring is joined into the response."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from graphql import FieldNode, GraphQLField, is_non_null_type, located_error

from db.database import AbsentValue
from db.views.plan import PagePlan
from domain.access import Permission
from resolvers.context import Context
from resolvers.reads import One, Page, Single
from schema.errors import translated
from schema.plans import Kept, Prepared
from schema.selections import Details

STREAM_ROWS: Final = 200
"""A page of more rows is sent as it is read, this many rows at a time."""


@dataclass(frozen=True, slots=True)
class Root:
    """A root field of an operation."""

    key: str
    prefix: str
    """The key as it stands in the response, behind the fields before it."""
    definition: GraphQLField
    details: Details
    nodes: list[FieldNode]
    kept: dict[str, Kept] = field(default_factory=dict)
    """The translations of its selection, by the kind of rows: no key is made to find them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A root field with its read, ready to be made, or with why it failed."""

    root: Root
    read: One | Page | Single | None = None
    prepared: Prepared | None = None
    error: Exception | None = None

    @property
    def is_large(self) -> bool:
        """Whether its rows are sent as they are read."""
        if not isinstance(self.read, Page) or (self.read.asked.first or 0) <= STREAM_ROWS:
            return False
        plan = self.prepared.plan if self.prepared else None
        return isinstance(plan, PagePlan) and plan.layout.streams


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its text, and what follows when it is sent as it is read. `failed` when it has errors.

    `retry_after_seconds` says that all of it was refused for now.

    Whoever gets it closes `rest` before the context ends: it holds the snapshot.
    """

    text: str
    rest: AsyncGenerator[str, None] | None = None
    failed: bool = False
    retry_after_seconds: float | None = None


@dataclass(slots=True)
class _Parts:
    """An answer in the making: the JSON of each root field, None for one that is sent as it is read, and the errors."""

    pieces: list[list[str] | None] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    is_null: bool = False

    @property
    def end(self) -> str:
        """What stands behind the last root field."""
        return f'}},"errors":{orjson.dumps(self.errors).decode()}}}' if self.errors else "}}"


async def answer(context: Context, steps: Sequence[Step]) -> Answer:
    """Read all but large pages, and return the answer, or what has come of it when the first rows are there.

    What may be refused is known before the first piece is sent: it cannot be taken back.
    """
    parts = _Parts()
    for step in steps:
        if step.is_large:
            parts.pieces.append(None)
            continue
        try:
            parts.pieces.append(await _pieces(context, step, alone=len(steps) == 1))
        except AbsentValue:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is becomes the field's error
            parts.pieces.append(["null"])
            parts.errors.append(_formatted(context, step, error))
            parts.is_null = parts.is_null or is_non_null_type(step.root.definition.type)
    if parts.is_null:
        return Answer('{"data":null' + parts.end.removeprefix("}"), failed=True)
    if not any(step.is_large for step in steps):
        texts = [
            text
            for step, pieces in zip(steps, parts.pieces, strict=True)
            for text in (step.root.prefix, *(pieces or ()))
        ]
        return Answer("".join(('{"data":{', *texts, parts.end)), failed=bool(parts.errors))
    rest = _streamed(context, steps, parts)
    try:
        return Answer(await anext(rest), rest, failed=bool(parts.errors))
    except BaseException:
        await rest.aclose()
        raise


async def _streamed(context: Context, steps: Sequence[Step], parts: _Parts) -> AsyncGenerator[str, None]:
    """Yield the answer as its large pages are read; what fails now ends it in its middle."""
    before = '{"data":{'
    for step, pieces in zip(steps, parts.pieces, strict=True):
        before += step.root.prefix
        plan = step.prepared.plan if step.prepared else None
        if pieces is not None:
            before += "".join(pieces)
        elif step.prepared and isinstance(plan, PagePlan) and isinstance(step.read, Page):
            values = [context.require(Permission.READ), *step.prepared.values]
            batches = context.reader.batches(plan.compiled, values, STREAM_ROWS)
            async with aclosing(plan.layout.stream(batches, step.read.asked)) as page:
                async for piece in page:
                    yield before + piece
                    before = ""
    yield before + parts.end


async def _pieces(context: Context, step: Step, *, alone: bool) -> list[str]:
    """Make a read, and return its JSON in pieces: it is copied once, when all is together; raises what refuses it."""
    if step.error is not None:
        raise step.error
    if isinstance(step.read, Single):
        return [orjson.dumps(await step.read.load(context)).decode()]
    if step.read is None or step.prepared is None or step.prepared.plan is None:
        raise RuntimeError(f"{step.root.key} has no plan")
    values = [context.require(Permission.READ), *step.prepared.values]
    rows = await context.reader.texts(step.prepared.plan.compiled, values, alone=alone)
    if isinstance(step.prepared.plan, PagePlan):
        return step.prepared.plan.layout.pieces(rows, step.read.asked)
    text = step.prepared.plan.json(rows)
    return [(step.read.found(text) if isinstance(step.read, One) else text) or "null"]


def _formatted(context: Context, step: Step, error: Exception) -> Any:  # noqa: ANN401 - a formatted error
    nodes = [each.node for each in step.root.details]
    return translated(located_error(error, nodes, [step.root.key]), context).formatted
