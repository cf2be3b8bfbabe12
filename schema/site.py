"""Sites and pools."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import strawberry

from db.tables import PoolRow, SiteRow
from domain.errors import InvalidInput
from resolvers import fleet as cases
from resolvers import reading
from schema.allocation import Capacity
from schema.arguments import After, First
from schema.connections import Connection
from schema.enums import PoolAgent, PoolClass, Sharing, SiteKind
from schema.objects import NodeInterface, RowTyped
from schema.scalars import JsonValue

if TYPE_CHECKING:
    from schema.compute_node import ComputeNode

LazyComputeNode = Annotated["ComputeNode", strawberry.lazy("schema.compute_node")]


@strawberry.type(description="A boot and failure domain.")
class Site(RowTyped, NodeInterface):
    """A row of sites."""

    row: ClassVar = SiteRow

    name: str = strawberry.field(description="Name, unique in its tenant.")
    iam_region: str = strawberry.field(description="Geographic label.")
    kind: SiteKind = strawberry.field(description="Whose hardware it holds.")

    @strawberry.field(description="Its nodes.")
    def nodes(self, first: First = 50, after: After = None) -> Connection[LazyComputeNode]:
        """Ask for a page of the site's nodes."""
        return cast("Connection[LazyComputeNode]", reading.nodes_in(self, first, after))


@strawberry.type(description="A scheduling and policy domain in one site.")
class Pool(RowTyped, NodeInterface):
    """A row of pools."""

    row: ClassVar = PoolRow

    name: str = strawberry.field(description="Name, unique in its tenant.")
    pool_class: PoolClass = strawberry.field(name="class", description="What its machines are used as.")
    gpu_model: str | None = strawberry.field(description="The one GPU family it holds.")
    sharing: Sharing = strawberry.field(description="How its GPUs are divided.")
    agent: PoolAgent = strawberry.field(description="How its machines are reached.")
    policy: JsonValue = strawberry.field(description="Its policy document.")
    remediation_paused_since: datetime | None = strawberry.field(
        description="Since when none of its nodes is taken out for remediation: too many turned unhealthy at once."
    )

    site: Site = strawberry.field(description="The site it is in.")
    capacity: list[Capacity] = strawberry.field(description="Its atoms counted, by class.")

    @strawberry.field(description="Its nodes.")
    def nodes(self, first: First = 50, after: After = None) -> Connection[LazyComputeNode]:
        """Ask for a page of the pool's nodes."""
        return cast("Connection[LazyComputeNode]", reading.nodes_in(self, first, after))


@strawberry.input(description="A site to make.")
class SiteInput:
    """What createSite takes."""

    name: str = strawberry.field(description="Name, unique in its tenant.")
    iam_region: str = strawberry.field(description="Geographic label.")
    kind: SiteKind = strawberry.field(default=SiteKind.SHARED, description="Whose hardware it holds.")


@strawberry.input(description="A pool to make.")
class PoolInput:
    """What createPool takes."""

    name: str = strawberry.field(description="Name, unique in its tenant.")
    site_id: strawberry.ID = strawberry.field(description="The site it is in.")
    pool_class: PoolClass = strawberry.field(
        name="class", default=PoolClass.METAL_HOST, description="What its machines are used as."
    )
    gpu_model: str | None = strawberry.field(default=None, description="The one GPU family it holds.")
    sharing: Sharing = strawberry.field(default=Sharing.EXCLUSIVE, description="How its GPUs are divided.")
    agent: PoolAgent = strawberry.field(default=PoolAgent.BCD, description="How its machines are reached.")
    policy: JsonValue | None = strawberry.field(
        default=None,
        description="Its policy document: sharing.replicas, expect.gpuCount, acceptance, disruptionBudget, …",
    )


@strawberry.input(description="What is to change of a pool; what is left out, or null, stays.")
class PoolPatch:
    """What updatePool takes."""

    name: str | None = strawberry.field(default=None, description="Name, unique in its tenant.")
    gpu_model: str | None = strawberry.field(
        default=None, description="The one GPU family it holds; an empty text for any."
    )
    sharing: Sharing | None = strawberry.field(default=None, description="How its GPUs are divided.")
    agent: PoolAgent | None = strawberry.field(default=None, description="How its machines are reached.")
    policy: JsonValue | None = strawberry.field(default=None, description="Its whole policy document.")

    def patch(self) -> cases.PoolPatch:
        """Return the change as the use case takes it; raises InvalidInput."""
        return cases.PoolPatch(
            name=self.name,
            gpu_model=self.gpu_model,
            sharing=self.sharing.value if self.sharing else None,
            agent=self.agent.value if self.agent else None,
            policy=None if self.policy is None else policy_object(self.policy),
        )


def policy_object(given: object) -> dict[str, Any]:
    """Return a policy that is an object; raises InvalidInput."""
    if not isinstance(given, dict):
        raise InvalidInput(f"policy: an object is expected, not {type(given).__name__}")
    return given
