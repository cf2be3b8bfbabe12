"""The console at a server that runs trusted documents only: its own are among them, GraphiQL's are not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.server import RunningServer, ingest, report
from tests.web.browser import Tab, skip_without_chromium, tab_of
from tests.web.machines import machine
from web.server import listening
from web.settings import Settings

skip_without_chromium()
pytestmark = pytest.mark.browser


@pytest.fixture
async def trusting_tab(browser: Browser, server: RunningServer, tmp_path: Path) -> AsyncIterator[Tab]:
    """A tab of a server whose manifest is empty."""
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")
    async with (
        listening(server.services, Settings(port=0, trusted_documents=manifest)) as (_, address),
        tab_of(browser, address) as tab,
    ):
        yield tab


async def test_the_console_shows_and_follows_the_fleet(trusting_tab: Tab, server: RunningServer) -> None:
    page = trusting_tab.page
    node_id = await report(server.agent, "alpha", machine())
    await trusting_tab.open(f"/#token={server.operator.token}")
    await expect(page.locator("#connection")).to_have_text("Live")
    await page.locator("#rows").get_by_role("link", name="alpha", exact=True).click()
    await expect(page.locator("[data-fact='gpus.driverVersion']")).to_have_text("580.95.05")
    await ingest(server.agent, node_id, {"gpus": machine(driver="580.105.08")["gpus"]})
    await expect(page.locator("[data-fact='gpus.driverVersion']")).to_have_text("580.105.08")
    await page.locator("#part-memory").get_by_role("button", name="View").click()
    await expect(page.locator("dialog pre")).to_contain_text("totalBytes")


async def test_graphiql_says_why_it_cannot_ask(trusting_tab: Tab, server: RunningServer) -> None:
    page = trusting_tab.page
    await trusting_tab.open("/graphiql")
    await page.locator("#token").fill(server.operator.token)
    await page.get_by_role("button", name="Use token").click()
    await expect(page.locator("#token-state")).to_have_text("ours operator")
    await expect(page.locator(".result-window")).to_contain_text("this server runs trusted documents only")
    trusting_tab.errors.clear()  # the browser writes down every answer with a status of 400
