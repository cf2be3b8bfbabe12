"""A browser, and a tab of it at a running server."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, expect

from tests.support.server import RunningServer
from tests.web.browser import Tab, chromium, tab_of

# A machine that runs two tests at a time may be slow; what is there is found at once all the same.
expect.set_options(timeout=30_000)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest.fixture
async def tab(browser: Browser, served: tuple[RunningServer, str]) -> AsyncIterator[Tab]:
    async with tab_of(browser, served[1]) as opened:
        yield opened
