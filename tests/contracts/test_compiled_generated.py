"""Generated operations, compiled and executed: the same answers, to the order of their keys.

`FLEETGRAPH_THOROUGH=1` runs many more, other ones each time; `--hypothesis-seed` repeats them.
"""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from schema.graph import build, core_schema
from tests.support.both import PRINCIPALS, Both, Operation, Way, agree
from tests.support.drawn_operations import operations
from tests.support.world import BROKEN

SCHEMA = core_schema(build())
THOROUGH: Final = bool(os.environ.get("FLEETGRAPH_THOROUGH"))
# Tests are not timed: a busy machine is no counterexample. Explaining a failure costs more than it tells.
PROFILE: Final = settings(
    max_examples=20_000 if THOROUGH else 60,
    derandomize=not THOROUGH,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    print_blob=True,
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # graphql-core drops the siblings of a failed field before they started.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@PROFILE
@given(document=operations(SCHEMA), way=st.sampled_from(Way))
async def test_whatever_the_schema_allows_is_answered_the_same_both_ways(
    both: Both, document: list[Operation], way: Way
) -> None:
    for operation in document:
        for principal in (*PRINCIPALS, BROKEN):
            answers = await both.ask(operation, principal, [way])
            agree(answers)
            # Only a null in the directive of a root field is an error before there is a path.
            errors = answers.executed.body.get("errors", ())
            assert all("path" in error for error in errors) or None in operation.variables.values(), answers.shown()
            assert principal == BROKEN or "INTERNAL" not in answers.executed.codes, answers.shown()
