"""The console and GraphiQL: files of the repository, served without anything from elsewhere."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# What a page may load: this server's own files, and nothing inline but GraphiQL's styles.
_POLICY: Final = (
    "default-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


class _Files(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response


def _page(file: Path) -> Callable[[Request], Response]:
    def page(_request: Request) -> Response:
        return FileResponse(file, headers=_HEADERS)

    return page


def console_routes() -> list[BaseRoute]:
    """Make the routes; the pages hold no data, so they are open, and what they show needs a token."""
    static = Path(str(files("web"))) / "static"
    return [
        Route("/", _page(static / "index.html")),
        Route("/graphiql", _page(static / "graphiql.html")),
        Mount("/static", _Files(directory=static, check_dir=False)),
    ]
