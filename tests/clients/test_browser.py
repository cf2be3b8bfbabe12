"""A browser's own EventSource follows the feed: with a ticket, over a cut, until its token ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from db.database import Database
from tests.support.cable import cable_to
from tests.support.events import FOLLOW, commit_numbers
from tests.support.server import RunningServer, feed_cursor, revoke_tokens
from tests.support.waiting import until
from tests.web.browser import Tab, chromium, skip_without_chromium, tab_of

skip_without_chromium()
pytestmark = pytest.mark.browser
OPEN = """
async ([token, query, after]) => {
  const made = await fetch("/graphql", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: "mutation { createStreamTicket { ticket } }" }),
  });
  const { ticket } = (await made.json()).data.createStreamTicket;
  const parameters = new URLSearchParams({ query, variables: JSON.stringify({ after }), ticket });
  const source = new EventSource(`/graphql?${parameters}`);
  Object.assign(window, { source, seen: [], refused: [], opened: 0 });
  source.addEventListener("open", () => window.opened++);
  source.addEventListener("next", ({ data, lastEventId }) => {
    const answer = JSON.parse(data);
    if (answer.errors) window.refused.push(answer.errors[0].extensions.code);
    else window.seen.push([answer.data.events.payload.n, lastEventId === answer.data.events.cursor]);
  });
  source.addEventListener("complete", () => source.close());
}
"""


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


async def _holds(tab: Tab, condition: str) -> None:
    await tab.page.wait_for_function(condition, timeout=20_000)


async def test_an_event_source_goes_on_by_itself_after_a_cut_and_ends_with_its_token(
    browser: Browser, database: Database, served: tuple[RunningServer, str]
) -> None:
    server, address = served
    feed, tenant_id = server.services.feed, server.operator.tenant_id
    async with asyncio.timeout(60), cable_to(address) as cable, tab_of(browser, cable.address) as tab:
        await tab.open("/healthz")
        await tab.page.evaluate(OPEN, [server.operator.token, FOLLOW, await feed_cursor(server.operator)])
        await commit_numbers(database, tenant_id, range(3))
        await _holds(tab, "seen.length === 3")
        cable.cut()
        await until(lambda: feed.subscribers == 0)
        await commit_numbers(database, tenant_id, range(3, 6))  # while nobody listens
        await _holds(tab, "seen.length === 6")
        await commit_numbers(database, tenant_id, [6])
        await _holds(tab, "seen.length === 7")
        assert await tab.page.evaluate("seen") == [[number, True] for number in range(7)]
        assert await tab.page.evaluate("opened") == 2
        tab.errors.clear()  # the browser writes down that it was cut

        await revoke_tokens(database, server.operator)
        await _holds(tab, "source.readyState === EventSource.CLOSED")
        assert await tab.page.evaluate("refused") == ["UNAUTHENTICATED"]
        await until(lambda: feed.subscribers == 0)
