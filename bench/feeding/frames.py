"""The little of RFC 6455 and graphql-transport-ws that a cheap subscriber needs, without looking into the JSON."""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

TEXT: Final = 1
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10
_SHORT_MAX: Final = 125
_TWO_BYTES: Final = 126
_EIGHT_BYTES: Final = 127
_TWO_BYTES_MAX: Final = 0xFFFF
# All zero: the payload goes as it is, which the protocol allows to a client that no cache stands behind.
_MASK: Final = bytes(4)


def opening(host: str, port: int, path: str) -> bytes:
    """Return the request that opens a socket."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: graphql-transport-ws",
    )
    return "\r\n".join((*lines, "", "")).encode()


def frame(opcode: int, payload: bytes) -> bytes:
    """Return a client's frame."""
    size = len(payload)
    if size <= _SHORT_MAX:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size <= _TWO_BYTES_MAX:
        head = bytes((0x80 | opcode, 0x80 | _TWO_BYTES)) + size.to_bytes(2)
    else:
        head = bytes((0x80 | opcode, 0x80 | _EIGHT_BYTES)) + size.to_bytes(8)
    return head + _MASK + payload


def message(**words: Any) -> bytes:  # noqa: ANN401 - whatever is JSON
    """Return a message as a frame."""
    return frame(TEXT, json.dumps(words).encode())


@dataclass(slots=True)
class Frames:
    """Takes a server's bytes apart; a message that comes in several frames is none of ours."""

    _rest: bytes = b""

    def take(self, more: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (opcode, payload) of every frame that is complete."""
        data = self._rest + more if self._rest else more
        place, end = 0, len(data)
        while end - place >= 2:  # noqa: PLR2004 - the shortest head
            start, size = place + 2, data[place + 1]
            if size > _SHORT_MAX:
                width = 2 if size == _TWO_BYTES else 8
                start += width
                if start > end:
                    break
                size = int.from_bytes(data[place + 2 : start])
            if start + size > end:
                break
            opcode = data[place] & 15
            place = start + size
            yield opcode, data[start:place]
        self._rest = data[place:]
