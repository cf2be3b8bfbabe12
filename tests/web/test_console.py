"""The console as people use it, in a real browser against a real server."""

import asyncio
import json
import re

import httpx
import pytest
from playwright.async_api import Browser, Locator, expect

from db.database import Database
from domain.cursor import decode_feed
from domain.ids import TenantId
from tests.support.events import forget_all
from tests.support.program import server_process
from tests.support.server import Client, RunningServer, hello, ingest, report
from tests.support.waiting import until
from tests.web.browser import PHONE, Tab, skip_without_chromium, tab_of
from tests.web.machines import GPU_ID, Documents, machine

skip_without_chromium()
pytestmark = pytest.mark.browser
Served = tuple[RunningServer, str]

SECTION_FACTS = {
    "system": "Example Systems",
    "cpu": "Example 9000 Processor",
    "memory": "1 TiB",
    "gpus": "NVIDIA H100 80GB HBM3",
    "nics": "00:00:5e:00:53:01",
    "disks": "3.84 TB",
    "os": "Example Linux 1",
    "images": "example/engine:1",
}


async def _sign_in(tab: Tab, token: str) -> None:
    await tab.open(f"/#token={token}")
    await expect(tab.page.locator("#connection")).to_have_text("Live")


async def _mark(tab: Tab) -> None:
    """Leave a mark that a reload would wipe out."""
    await tab.page.evaluate("window.unreloaded = true")


async def _is_marked(tab: Tab) -> bool:
    return bool(await tab.page.evaluate("window.unreloaded === true"))


def _row(tab: Tab, name: str) -> Locator:
    return tab.page.locator("#rows tr").filter(has=tab.page.get_by_role("link", name=name, exact=True))


async def test_the_form_signs_in_and_signs_out(tab: Tab, served: Served) -> None:
    server, _ = served
    await report(server.agent, "alpha", machine())
    await tab.open("/")
    await tab.page.get_by_label("Token").fill(server.operator.token)
    await tab.page.get_by_role("button", name="Sign in").click()
    await expect(_row(tab, "alpha")).to_be_visible()
    await tab.page.reload()
    await expect(_row(tab, "alpha")).to_be_visible()
    await tab.page.get_by_role("button", name="Sign out").click()
    await expect(tab.page.get_by_label("Token")).to_be_visible()
    await expect(_row(tab, "alpha")).to_have_count(0)
    assert await tab.page.evaluate("sessionStorage.getItem('fleetgraph.token')") is None


async def test_a_token_in_the_address_signs_in_and_leaves_the_address(tab: Tab, served: Served) -> None:
    await _sign_in(tab, served[0].operator.token)
    assert tab.page.url == f"{tab.address}/"


async def test_a_wrong_token_is_told_so(tab: Tab) -> None:
    await tab.open("/")
    await tab.page.get_by_label("Token").fill("not-a-token")
    await tab.page.get_by_role("button", name="Sign in").click()
    await expect(tab.page.get_by_role("alert")).to_have_text("This token does not sign in: unknown token.")
    # The browser itself writes down that an answer was a 401.
    assert len(tab.errors) == 1
    assert "401" in tab.errors.pop()


async def test_the_list_shows_what_a_node_is(tab: Tab, served: Served) -> None:
    server, _ = served
    await report(server.agent, "alpha", machine())
    await hello(server.agent, "silent", displayName="Rack 4")
    await _sign_in(tab, server.operator.token)
    row = _row(tab, "alpha")
    for cell, text in {
        "state": "ready",
        "connectivity": "connected",
        "driver": "580.95.05",
        "kernel": "6.8.0-60-genericExample Linux 1",
    }.items():
        await expect(row.locator(f"[data-cell={cell}]")).to_have_text(text)
    await expect(row.locator("[data-cell=gpus]")).to_contain_text(re.compile("1 . .*H100"))
    silent = _row(tab, "silent")
    await expect(silent.locator("[data-cell=node]")).to_have_text("silentRack 4")
    await expect(silent.locator("[data-cell=gpus]")).to_have_text("unknown")


async def test_filters_and_pages_work_on_the_server(tab: Tab, served: Served) -> None:
    server, _ = served
    for number in range(103):
        await hello(server.agent, f"node-{number:03}")
    await _sign_in(tab, server.operator.token)
    rows = tab.page.locator("#rows tr")
    await expect(rows).to_have_count(100)
    await expect(tab.page.locator("#count")).to_have_text("100 of 103")
    await tab.page.get_by_role("button", name="Load more").click()
    await expect(rows).to_have_count(103)
    await expect(tab.page.locator("#count")).to_have_text("103")
    await tab.page.keyboard.press("/")
    await tab.page.keyboard.type("NODE-10")
    await expect(rows).to_have_count(3)
    await tab.page.get_by_label("Filter by state").select_option("lost")
    await expect(tab.page.get_by_text("No node fits this filter.")).to_be_visible()


