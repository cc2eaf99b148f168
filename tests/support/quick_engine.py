"""The embedded engine as most tests have it: the same tables and streams behind a shorter way in, and with a memory.

A test's empty tables, or its whole world, are made by ordinary requests once; the engine keeps what it holds under a
name and holds it again in one request. And most of what a request costs the engine is its server, which reads HTTP of
every kind, and its gateway, which looks which of eighty services is asked: here stands a server that reads what AWS's
clients send, and hands what is asked of tables and streams to their service at once. What a service does twice in a
request, it is spared (`spare`). All else is the engine as it is, and `tests/engines` tries it with its own server.
`python tests/support/quick_engine.py` runs it in the place of `python -m ministack`.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import itertools
import json
import os
import pickle
import re
import signal
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import Context
from email.utils import formatdate
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import orjson
from ministack import app as gateway
from ministack.core import responses, router
from ministack.services import dynamodb, dynamodb_streams, s3, sqs, sts

MEMORY = "/_tests/"
# What is set for the engine's tables.
SETTINGS = ("_tags", "_ttl_settings", "_pitr_settings")
OBJECTS = ("_buckets", "_object_tags")
QUEUES = ("_queues", "_queue_name_to_url")
# Of requests to these, which change no table.
NO_TABLES = (b"/sqs/aws4_request", b"/s3/aws4_request")
# What is handed on at once, by the version in X-Amz-Target.
SERVICES = {b"DynamoDB_20120810": dynamodb, b"DynamoDBStreams_20120810": dynamodb_streams}

Place = tuple[str, str, str]  # account, region and name of a table
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]

# By name: each table with its stream, and what is set for them, with the queues.
memory: dict[str, tuple[dict[Place, bytes], bytes]] = {}
# The tables that are as they were kept. What nobody has written to is neither kept nor brought a second time.
held: dict[Place, bytes] = {}
# What changes nothing of what is held, and what changes the items of tables that it names.
LOOKS = {"BatchGetItem", "GetItem", "Query"}
STREAM_LOOKS = {"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams", "DescribeTable", "Scan"}
WRITES = {"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"}
# What answers each of these, which the service looks up in a list of all that it makes anew for each request.
ANSWERING = {
    f"DynamoDB_20120810.{action}": getattr(dynamodb, re.sub("(?=[A-Z])", "_", action).lower())
    for action in LOOKS | WRITES
}
# The headers that count, of a dozen.
HEADERS = re.compile(rb"\r\n(authorization|connection|content-length|x-amz-target): *([^\r]*)", re.IGNORECASE)
untouched = [""]  # the name of what is held, "" as soon as anything but a look has been asked for since
others = [True]  # whether the reset has to go through the services that hold neither tables, queues nor objects
numbers = itertools.count()  # of requests
others = [True]  # whether a service has been asked since the last reset that holds neither tables, queues nor objects
numbers = itertools.count()  # of requests


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http" or not scope["path"].startswith(MEMORY):
        await gateway.app(scope, receive, send)
        return
    action, _, name = scope["path"].removeprefix(MEMORY).partition("/")
    status, known = 404, b""
    if action == "go_on":  # to what is known to follow from what is held
        name = f"{untouched[0]}/{name}"
        action, known = ("bring", name.encode()) if untouched[0] else ("", b"")
    if action == "empty":
        status = 200 if not any(one["messages"] for one in sqs._queues._data.values() if one["name"] == name) else 404
    elif action == "keep":
        keep(name)
        status, untouched[0] = 200, name
    elif action == "bring" and name in memory:
        # As the engine's own reset does: no request is served while the state is neither the old nor the new.
        async with gateway._get_reset_lock():
            bring(name)
        status, untouched[0] = 200, name
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": known})


def keep(name: str) -> None:
    with dynamodb._lock:
        records = dynamodb._stream_records._data
        for place, table in dynamodb._tables._data.items():
            if place not in held:
                held[place] = pickle.dumps((table, records.get(place)))
        settings = pickle.dumps({part: getattr(service, part)._data for service, part in parts()})
        memory[name] = ({place: held[place] for place in dynamodb._tables._data}, settings)


def bring(name: str) -> None:
    kept, settings = memory[name]
    tables, records = dict(dynamodb._tables._data), dict(dynamodb._stream_records._data)
    there = {place for place in tables if held.get(place) is kept.get(place, b"")}
    # Objects stay: a test's keys are no other's, or those of a world that is brought back with them.
    objects = {part: dict(getattr(s3, part)._data) for part in OBJECTS}
    if others[0]:
        gateway._reset_all_state()
        others[0] = False
    else:
        for service in (dynamodb, sqs, s3):
            service.reset()
    for part, data in objects.items():
        getattr(s3, part)._data.update(data)
    with dynamodb._lock:
        held.clear()
        held.update(kept)
        for place, stored in kept.items():
            table, told = (
                (tables[place], records.get(place)) if place in there else pickle.loads(stored)  # noqa: S301  # its own
            )
            dynamodb._tables._data[place] = table
            if told is not None:
                dynamodb._stream_records._data[place] = told
            if table.get("LatestStreamArn"):
                renew_stream(table, told or ())
        kept_parts = pickle.loads(settings)  # noqa: S301  # its own bytes
        for service, part in parts():
            getattr(service, part)._data.update(kept_parts[part])


def parts() -> list[tuple[Any, str]]:
    return [*((dynamodb, part) for part in SETTINGS), *((sqs, part) for part in QUEUES)]


def note(action: str, body: bytes) -> None:
    """A request may change what is held: the items of tables that it names, or anything."""
    if action in LOOKS:
        return
    untouched[0] = ""
    if action in WRITES:
        for place in [place for place in held if place[2].encode() in body]:
            del held[place]
    elif action not in STREAM_LOOKS:
        held.clear()


def renew_stream(table: dict[str, Any], records: Iterable[dict[str, Any]]) -> None:
    """Another name for the stream, as if the table were made now: who still follows the last test's finds it gone."""
    table["LatestStreamLabel"] = dynamodb._stream_label()
    table["LatestStreamArn"] = f"{table['TableArn']}/stream/{table['LatestStreamLabel']}"
    for record in records:
        record["eventSourceARN"] = table["LatestStreamArn"]


