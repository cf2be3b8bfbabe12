"""A browser, and a tab of it at a running server."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser

from tests.support.server import RunningServer
from tests.web.browser import Tab, chromium, tab_of


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest.fixture
async def tab(browser: Browser, served: tuple[RunningServer, str]) -> AsyncIterator[Tab]:
    async with tab_of(browser, served[1]) as opened:
        yield opened