async def test_a_node_page_shows_all_eight_sections(tab: Tab, served: Served) -> None:
    server, _ = served
    await report(server.agent, "alpha", machine())
    await _sign_in(tab, server.operator.token)
    await _row(tab, "alpha").get_by_role("link").click()
    await expect(tab.page.get_by_role("heading", level=1)).to_have_text("alpha")
    for section, text in SECTION_FACTS.items():
        await expect(tab.page.locator(f"#part-{section}")).to_contain_text(text)
    await expect(tab.page.locator("#part-devices").get_by_text(GPU_ID)).to_be_visible()


async def test_unknown_facts_read_unknown_with_the_reason_and_zero_reads_zero(tab: Tab, served: Served) -> None:
    server, _ = served
    node_id = await report(server.agent, "alpha", machine())
    await _sign_in(tab, server.operator.token)
    await tab.open(f"/#/node/{node_id}")
    shown = {
        "gpus.gpus.0.serial": "unknown (unsupported)",
        "gpus.cudaDriverVersion": "unknown (temporarily failed)",
        "gpus.gpus.0.vbios": "unknown",
        "gpus.gpus.0.health.rowRemap.correctable": "0",
        "memory.swapBytes": "0 B",
    }
    for path, text in shown.items():
        await expect(tab.page.locator(f"[data-fact='{path}']")).to_have_text(text)
    await expect(tab.page.locator("#part-gpus summary")).to_have_text("2 facts are not known")


async def test_a_sections_bytes_are_downloaded_as_they_came(tab: Tab, served: Served) -> None:
    server, _ = served
    node_id = await report(server.agent, "alpha", machine())
    await _sign_in(tab, server.operator.token)
    await tab.open(f"/#/node/{node_id}")
    part = tab.page.locator("#part-memory")
    await part.get_by_role("button", name="View").click()
    await expect(tab.page.locator("dialog pre")).to_contain_text('"totalBytes": 1099511627776')
    await tab.page.keyboard.press("Escape")
    async with tab.page.expect_download() as download:
        await part.get_by_role("button", name="Download").click()
    file = await (await download.value).path()
    content = await asyncio.to_thread(file.read_bytes)
    assert content == json.dumps(machine()["memory"]).encode()


async def test_a_changed_inventory_and_a_new_node_reach_the_list_without_a_reload(tab: Tab, served: Served) -> None:
    server, _ = served
    node_id = await report(server.agent, "bravo", machine())
    await _sign_in(tab, server.operator.token)
    driver = _row(tab, "bravo").locator("[data-cell=driver]")
    await expect(driver).to_have_text("580.95.05")
    await _mark(tab)
    await ingest(server.agent, node_id, _changed())
    await expect(driver).to_have_text("580.105.08")
    await report(server.agent, "alpha", machine(number=2))
    await expect(tab.page.locator("#rows tr a")).to_have_text(["alpha", "bravo"])
    await expect(tab.page.locator("#count")).to_have_text("2")
    await expect(tab.page.locator("#event-list")).to_contain_text("Driver changed")
    assert await _is_marked(tab)


async def test_a_node_without_inventory_is_found_by_and_by(tab: Tab, served: Served) -> None:
    server, _ = served
    await tab.page.clock.install()
    await _sign_in(tab, server.operator.token)
    await expect(tab.page.get_by_text("No node has reported yet.")).to_be_visible()
    await hello(server.agent, "alpha")
    await tab.page.clock.fast_forward(20_000)
    await expect(_row(tab, "alpha")).to_be_visible()
    await expect(tab.page.locator("#count")).to_have_text("1")


async def test_a_changed_inventory_reaches_the_node_page_without_a_reload(tab: Tab, served: Served) -> None:
    server, _ = served
    node_id = await report(server.agent, "alpha", machine())
    await _sign_in(tab, server.operator.token)
    await tab.open(f"/#/node/{node_id}")
    await expect(tab.page.locator("#note-history")).to_have_text("1")
    await _mark(tab)
    await ingest(server.agent, node_id, _changed())
    await expect(tab.page.locator("[data-fact='gpus.driverVersion']")).to_have_text("580.105.08")
    await expect(tab.page.locator("#note-history")).to_have_text("2")
    changes = tab.page.locator("#part-changes tbody tr")
    await expect(changes.filter(has_text="Driver changed")).to_contain_text(re.compile("580.95.05.*580.105.08"))
    assert await _is_marked(tab)


async def test_a_degraded_inventory_shows_its_condition_and_keeps_the_device(tab: Tab, served: Served) -> None:
    server, _ = served
    node_id = await report(server.agent, "alpha", machine())
    await _sign_in(tab, server.operator.token)
    await tab.open(f"/#/node/{node_id}")
    await expect(tab.page.locator("#part-conditions")).to_contain_text("none")
    gpus = {"enumeration": "unavailable", "reason": "the driver does not answer", "gpus": []}
    await ingest(server.agent, node_id, {"gpus": gpus})
    await expect(tab.page.locator("[data-fact='condition.InventoryDegraded']")).to_have_text("true")
    await expect(tab.page.locator("#part-conditions")).to_contain_text("the driver does not answer")
    await expect(tab.page.locator("#part-devices").get_by_text(GPU_ID)).to_be_visible()


