"""The embedded engine as most tests have it: inside of the tests' process, without a wire, and with a memory.

Most of what a request costs is the wire: HTTP written and read twice, and two processes that wait for each other. So
what botocore has signed in this process for DynamoDB is handed to the engine as it is. Other processes, and requests
for other services, come by HTTP to a port, where a server reads what AWS's clients send and no more. And a test's empty
tables, or its whole world, are made by ordinary requests once; the engine keeps what it holds under a name and holds it
again in one request. All else is the engine as it is: `tests/engines` tries it with its own server, and the other
engines of tests/support/engines.py are asked by wire.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import pickle
import threading
import urllib.parse
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import copy_context
from http import HTTPStatus
from typing import Any
from unittest import mock

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.httpsession import URLLib3Session

from portal.engines.endpoint import REGION
from portal.engines.engine_process import Ministack
from portal.engines.processes import LOOPBACK

MEMORY = "/_tests/"
RESET = "/_ministack/reset"
# All that the engine's tables, their streams and what is set for them consist of.
PARTS = ("_tables", "_tags", "_ttl_settings", "_pitr_settings", "_stream_records")

Scope = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[Scope]]

running: list[QuickEngine] = []


class Answer:
    """What the engine says to one request."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.headers: Headers = []
        self.content = b""

    async def hear(self, message: Scope) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message["headers"]
        else:
            self.content += message.get("body", b"")


class QuickEngine:
    """One in memory, from `start` to `stop`. It is asked in turns, as one is that answers in one thread."""

    def start(self) -> QuickEngine:
        self._import()
        self._owner, self._turns = os.getpid(), threading.Lock()
        self._memory: dict[str, bytes] = {}
        self._loop = asyncio.new_event_loop()
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: Connection(self), LOOPBACK, backlog=1024)
        )
        self.endpoint_url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._thread.start()
        by_wire = URLLib3Session.send

        def send(session: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
            return self._at_once(request) or by_wire(session, request)

        self._shortcut = mock.patch.object(URLLib3Session, "send", send)
        self._shortcut.start()
        running.append(self)
        return self

    def stop(self) -> None:
        running.remove(self)
        self._shortcut.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _import(self) -> None:
        """As a library: it would set up the logs of the program that it is otherwise."""
        loggers, level, handlers = set(logging.root.manager.loggerDict), logging.root.level, [*logging.root.handlers]
        environment = {"SERVICES": Ministack.services, "MINISTACK_REGION": REGION, "LOG_LEVEL": "WARNING"}
        with mock.patch.dict(os.environ, environment):
            self._gateway: Any = importlib.import_module("ministack.app")
            self._dynamodb: Any = importlib.import_module("ministack.services.dynamodb")
            importlib.import_module("ministack.services.dynamodb_streams")
        logging.root.setLevel(level)
        logging.root.handlers[:] = handlers
        for name in set(logging.root.manager.loggerDict) - loggers:
            logging.getLogger(name).propagate = False
            logging.getLogger(name).addHandler(logging.NullHandler())

    def _at_once(self, request: AWSPreparedRequest) -> AWSResponse | None:
        """The answer to a request of this process for DynamoDB; None for any other."""
        url, target = str(request.url), request.headers.get("X-Amz-Target", b"")
        if not url.startswith(f"{self.endpoint_url}/") or b"DynamoDB" not in bytes_of(target):
            return None
        if os.getpid() != self._owner:  # a fork has a copy of what the engine held
            return None
        headers = [(name.lower().encode(), bytes_of(value)) for name, value in request.headers.items()]
        answer = self.answer("POST", "/", headers, bytes_of(request.body))
        received = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
        response = AWSResponse(url, answer.status, received, None)
        response._content = answer.content
        return response

    def answer(self, method: str, path: str, headers: Headers, body: bytes) -> Answer:
        """Of what needs no loop: tables, their streams, and the engine's memory."""
        with self._turns:
            if path == RESET:
                self._gateway._reset_all_state()
                return Answer(200)
            if path.startswith(MEMORY):
                return self._remember(*path.removeprefix(MEMORY).split("/"))
            answer = Answer()
            asked = self.app(method, path, b"", headers, brings(body), answer)
            # In a context of its own, because the engine notes there who asks.
            copy_context().run(to_its_end, asked)
            return answer

    def app(
        self, method: str, path: str, query: bytes, headers: Headers, receive: Receive, answer: Answer
    ) -> Coroutine[Any, Any, None]:
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": urllib.parse.quote(path).encode(),
            "query_string": query,
            "headers": headers,
            "client": (LOOPBACK, 0),
        }
        return self._gateway.app(scope, receive, answer.hear)  # type: ignore[no-any-return]

    def _remember(self, action: str, name: str) -> Answer:
        if action == "keep":
            with self._dynamodb._lock:
                self._memory[name] = pickle.dumps({part: getattr(self._dynamodb, part)._data for part in PARTS})
        elif name in self._memory:
            self._bring(self._memory[name])
        else:
            return Answer(404)
        return Answer(200)

    def _bring(self, kept: bytes) -> None:
        self._gateway._reset_all_state()
        dynamodb = self._dynamodb
        with dynamodb._lock:
            for part, data in pickle.loads(kept).items():  # noqa: S301  # its own bytes
                getattr(dynamodb, part)._data.update(data)
            for place, table in dynamodb._tables._data.items():
                if table.get("LatestStreamArn"):
                    self._renew_stream(table, dynamodb._stream_records._data.get(place, ()))

    def _renew_stream(self, table: dict[str, Any], records: Iterable[dict[str, Any]]) -> None:
        """As if the table were made now, under another name: who still follows the last test's stream finds it gone."""
        table["LatestStreamLabel"] = self._dynamodb._stream_label()
        table["LatestStreamArn"] = f"{table['TableArn']}/stream/{table['LatestStreamLabel']}"
        for record in records:
            record["eventSourceARN"] = table["LatestStreamArn"]


