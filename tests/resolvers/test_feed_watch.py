"""Watching the feed: who waits for one node's events is told of them and of nothing else."""

from types import SimpleNamespace
from typing import Any, cast

from resolvers.feed import Feed, NodesOf, Topic

TOPIC = Topic("node.command.changed", "node_1")


def rows(first: int, *events: tuple[str, str | None]) -> list[Any]:
    return [
        SimpleNamespace(position=first + place, tenant_id="ours", type=type_, node_id=of)
        for place, (type_, of) in enumerate(events)
    ]


def test_a_watcher_is_told_of_its_topic_only_and_of_whatever_may_have_been_missed() -> None:
    feed = Feed(cast("Any", None), cast("Any", None))
    with feed.watch(TOPIC) as noticed, feed.watch(TOPIC) as too:
        feed._append(rows(1, ("node.command.changed", "node_2"), ("node.inventory.changed", "node_1"), ("x", None)))
        assert not noticed.is_set()
        feed._append(rows(4, ("x", None), (TOPIC.type, TOPIC.node_id)))
        assert noticed.is_set()
        assert too.is_set()
        noticed.clear()
        # Retention was faster than this process: nobody knows what was told in between.
        feed._append(rows(9, ("x", None)))
        assert noticed.is_set()
    assert feed._watchers == {}


def test_who_watches_a_tenants_nodes_is_told_of_no_other_tenant_and_of_nothing_without_a_node() -> None:
    feed = Feed(cast("Any", None), cast("Any", None))
    with feed.watch(NodesOf("ours")) as ours, feed.watch(NodesOf("theirs")) as theirs:
        feed._append(rows(1, ("x", None)))
        assert not ours.is_set()
        feed._append(rows(2, ("x", None), ("x", "node_1")))
        assert ours.is_set()
        assert not theirs.is_set()
