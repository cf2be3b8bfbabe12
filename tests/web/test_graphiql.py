"""GraphiQL, served by the server alone."""

import asyncio

import pytest
from playwright.async_api import expect

from tests.support.server import RunningServer, report
from tests.web.browser import Tab, skip_without_chromium
from tests.web.machines import machine

skip_without_chromium()
pytestmark = pytest.mark.browser
Served = tuple[RunningServer, str]


async def _write(tab: Tab, operation: str) -> None:
    """Replace what stands in the editor; inserted at once, so that it closes no bracket of its own."""
    await tab.page.locator(".graphiql-query-editor .CodeMirror").click()
    await tab.page.keyboard.press("ControlOrMeta+A")
    await tab.page.keyboard.press("Delete")
    await tab.page.keyboard.insert_text(operation)
    # GraphiQL reads what kind of operation stands there a moment later, when it also remembers the text.
    async with asyncio.timeout(10):
        while await tab.page.evaluate("localStorage.getItem('graphiql:query')") != operation:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.02)


async def _open(tab: Tab, token: str) -> None:
    await tab.open("/graphiql")
    # Without a token the schema is not given: the browser writes down the refusal.
    await expect(tab.page.locator("#token-state")).to_have_text("No token yet")
    await tab.page.locator("#token").fill(token)
    await tab.page.get_by_role("button", name="Use token").click()
    await expect(tab.page.locator("#token-state")).to_have_text("ours operator")
    await tab.page.wait_for_load_state("networkidle")
    tab.errors.clear()


async def test_a_query_runs_with_the_token_of_the_box(tab: Tab, served: Served) -> None:
    server, _ = served
    await report(server.agent, "alpha", machine())
    await _open(tab, server.operator.token)
    await _write(tab, "{ nodes { nodes { hostname } } }")
    await tab.page.keyboard.press("Control+Enter")
    await expect(tab.page.locator(".result-window")).to_contain_text('"hostname": "alpha"')


async def test_the_consoles_token_is_used_and_the_schema_is_explained(tab: Tab, served: Served) -> None:
    await tab.open(f"/#token={served[0].operator.token}")
    await expect(tab.page.locator("#connection")).to_have_text("Live")
    await tab.page.get_by_role("link", name="GraphiQL").click()
    await expect(tab.page.locator("#token-state")).to_have_text("ours operator")
    await tab.page.get_by_role("button", name="Show Documentation Explorer").click()
    await tab.page.locator(".graphiql-doc-explorer").get_by_role("link", name="Subscription").click()
    await expect(tab.page.locator(".graphiql-doc-explorer")).to_contain_text("Inventories that were applied.")


async def test_a_subscription_delivers(tab: Tab, served: Served) -> None:
    server, _ = served
    await _open(tab, server.operator.token)
    cursor = (await server.operator.data("{ feedCursor }"))["feedCursor"]
    await _write(tab, f'subscription {{ events(after: "{cursor}") {{ type node {{ hostname }} }} }}')
    await tab.page.keyboard.press("Control+Enter")
    await report(server.agent, "alpha", machine())
    result = tab.page.locator(".result-window")
    await expect(result).to_contain_text('"type": "node.inventory.changed"')
    await expect(result).to_contain_text('"hostname": "alpha"')