def asked(service: Any, headers: dict[bytes, bytes], body: bytes) -> tuple[int, bytes]:
    """The status and the body of a service's answer, as the gateway gets them."""
    target = headers[b"x-amz-target"].decode()
    note(target.partition(".")[2], body)
    key, account, region = signer(headers.get(b"authorization", b"").partition(b",")[0])
    if sts._sessions:
        responses.set_request_account_id(key)
    else:
        responses._request_account_id.set(account)
    responses.set_request_region(region)
    try:
        if target in ANSWERING:
            status, _, answer = ANSWERING[target](loaded(body))
        else:
            status, _, answer = at_once(service.handle_request("POST", "/", {"x-amz-target": target}, body, {}))
    except Exception as error:
        gateway.logger.exception("Error handling a request")
        return 500, json.dumps({"__type": "InternalError", "message": str(error)}).encode()
    return status, answer


@functools.lru_cache(maxsize=4096)
def signer(credential: bytes) -> tuple[str, str, str]:
    """The key of a signature, its account unless it is of a session, and the region."""
    named = {"authorization": credential.decode()}
    key = router.extract_access_key_id(named)
    responses.set_request_account_id(key if key.isdigit() else "")
    return key, responses.get_account_id(), router.extract_region(named)


@functools.lru_cache(maxsize=1)
def dated(second: int) -> str:
    return formatdate(second, usegmt=True)


