"""The console and GraphiQL: files of the repository, served without anything from elsewhere."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
# Files of this server and nothing inline. A form's token must never become part of an address: no form is ever sent.
_CONSOLE: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_GRAPHIQL: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


def _page(file: Path, policy: str) -> Callable[[Request], Response]:
    headers: Mapping[str, str] = {**_HEADERS, "Content-Security-Policy": policy}

    def page(_request: Request) -> Response:
        return FileResponse(file, headers=headers)

    return page


def console_routes() -> list[BaseRoute]:
    """Make the routes; the pages hold no data, so they are open, and what they show needs a token."""
    static = Path(str(files("web"))) / "static"
    return [
        Route("/", _page(static / "index.html", _CONSOLE)),
        Route("/graphiql", _page(static / "graphiql.html", _GRAPHIQL)),
        Mount("/static", _Files(directory=static)),
    ]
