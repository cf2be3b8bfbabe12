"""A Fleetgraph server small enough to see through: it speaks the agents' mutations and forgets nothing it was sent."""

import asyncio
import base64
import gzip
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from domain.digest import inventory_digest

TOKEN = "agents-token-of-the-tests"  # noqa: S105 - a made-up token


@dataclass
class FakeNode:
    id: str
    hello: dict[str, Any]
    hellos: int = 1
    hashes: dict[str, str] = field(default_factory=dict)
    sent_at: str | None = None
    contents: dict[str, bytes] = field(default_factory=dict)
    polls: int = 0
    reports: int = 0
    statuses: list[dict[str, Any]] = field(default_factory=list)


class FakeServer:
    def __init__(self) -> None:
        self.nodes: dict[str, FakeNode] = {}
        self.keys: dict[str, str] = {}
        self.made = 0
        self.requests = 0
        self.sections_received = 0
        self.asked_for_commands: list[str] = []
        self.lease_seconds = 40
        self.polls_until_applied = 0
        self.apply_error: str | None = None
        self.refuse_sections: str | None = None
        self.refuse_status: str | None = None
        self.generation = 0
        self.turn_away: float | None = None
        """For how many seconds heartbeats are told to wait."""
        self.turned_away: list[float] = []
        self.turn_away_sections = False
        self.failing: int | None = None
        """An HTTP status with which every request is answered."""
        self._lock = threading.Lock()

    @property
    def only(self) -> FakeNode:
        (node,) = self.nodes.values()
        return node

    def forget(self) -> None:
        self.nodes.clear()
        self.keys.clear()

    def transport(self) -> httpx.MockTransport:
        def handle(request: httpx.Request) -> httpx.Response:
            status, body = self.handle(request.content, {k.lower(): v for k, v in request.headers.items()})
            return httpx.Response(status, content=body, headers={"content-type": "application/json"})

        return httpx.MockTransport(handle)

    def handle(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        with self._lock:
            self.requests += 1
            if self.failing is not None:
                return self.failing, b"<html>not now</html>"
            if headers.get("authorization") != f"Bearer {TOKEN}":
                return 401, _error("unknown token", "UNAUTHENTICATED")
            content = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            request = json.loads(content)
            return 200, json.dumps(self._answer(request["query"], request["variables"])).encode()

    def _answer(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 - one per operation
        if "hello(input" in query:
            return {"data": {"hello": self._hello(variables["input"])}}
        if "recordInventoryHashes(entries" in query:
            entries = variables["entries"]
            assert len(entries) <= 1000
            _refuse_repeats(entries)
            return {"data": {"recordInventoryHashes": [self._report(entry) for entry in entries]}}
        if "ingestSections(entries" in query:
            entries = variables["entries"]
            assert len(entries) <= 200
            _refuse_repeats(entries)
            return {"data": {"ingestSections": [self._ingest(entry) for entry in entries]}}
        if "reportStatus(entries" in query:
            entries = variables["entries"]
            assert len(entries) <= 1000
            _refuse_repeats(entries)
            return {"data": {"reportStatus": [self._status_report(entry) for entry in entries]}}
        if "takeCommands(nodeId" in query:
            self.asked_for_commands += variables.values()
            fields = re.findall(r"(n\d+): takeCommands", query) or ["takeCommands"]
            return {"data": {name: [] for name in fields}}
        if query.startswith("subscription"):
            return {"data": None, "errors": [{"message": "no streams here", "extensions": {"code": "UNSUPPORTED"}}]}
        return {"data": self._statuses(query, variables)}

    def _statuses(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        aliases = re.findall(r"(n\d+): computeNode\(id: \$(i\d+)\)", query)
        assert 1 <= len(aliases) <= 50
        return {alias: self._status(variables[parameter]) for alias, parameter in aliases}

    def _hello(self, given: dict[str, Any]) -> dict[str, Any]:
        key = given["identityKey"]
        if key not in self.keys:
            self.made += 1  # an id is never given twice
            self.keys[key] = f"node_{self.made:026}"
        node_id = self.keys[key]
        if node_id in self.nodes:
            self.nodes[node_id].hello = given
            self.nodes[node_id].hellos += 1
        else:
            self.nodes[node_id] = FakeNode(node_id, given)
        missing = self._record(self.nodes[node_id], given.get("hashes"))
        return {
            "node": {"id": node_id, "generation": self.generation},
            "sessionId": f"sess_{self.nodes[node_id].hellos}",
            "requestSections": missing,
            "leaseSeconds": self.lease_seconds,
        }

    def _report(self, entry: dict[str, Any]) -> dict[str, Any]:
        node = self.nodes.get(entry["nodeId"])
        if node is None:
            return {"nodeId": entry["nodeId"], "requestSections": [], "error": _slot("NOT_FOUND", "no such node")}
        if self.turn_away is not None:
            self.turned_away.append(time.monotonic())
            refused = _slot("RATE_LIMITED", "too much") | {"retryAfterSeconds": self.turn_away}
            return {"nodeId": node.id, "requestSections": [], "error": refused}
        node.reports += 1
        node.sent_at = entry.get("sentAt")
        return {"nodeId": node.id, "requestSections": self._record(node, entry["hashes"]), "error": None}

    def _status_report(self, entry: dict[str, Any]) -> dict[str, Any]:
        node = self.nodes.get(entry["nodeId"])
        if node is None:
            return {"nodeId": entry["nodeId"], "ignoredConditions": [], "error": _slot("NOT_FOUND", "no such node")}
        if self.refuse_status is not None:
            refused = _slot("INVALID_INPUT", self.refuse_status)
            return {"nodeId": node.id, "ignoredConditions": [], "error": refused}
        node.statuses.append(entry)
        return {"nodeId": node.id, "ignoredConditions": [], "generation": self.generation, "error": None}

    def _ingest(self, entry: dict[str, Any]) -> dict[str, Any]:
        node = self.nodes.get(entry["nodeId"])
        if node is None:
            return {"nodeId": entry["nodeId"], "stored": [], "error": _slot("NOT_FOUND", "no such node")}
        if self.turn_away_sections:
            return {"nodeId": node.id, "stored": [], "error": _slot("RATE_LIMITED", "too much")}
        if self.refuse_sections is not None:
            return {"nodeId": node.id, "stored": [], "error": _slot("INVALID_INPUT", self.refuse_sections)}
        for section in entry["sections"]:
            content = base64.b64decode(section["content"], validate=True)
            assert hashlib.sha256(content).hexdigest() == section["sha256"]
            node.contents[section["name"]] = content
            self.sections_received += 1
        return {"nodeId": node.id, "stored": [section["name"] for section in entry["sections"]], "error": None}

    def _record(self, node: FakeNode, hashes: list[dict[str, str]] | None) -> list[str]:
        if hashes is None:
            return []
        node.hashes = {entry["name"]: entry["sha256"] for entry in hashes}
        return self._missing(node)

    def _missing(self, node: FakeNode) -> list[str]:
        stored = {name: hashlib.sha256(content).hexdigest() for name, content in node.contents.items()}
        return [name for name, sha256 in node.hashes.items() if stored.get(name) != sha256]

    def _status(self, node_id: str) -> dict[str, Any]:
        node = self.nodes[node_id]
        node.polls += 1
        digest = inventory_digest(node.hashes)
        missing = self._missing(node)
        applied = not missing and node.polls > self.polls_until_applied and self.apply_error is None
        state = "FAILED" if self.apply_error and not missing else "APPLIED" if applied else "PENDING"
        return {
            "inventoryStatus": {
                "state": state,
                "reportedDigest": digest,
                "appliedDigest": digest if applied else None,
                "missingSections": missing,
                "error": self.apply_error,
            },
            "latestSnapshot": {"id": f"inv_{digest[:26]}", "digest": digest} if applied else None,
        }


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens elsewhere and sets no event
            await asyncio.sleep(0.002)


@contextmanager
def serve(server: FakeServer) -> Iterator[str]:
    """Serve over HTTP on a free port of this machine; gives the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, answer = server.handle(body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            if not isinstance(sys.exception(), ConnectionError):  # a client that was ended closes abruptly
                super().handle_error(request, client_address)  # type: ignore[arg-type]

    httpd = Server(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join(5)


def _refuse_repeats(entries: list[dict[str, Any]]) -> None:
    ids = [entry["nodeId"] for entry in entries]
    assert len(set(ids)) == len(ids), "a node stands twice in a batch"


def _slot(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "message": message, "section": None, "place": None}


def _error(message: str, code: str) -> bytes:
    return json.dumps({"data": None, "errors": [{"message": message, "extensions": {"code": code}}]}).encode()