def at_once(answering: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        answering.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the engine waits in the midst of a request")


def spare() -> None:
    """Expressions are taken apart and judged once, items copied as what they are, and JSON read and written quickly."""
    parts = functools.lru_cache(maxsize=4096)(dynamodb._tokenize)
    dynamodb._tokenize = lambda expression: parts(expression).copy()
    dynamodb._condition_syntax_error = functools.lru_cache(maxsize=4096)(dynamodb._condition_syntax_error)
    dynamodb._number_size_bytes = functools.lru_cache(maxsize=4096)(dynamodb._number_size_bytes)
    dynamodb.copy = SimpleNamespace(deepcopy=copied)
    for service in SERVICES.values():
        service.json = SimpleNamespace(loads=loaded, dumps=json.dumps, JSONDecodeError=json.JSONDecodeError)
        service.json_response = functools.partial(answered, service.json_response)
    remove = dynamodb._remove_item

    def removed(table: dict[str, Any], *key: Any) -> Any:  # by what has an end too, which nobody asks for
        for place in [place for place in held if place[2] == table["TableName"]]:
            del held[place]
        return remove(table, *key)

    dynamodb._remove_item = removed


def loaded(body: bytes | str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:  # half of a surrogate pair, or indeed no JSON
        return json.loads(body)


def answered(slowly: Callable[..., Any], data: Any, status: int = 200) -> Any:
    try:
        return status, {"Content-Type": "application/x-amz-json-1.0"}, orjson.dumps(data)
    except orjson.JSONEncodeError:
        return slowly(data, status)


def copied(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value
    if kind is dict:
        return {name: copied(part) for name, part in value.items()}
    if kind is list:
        return [copied(part) for part in value]
    return copy.deepcopy(value)


class Connection(asyncio.Protocol):
    """One client's connection: requests with a Content-Length or without a body, one after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.client = transport.get_extra_info("peername")
        self.received = b""
        self.task: asyncio.Task[None] | None = None
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
        named = {name.lower(): value for name, value in HEADERS.findall(head)}
        length = int(named.get(b"content-length", 0))
        if len(rest) < length:
            return
        self.received = rest[length:]
        closes = named.get(b"connection", b"").lower() == b"close"
        service = SERVICES.get(named.get(b"x-amz-target", b"").partition(b".")[0])
        # A context or a task of its own, because the engine notes in its context who asks.
        if service is None or gateway._get_reset_lock().locked():
            if any(scope in named.get(b"authorization", b"") for scope in NO_TABLES):
                untouched[0] = ""
            elif not head.startswith(b"POST " + MEMORY.encode()):
                others[0] = True
                note("", b"")
            self.task = asyncio.create_task(self.answer(head, rest[:length], closes))
            return
        status, body = Context().run(asked, service, named, rest[:length])
        told = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-length: {len(body)}\r\n"
            f"content-type: application/x-amz-json-1.0\r\nx-amzn-requestid: {next(numbers)}\r\n"
            f"date: {dated(int(time.time()))}\r\n\r\n"
        )
        self.transport.write(told.encode() + body)
        self.go_on(closes)

    async def answer(self, asking: bytes, body: bytes, closes: bool) -> None:
        first, *lines = asking.split(b"\r\n")
        method, target, version = first.split(b" ")
        raw_path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "http_version": version[5:].decode(),
            "method": method.decode(),
            "scheme": "http",
            "path": urllib.parse.unquote(raw_path.decode()),
            "raw_path": raw_path,
            "query_string": query,
            "headers": [(n.lower(), value.strip()) for n, _, value in (line.partition(b":") for line in lines)],
            "client": self.client,
        }
        brought = [{"type": "http.request", "body": body, "more_body": False}]
        head: list[bytes] = []
        content: list[bytes] = []

        async def receive() -> Scope:
            if not brought:
                await asyncio.wait([self.gone])
                return {"type": "http.disconnect"}
            return brought.pop()

        async def send(message: Scope) -> None:
            if message["type"] == "http.response.body":
                content.append(message.get("body", b""))
                return
            status = message["status"]
            head.append(b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode()))
            head.extend(b"%s: %s" % pair for pair in message["headers"] if pair[0].lower() != b"content-length")

        try:
            await app(scope, receive, send)
        except BaseException:
            self.transport.abort()  # or the client would wait for an answer
            raise
        whole = b"".join(content)
        head.append(b"content-length: %d\r\n\r\n" % len(whole))
        self.transport.write(b"\r\n".join(head) + whole)
        self.task = None
        self.go_on(closes)

    def go_on(self, closes: bool) -> None:
        if closes:
            self.transport.close()
        elif self.received:
            self.begin()


async def serve() -> None:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    steps: asyncio.Queue[Scope] = asyncio.Queue()
    done: asyncio.Queue[Scope] = asyncio.Queue()
    life = asyncio.create_task(gateway.app({"type": "lifespan"}, steps.get, done.put))
    steps.put_nowait({"type": "lifespan.startup"})
    assert (await done.get())["type"] == "lifespan.startup.complete"
    spare()
    # What it consists of is no garbage, and what it holds is: neither is looked through every few requests.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    await loop.create_server(Connection, os.environ["BIND_HOST"], int(os.environ["GATEWAY_PORT"]), backlog=1024)
    await stopping.wait()
    steps.put_nowait({"type": "lifespan.shutdown"})
    await life


if __name__ == "__main__":
    asyncio.run(serve())
