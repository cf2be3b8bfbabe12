"""Request bodies: bounded before and after decompression, whatever the headers say."""

import zlib
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


class BodyRefused(Exception):  # noqa: N818 - an answer, not an error
    """The body cannot be taken; carries the status and the text of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BodyLimit:
    """Reads the whole body within its bounds, undoes gzip, and hands it on in one piece."""

    def __init__(self, app: ASGIApp, *, body_bytes_max: int, decompressed_bytes_max: int) -> None:
        self._app = app
        self._body_bytes_max = body_bytes_max
        self._decompressed_bytes_max = decompressed_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Bound the body of a request that may have one."""
        if scope["type"] != "http" or scope["method"] not in {"POST", "PUT", "PATCH"}:
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        try:
            body = await self._read(receive)
            body = self._decompressed(body, headers.get(b"content-encoding", b"identity").decode("latin-1").lower())
        except BodyRefused as refused:
            error = {"message": refused.message, "extensions": {"code": "INVALID_INPUT"}}
            await JSONResponse({"data": None, "errors": [error]}, refused.status)(scope, receive, send)
            return
        kept = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-encoding"]
        await self._app({**scope, "headers": kept}, _Replay(body, receive), send)

    async def _read(self, receive: Receive) -> bytes:
        chunks = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BodyRefused(400, "the client went away before the body ended")
            chunks += message.get("body", b"")
            if len(chunks) > self._body_bytes_max:
                raise BodyRefused(413, f"the body has more than {self._body_bytes_max} bytes")
            if not message.get("more_body"):
                return bytes(chunks)

    def _decompressed(self, body: bytes, encoding: str) -> bytes:
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise BodyRefused(415, f"Content-Encoding {encoding!r} is not taken; gzip and identity are")
        stream = zlib.decompressobj(_GZIP_WINDOW)
        try:
            plain = stream.decompress(body, self._decompressed_bytes_max + 1)
        except zlib.error as error:
            raise BodyRefused(400, f"the body is not gzip as its Content-Encoding says: {error}") from error
        if len(plain) > self._decompressed_bytes_max:
            raise BodyRefused(
                413, f"the body has more than the {self._decompressed_bytes_max} bytes accepted, unpacked"
            )
        if not stream.eof:
            raise BodyRefused(400, "the gzip body ends too early")
        return plain


class _Replay:
    """A receive channel that gives a body already read, then whatever the client does next."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