async def test_a_nodes_faults_and_commands_are_shown_and_followed(tab: Tab, served: Served) -> None:
    server, _ = served
    node_id = await report(server.agent, "alpha", machine())
    await _sign_in(tab, server.operator.token)
    await tab.open(f"/#/node/{node_id}")
    await expect(tab.page.locator("#part-faults")).to_contain_text("none was told")
    await expect(tab.page.locator("#part-commands")).to_contain_text("none was given")
    fault = {"code": 48, "address": "", "deviceId": GPU_ID, "message": "a made-up error", "sequence": "7"}
    told = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { message } } }"
    await server.agent.data(told, entries=[{"nodeId": node_id, "xids": [fault]}])
    faults = tab.page.locator("#part-faults")
    await expect(faults.locator("[data-fact='fault.Xid48']")).to_be_visible()
    await expect(faults).to_contain_text("a made-up error")
    await expect(faults).to_contain_text("quarantine")
    await expect(faults.locator("code")).to_have_text(GPU_ID)
    await server.operator.data("mutation ($id: ID!) { clearDeviceHealth(deviceId: $id) { id } }", id=GPU_ID)
    await expect(faults).to_contain_text("cleared")
    refreshed = "mutation ($id: ID!) { refreshInventory(id: $id) { id } }"
    command_id = (await server.operator.data(refreshed, id=node_id))["refreshInventory"]["id"]
    await expect(tab.page.locator("[data-fact='command.1']")).to_have_text("pending")
    called_off = 'mutation ($id: ID!) { cancelCommand(id: $id, reason: "not-now") { id } }'
    await server.operator.data(called_off, id=command_id)
    await expect(tab.page.locator("[data-fact='command.1']")).to_have_text("cancelled")


async def test_a_node_that_does_not_exist_is_told_so(tab: Tab, served: Served) -> None:
    await _sign_in(tab, served[0].operator.token)
    await tab.open("/#/node/node_00000000000000000000000000")
    await expect(tab.page.get_by_text("There is no such node.")).to_be_visible()


async def test_a_narrow_screen_needs_no_sideways_scrolling(browser: Browser, served: Served) -> None:
    server, address = served
    node_id = await report(server.agent, "alpha", machine())
    async with tab_of(browser, address, PHONE) as tab:
        await _sign_in(tab, server.operator.token)
        await expect(_row(tab, "alpha")).to_be_visible()
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        await tab.open(f"/#/node/{node_id}")
        await expect(tab.page.locator("#part-images")).to_contain_text("example/engine:1")
        assert await tab.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


async def test_what_changed_while_the_server_was_away_arrives_when_it_is_back(
    browser: Browser, database_url: str
) -> None:
    async with server_process(database_url) as server, tab_of(browser, server.address) as tab:
        await _sign_in(tab, server.token)
        await server.kill()
        await expect(tab.page.locator("#connection")).to_contain_text("Reconnecting")
        await _report_elsewhere(database_url, server.token)
        await server.start()
        await expect(tab.page.locator("#event-list")).to_contain_text("Inventory")
        await expect(_row(tab, "alpha")).to_be_visible()
        await expect(tab.page.locator("#connection")).to_have_text("Live")
        tab.errors.clear()  # the browser writes down every refused connection


async def test_a_cursor_that_expired_reads_everything_anew(
    browser: Browser, database_url: str, database: Database
) -> None:
    async with server_process(database_url) as server, tab_of(browser, server.address) as tab:
        await _sign_in(tab, server.token)
        await server.kill()
        await _report_elsewhere(database_url, server.token)
        await forget_all(database)
        await server.start()
        await expect(_row(tab, "alpha")).to_be_visible()
        await expect(tab.page.locator("#connection")).to_have_text("Live")
        await expect(tab.page.locator("#event-list")).not_to_contain_text("Inventory")
        tab.errors.clear()


async def test_what_is_read_after_an_event_has_seen_it(tab: Tab, served: Served) -> None:
    server, _ = served
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.headers.get("fleetgraph-after", "")))
    await _sign_in(tab, server.operator.token)
    await report(server.agent, "alpha", machine())
    await until(lambda: any(after and decode_feed(after).position > 0 for after in asked))
    await expect(_row(tab, "alpha")).to_be_visible()


async def _report_elsewhere(database_url: str, token: str) -> None:
    """Bring a node in through another server on the same database, which then goes away."""
    async with server_process(database_url) as other, httpx.AsyncClient(base_url=other.address) as http:
        await report(Client(http, token, TenantId("")), "alpha", machine())


def _changed() -> Documents:
    """Return what changes with a driver upgrade."""
    return {"gpus": machine(driver="580.105.08")["gpus"]}
