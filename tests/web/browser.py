"""Debian's chromium, driven by Playwright, which hears everything a page says and asks for."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, ViewportSize, async_playwright

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page or the browser itself would ask for elsewhere, no name resolves.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 400, "height": 860}


@dataclass  # without slots: Playwright leaves an attribute on the owner of a method that listens
class Tab:
    """A page of one server, with what it said wrongly and what it asked of others."""

    page: Page
    address: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Listen."""
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("websocket", lambda socket: self._asked(socket.url))

    async def open(self, path: str) -> None:
        """Go to a path of the server."""
        await self.page.goto(self.address + path)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _asked(self, url: str) -> None:
        asked = urlsplit(url)
        if asked.scheme not in {"data", "blob"} and asked.netloc != urlsplit(self.address).netloc:
            self.foreign.append(url)


def skip_without_chromium() -> None:
    """Skip the calling module where there is no browser, unless one is required: then its tests fail."""
    if shutil.which("chromium") is None and os.environ.get("FLEETGRAPH_REQUIRE_BROWSER") != "1":
        pytest.skip("no chromium: install Debian's package `chromium`", allow_module_level=True)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run the browser while the block lasts."""
    found = shutil.which("chromium")
    if found is None:
        pytest.fail("no chromium, and FLEETGRAPH_REQUIRE_BROWSER=1")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def tab_of(browser: Browser, address: str, viewport: ViewportSize = DESK) -> AsyncIterator[Tab]:
    """Open a tab that may ask nothing of anybody else and say no error that was not expected."""
    context = await browser.new_context(viewport=viewport)
    tab = Tab(await context.new_page(), address)
    tab.watch()
    yield tab
    assert tab.foreign == []
    assert tab.errors == []
    await context.close()