def bytes_of(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def brings(body: bytes, gone: asyncio.Future[None] | None = None) -> Receive:
    """What the engine hears of a client: its request, and then that it has gone."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Scope:
        if messages:
            return messages.pop()
        if gone:
            await asyncio.wait([gone])
        return {"type": "http.disconnect"}

    return receive


def to_its_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing without a loop."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise RuntimeError("The engine waits for something in the midst of a request to DynamoDB.")


class Connection(asyncio.Protocol):
    """One client's connection: requests with a Content-Length or without a body, one after the other."""

    def __init__(self, engine: QuickEngine) -> None:
        self.engine = engine
        self.received = b""
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.gone = asyncio.get_running_loop().create_future()

    def connection_lost(self, error: Exception | None) -> None:
        self.gone.cancel()

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.task is None:
            self.begin()

    def begin(self) -> None:
        head, end, rest = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        first, *lines = head.split(b"\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
        length = int(next((value for name, value in headers if name == b"content-length"), b"0"))
        if len(rest) < length:
            return
        self.received = rest[length:]
        # A task of its own, because the engine notes in its context who asks.
        self.task = asyncio.create_task(self.serve(first, headers, rest[:length]))

    async def serve(self, first: bytes, headers: Headers, body: bytes) -> None:
        method, target, _ = first.decode().split(" ")
        path, _, query = target.partition("?")
        try:
            answer = await self.answer(method, urllib.parse.unquote(path), query.encode(), headers, body)
        except BaseException:
            self.transport.abort()  # or the client would wait for an answer
            raise
        lines = [b"HTTP/1.1 %d %s" % (answer.status, HTTPStatus(answer.status).phrase.encode())]
        lines += [b"%s: %s" % pair for pair in answer.headers if pair[0].lower() != b"content-length"]
        lines.append(b"content-length: %d\r\n\r\n" % len(answer.content))
        self.transport.write(b"\r\n".join(lines) + answer.content)
        self.task = None
        if (b"connection", b"close") in headers:
            self.transport.close()
        else:
            self.begin()

    async def answer(self, method: str, path: str, query: bytes, headers: Headers, body: bytes) -> Answer:
        target = next((value for name, value in headers if name == b"x-amz-target"), b"")
        if b"DynamoDB" in target or path == RESET or path.startswith(MEMORY):
            return self.engine.answer(method, path, headers, body)
        answer = Answer()
        await self.engine.app(method, path, query, headers, brings(body, self.gone), answer)
        return answer
