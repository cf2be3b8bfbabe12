"""The four sides: each one server process with one pool of connections to the same database."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import httpx
import psutil

from bench.reading import peer
from bench.reading.asked import Asked, Body
from bench.reading.fleet import SERVED, Fleet
from bench.stand.errors import CannotMeasure
from bench.stand.processes import free_port, running, wait_until_listening
from bench.stand.progress import say

POOL_SIZE: Final = 8
TOKEN: Final = "operator-of-the-bench"  # noqa: S105 - of a server that lives as long as the bench
_ROOT: Final = Path(__file__).parents[2]
_ANSWER_SECONDS_MAX: Final = 60


class Kind(StrEnum):
    """Who answers."""

    COMPILED = "compiled"
    PLAIN = "plain"
    FLOOR = "floor"
    POSTGRAPHILE = "postgraphile"


@dataclass(frozen=True, slots=True)
class Side:
    """A server that answers the bench's requests."""

    kind: Kind
    url: str
    process: psutil.Process
    log: Path

    def body(self, asked: Asked) -> Body:
        """Return a request as this side is asked."""
        return asked.peers if self.kind is Kind.POSTGRAPHILE else asked.ours

    def answer(self, asked: Asked) -> dict[str, object]:
        """Return its parsed answer to a request; raises CannotMeasure when it is not a whole one."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            response = httpx.post(
                self.url, json=self.body(asked).json(), headers=headers, timeout=_ANSWER_SECONDS_MAX
            ).raise_for_status()
        except httpx.HTTPStatusError as error:
            text = error.response.text[:1000]
            raise CannotMeasure(f"{self.kind} answers {asked.name} with {error.response.status_code}: {text}") from None
        except httpx.HTTPError as error:
            raise CannotMeasure(f"{self.kind} does not answer {asked.name}: {error!r}") from error
        found: dict[str, object] = response.json()
        if found.get("errors") or not found.get("data"):
            raise CannotMeasure(f"{self.kind} answers {asked.name} with errors: {str(found.get('errors'))[:1000]}")
        return found


@dataclass(frozen=True, slots=True)
class Started:
    """Where servers are started: what stops them, and the folder of their logs."""

    stack: ExitStack
    folder: Path

    def sides(self, wanted: Iterable[tuple[Kind, Fleet]]) -> list[Side]:
        """Start servers, each on a fleet, and return when all listen; they end with the stack."""
        begun = [self._begun(kind, fleet) for kind, fleet in wanted]
        for side, port in begun:
            wait_until_listening(side.process, port, side.log)
        return [side for side, _ in begun]

    def _begun(self, kind: Kind, fleet: Fleet) -> tuple[Side, int]:
        say(f"starting {kind} on {fleet.nodes:,} nodes …")
        port = free_port()
        command, env = _how(kind, fleet, port)
        log = self.folder / f"{kind}-{port}.log"
        process = self.stack.enter_context(running(command, log, env, _ROOT))
        return Side(kind, f"http://127.0.0.1:{port}/graphql", process, log), port


def _how(kind: Kind, fleet: Fleet, port: int) -> tuple[tuple[str | Path, ...], Mapping[str, str]]:
    given = {"DATABASE_URL": fleet.dsn, "POOL_SIZE": str(POOL_SIZE), "PORT": str(port)}
    match kind:
        case Kind.COMPILED | Kind.PLAIN:
            # As beside a worker: nothing else shall write to what is compared.
            serve = (Path(sys.executable).with_name("fleetgraph"), "serve", "--no-reconcile")
            return serve, {
                "DATABASE_URL": fleet.dsn,
                "FLEETGRAPH_POOL_SIZE": str(POOL_SIZE),
                "FLEETGRAPH_PORT": str(port),
                "FLEETGRAPH_OPERATOR_TOKEN": TOKEN,
                "FLEETGRAPH_COMPILED_READS": str(kind is Kind.COMPILED).lower(),
                "FLEETGRAPH_LOG_LEVEL": "warning",
            }
        case Kind.FLOOR:
            return (sys.executable, "-m", "bench.reading.floor"), {**given, "TENANT_ID": SERVED}
        case Kind.POSTGRAPHILE:
            return peer.command(), {**given, "NODE_ENV": "production", "GRAPHILE_ENV": "production"}
