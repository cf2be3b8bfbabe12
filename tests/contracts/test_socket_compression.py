"""Messages over sockets are compressed for clients that offer it, when they are worth it."""

import pytest
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode

from db.database import Database
from tests.support.events import FOLLOW, commit_numbers
from tests.support.server import feed_cursor, listening_server
from tests.support.socket import open_socket
from web.compression import COMPRESSED_FROM_BYTES
from web.settings import Settings


async def test_large_messages_are_compressed_and_small_ones_are_not(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[tuple[bool, int]] = []
    decode = PerMessageDeflate.decode

    def noted(self: PerMessageDeflate, frame: Frame, *, max_size: int | None = None) -> Frame:
        if frame.opcode is Opcode.TEXT:
            received.append((frame.rsv1, len(frame.data)))
        return decode(self, frame, max_size=max_size)

    async with listening_server(database, Settings(port=0)) as (server, address):
        after = await feed_cursor(server.operator)
        await commit_numbers(database, server.operator.tenant_id, [1, 2])
        await commit_numbers(database, server.operator.tenant_id, [3, 4], bulk=20 * COMPRESSED_FROM_BYTES)
        async with open_socket(address, server.operator.token) as socket:
            (offered,) = socket.connection.protocol.extensions
            assert isinstance(offered, PerMessageDeflate)
            assert (offered.remote_no_context_takeover, offered.local_no_context_takeover) == (True, True)
            await socket.subscribe(FOLLOW, after=after)
            monkeypatch.setattr(PerMessageDeflate, "decode", noted)
            assert [(await socket.next())["events"]["payload"]["n"] for _ in range(4)] == [1, 2, 3, 4]
    small, large = received[-4:-2], received[-2:]
    assert [compressed for compressed, _ in small] == [False, False]
    assert [compressed for compressed, _ in large] == [True, True]
    assert max(size for _, size in large) < COMPRESSED_FROM_BYTES


async def test_what_a_client_compresses_is_read(database: Database) -> None:
    async with (
        listening_server(database, Settings(port=0)) as (server, address),
        open_socket(address, server.operator.token) as socket,
    ):
        await socket.subscribe("{ feedCursor }" + " " * 5000)
        assert (await socket.next())["feedCursor"]
