"""What the pages are made of, looked at without a browser."""

import re
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from graphql import OperationDefinitionNode, build_schema, parse, validate

from schema.graph import build, sdl
from tests.support.server import RunningServer

STATIC = Path(str(files("web"))) / "static"


@pytest.mark.parametrize("path", ["/", "/graphiql"])
async def test_pages_load_nothing_inline_and_nothing_from_elsewhere(server: RunningServer, path: str) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server.app), base_url="http://test") as http:
        page = await http.get(path)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon[a-z]+=|\bstyle=|https?://", page.text)


async def test_every_file_that_a_page_or_module_names_is_served(server: RunningServer) -> None:
    own = [file for file in STATIC.rglob("*") if file.suffix in {".html", ".js"} and "vendor" not in file.parts]
    named = {found for file in own for found in re.findall(r'(?:src|href)="(/static/[^"]+)"', file.read_text())}
    for file in own:
        relative = re.findall(r'from "(\.[^"]+)"', file.read_text())
        relative += re.findall(r'new URL\("([^"]+)", import', file.read_text())
        named |= {f"/static/{(file.parent / name).resolve().relative_to(STATIC)}" for name in relative}
    assert len(named) > 20
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server.app), base_url="http://test") as http:
        assert {(await http.get(name)).status_code for name in named} == {httpx.codes.OK}


def test_every_operation_that_the_console_names_is_in_its_document_which_fits_the_schema() -> None:
    document = parse((STATIC / "console/documents.graphql").read_text())
    written = {
        found.name.value for found in document.definitions if isinstance(found, OperationDefinitionNode) and found.name
    }
    named = re.findall(r'^export const \w+ = "(\w+)";$', (STATIC / "console/queries.js").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(written)
    assert len(named) > 5
    assert validate(build_schema(sdl(build())), document) == []
