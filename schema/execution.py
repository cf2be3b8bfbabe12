"""Executing operations: reads are compiled with all that is selected of them, the rest is visited field by field.

graphql-core's executor is extended where it completes a value. That is not public API: its minor version is pinned,
and `tests/contracts` compare both ways.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

import orjson
from graphql import ExecutionResult, GraphQLOutputType, GraphQLResolveInfo
from graphql.pyutils import Path
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from db.connections import is_transient
from db.database import AbsentValue
from db.together import together
from db.views.plan import PagePlan
from domain.access import Permission
from resolvers.batches import Batch, Told
from resolvers.commands import Delivered
from resolvers.context import Context
from resolvers.reads import One, Page, Related, Single, SummaryPart
from resolvers.results import PIECE_BYTES, Made
from resolvers.retries import retried
from schema.batches import Part, Results
from schema.errors import cause_of, translated
from schema.plans import ReadPlans
from schema.selections import Details
from schema.sharing import Selections

READS: Final = (One, Page, Related, Single, SummaryPart)
PLANS: Final = ReadPlans()
_TOGETHER_MAX: Final = 64
_AWAY_SECONDS_MAX: Final = 60.0
"""How long a subscription waits for the database before it ends."""
_SELECTIONS: Final = Selections()


class ReadingExecution(StrawberryGraphQLCoreExecutionContext):
    """Completes a read that a resolver described, and gives each event of a subscription its own context."""

    def complete_value(  # noqa: PLR0913, PLR0917 - graphql-core's signature
        self,
        return_type: GraphQLOutputType,
        field_details_list: Details,
        info: GraphQLResolveInfo[Any],
        path: Path,
        result: Any,  # noqa: ANN401
        position_context: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Complete a value; what is read first is read here."""
        if isinstance(result, READS):
            return self._read(return_type, field_details_list, info, path, result, position_context)
        return super().complete_value(return_type, field_details_list, info, path, result, position_context)

    async def _read(  # noqa: PLR0913, PLR0917
        self,
        return_type: GraphQLOutputType,
        details: Details,
        info: GraphQLResolveInfo[Any],
        path: Path,
        read: One | Page | Related | Single | SummaryPart,
        position: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        context: Context = self.context_value
        value: Any = None
        compiled = False
        if isinstance(read, One | Page):
            text, compiled = await self._compiled(context, return_type, details, read)
            value = None if text is None else orjson.Fragment(text)
        if not compiled:
            value = await read.load(context)
        if isinstance(value, orjson.Fragment):
            return value
        completed = super().complete_value(return_type, details, info, path, value, position)
        return await completed if self.is_awaitable(completed) else completed

    async def _compiled(
        self, context: Context, kind: GraphQLOutputType, details: Details, read: One | Page
    ) -> tuple[str | None, bool]:
        """Return the JSON of a read, and whether it was made; a row that is not there is None."""
        tenant_id = context.require(Permission.READ)
        prepared = PLANS.prepare(self, kind, details, read)
        name = details[0].node.name.value
        if prepared.plan is None or not context.services.compiled_reads:
            context.services.meter.read(name, compiled=False)
            return None, False
        try:
            rows = await context.reader.texts(prepared.plan.compiled, [tenant_id, *prepared.values])
        except AbsentValue:
            context.services.meter.read(name, compiled=False)
            return None, False
        context.services.meter.read(name, compiled=True)
        plan = prepared.plan
        text = plan.json(rows, read.asked) if isinstance(plan, PagePlan) else plan.json(rows)
        return (read.found(text) if isinstance(read, One) else text), True

    def execute_operation(self, serially: bool | None = None) -> Any:  # noqa: ANN401, FBT001 - graphql-core's signature
        """Execute; an event's context ends with its last field, before the client is waited for."""
        event = self.root_value
        if isinstance(event, Batch):
            return self._results(event)
        if isinstance(event, Delivered):
            return self._alone(event)
        return super().execute_operation(serially)

    async def _results(self, batch: Batch) -> ExecutionResult:
        """Return the results of a batch, each made and written as JSON once for all who select the same of it."""
        context = batch.context
        selection = _SELECTIONS.key(self, context.principal)

        async def make(told: Sequence[Told]) -> Sequence[Part]:
            keys = [(each.key, selection) for each in told]
            found = await context.services.results.results(
                keys, batch.shown, lambda places: self._made([told[place] for place in places], context)
            )
            return [
                Part(data, each.place, [translated(error, context) for error in errors or ()])
                for each, (data, errors) in zip(told, found, strict=False)
            ]

        return ExecutionResult(cast("Any", Results(batch, make)), None)

    async def _made(self, told: Sequence[Told], context: Context) -> Sequence[Made]:
        """Make the first of these results, on one view of the data; one at least.

        A moment of the database is waited for: a result that met it would tell a place whose change it does not show.
        """
        return await retried(lambda: self._some(told, context), _AWAY_SECONDS_MAX)

    async def _some(self, told: Sequence[Told], context: Context) -> Sequence[Made]:
        own = context.operation(snapshot=True)
        made: list[Made] = []
        try:
            await self._make(told, own, made)
        except Exception as error:
            if not made or not is_transient(error):
                raise
        finally:
            await own.end()
        return made

    async def _make(self, told: Sequence[Told], context: Context, made: list[Made]) -> None:
        """Execute for several at once, as many as their size allows: others wait for the process meanwhile."""
        size, written = 1, 0
        while len(made) < len(told) and written < PIECE_BYTES:
            some = await together(*(self._made_of(each, context) for each in told[len(made) : len(made) + size]))
            made += some
            sizes = [len(data or b"") for data, _ in (each.value for each in some)]
            written += sum(sizes)
            size = max(1, min(_TOGETHER_MAX, (PIECE_BYTES - written) // max(*sizes, 1)))
            await asyncio.sleep(0)

    async def _made_of(self, told: Told, context: Context) -> Made:
        result = await self._executed(told, context)
        for error in result.errors or ():
            cause = cause_of(error)
            if cause is not None and is_transient(cause):
                raise cause
        data = None if result.data is None else orjson.dumps(result.data)
        return Made((data, result.errors), len(data) if data and not result.errors else 0)

    async def _alone(self, event: Delivered) -> ExecutionResult:
        try:
            return await self._executed(event, event.context)
        finally:
            await event.context.end()

    async def _executed(self, event: object, context: Context) -> ExecutionResult:
        executor = cast("ReadingExecution", self.build_per_event_executor(event))
        executor.context_value = context
        result = super(ReadingExecution, executor).execute_operation(serially=False)
        return cast("ExecutionResult", await result if self.is_awaitable(result) else result)
