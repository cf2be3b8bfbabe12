"""The product's own programs as processes, as a user runs them."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

BIN = Path(sys.executable).parent
START_SECONDS_MAX = 30.0


def free_port() -> int:
    """Return a port that nothing listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(slots=True)
class ServerProcess:
    """`fleetgraph serve` on a database, which can be killed and started again on the same port."""

    database_url: str
    port: int
    token: str
    process: asyncio.subprocess.Process | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and wait until it takes its token."""
        env = {
            "DATABASE_URL": self.database_url,
            "FLEETGRAPH_PORT": str(self.port),
            "FLEETGRAPH_OPERATOR_TOKEN": self.token,
            **self.settings,
        }
        self.process = await start("fleetgraph", "serve", env=env)
        token = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient() as http, asyncio.timeout(START_SECONDS_MAX):
            while True:
                try:
                    if (await http.get(f"{self.address}/metrics", headers=token)).status_code == httpx.codes.OK:
                        return
                    await asyncio.sleep(0.02)
                except httpx.TransportError:
                    await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()


async def start(program: str, *arguments: str, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start one of the product's programs, quietly."""
    return await asyncio.create_subprocess_exec(
        BIN / program,
        *arguments,
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE if program == "fleetgraph-agent" else asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


@asynccontextmanager
async def server_process(database_url: str, **settings: str) -> AsyncIterator[ServerProcess]:
    """Run the server as a process while the block lasts, with these settings by their variables."""
    server = ServerProcess(database_url, free_port(), "operator-of-the-test", settings=settings)
    await server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.returncode is None:
            await server.kill()
