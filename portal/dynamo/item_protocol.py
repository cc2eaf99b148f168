"""The straight way of requests for items: signed, sent and read without what botocore does for every service of AWS.

PynamoDB builds requests as DynamoDB takes them, typed values included, and DynamoDB answers in JSON that is already
what botocore makes of it. So of botocore's work for a request, some 0.6 ms, little is needed: its hooks, on which the
guard and the meter stand, its credentials, its errors. The rest is the same for each request of a client, or for each
of a day. Figures: docs/adr/0007-less-overhead.md.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import select
import socket
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from botocore.hooks import first_non_none_response
from botocore.httpsession import get_cert_path
from botocore.parsers import ResponseParserError

OPERATIONS: Final = frozenset(
    {
        *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem"),
        *("TransactGetItems", "TransactWriteItems", "GetRecords"),
    }
)
_TYPE: Final = "application/x-amz-json-1.0"


@dataclass
class SignedRequest:
    """Hold what botocore's AWSPreparedRequest does, without a dict of headers that takes their names in any case."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


class ItemCalls:
    """A base of botocore's clients of DynamoDB and of its streams, which sends OPERATIONS by the straight way."""

    meta: Any
    exceptions: Any
    _endpoint: Any
    _request_signer: Any
    _response_parser: Any
    _service_model: Any

    @cached_property
    def _exchange(self) -> HttpExchange:
        return HttpExchange(self.meta.endpoint_url, self.meta.config, self._endpoint.http_session)

    @cached_property
    def _operations(self) -> dict[str, tuple[Any, str]]:
        """Return botocore's model of each operation of this client, and the name in its events."""
        service = self._service_model
        models = {one: service.operation_model(one) for one in OPERATIONS & set(service.operation_names)}
        return {one: (model, f"{service.service_id.hyphenize()}.{one}") for one, model in models.items()}

    def _make_api_call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation not in OPERATIONS:
            return super()._make_api_call(operation, params)  # type: ignore[misc,no-any-return]  # botocore's, behind this
        model, name = self._operations[operation]
        emit = self.meta.events.emit
        context: dict[str, Any] = {}
        emit(f"before-parameter-build.{name}", params=params, model=model, context=context)
        request = self._request(operation, params, context)
        _, answer = self.meta.events.emit_until_response(
            f"before-call.{name}", model=model, params=request, request_signer=self._request_signer, context=context
        )
        try:
            http, parsed = answer or self._attempt(name, model, request)
        except Exception as error:
            emit(f"after-call-error.{name}", exception=error, context=context)
            raise
        emit(f"after-call.{name}", http_response=http, parsed=parsed, model=model, context=context)
        if http.status_code >= 300:
            raise self.exceptions.from_code(parsed.get("Error", {}).get("Code"))(parsed, operation)
        return parsed

    def _request(self, operation: str, params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        target = f"{self._service_model.metadata['targetPrefix']}.{operation}"
        headers = {"X-Amz-Target": target, "Content-Type": _TYPE, "User-Agent": self.meta.config.user_agent}
        return {"url": f"{self.meta.endpoint_url}/", "headers": headers, "body": written(params), "context": context}

    def _attempt(self, name: str, model: Any, request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Send the request; after a failure, `needs-retry` says whether again. Raises what botocore raises."""
        for attempts in count(1):
            answer: tuple[Any, dict[str, Any]] | Exception
            try:
                answer = self._ask(name, model, request)
                if answer[0].status_code < 300:
                    return answer
            except Exception as error:
                answer = error
            failed = isinstance(answer, Exception)
            said = self.meta.events.emit(
                f"needs-retry.{name}",
                response=None if failed else answer,
                endpoint=self._endpoint,
                operation=model,
                attempts=attempts,
                caught_exception=answer if failed else None,
                request_dict=request,
            )
            pause = first_non_none_response(said)
            if pause is None:
                break
            time.sleep(pause)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ask(self, name: str, model: Any, request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        signer = self._request_signer
        if signer._credentials is None:
            raise NoCredentialsError
        credentials = signer._credentials.get_frozen_credentials()
        headers = request["headers"] | signature(
            credentials, signer._region_name, signer._signing_name, request, datetime.now(UTC)
        )
        sent = SignedRequest("POST", request["url"], headers, request["body"])
        http = first_non_none_response(self.meta.events.emit(f"before-send.{name}", request=sent))
        if http is None:
            http = self._exchange.send(sent)
        if http.status_code >= 300:
            told = {"headers": http.headers, "status_code": http.status_code, "body": http.content}
            parsed = self._response_parser.parse(told, model.output_shape)
            self._endpoint._add_modeled_error_fields(told, parsed, model, self._response_parser)
            return http, parsed
        parsed = read(http.content)
        parsed["ResponseMetadata"] = {"HTTPStatusCode": http.status_code, "HTTPHeaders": http.headers}
        return http, parsed


# --- signing ---


def signature(credentials: Any, region: str, service: str, request: dict[str, Any], now: datetime) -> dict[str, str]:
    """Return the headers that sign a POST of ours. Source: AWS, "Signature Version 4 signing process"."""
    moment = f"{now:%Y%m%dT%H%M%SZ}"
    headers = request["headers"]
    signed = {"content-type": headers["Content-Type"], "host": _host(request["url"]), "x-amz-date": moment}
    added = {"X-Amz-Date": moment}
    if credentials.token:
        signed["x-amz-security-token"] = added["X-Amz-Security-Token"] = credentials.token
    signed["x-amz-target"] = headers["X-Amz-Target"]
    names = ";".join(signed)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(request['body']).hexdigest()}"
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = _signing_key(credentials.secret_key, moment[:8], region, service)
    proof = hmac.digest(key, text.encode(), "sha256").hex()
    added["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={proof}"
    )
    return added


@lru_cache(maxsize=1024)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    """Return what signs the requests of a day: it depends on no request, and on a tenant by the secret alone."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


@lru_cache(maxsize=64)
def _host(url: str) -> str:
    found = urlsplit(url)
    usual = {"http": 80, "https": 443}[found.scheme]
    return str(found.hostname) if found.port in (None, usual) else f"{found.hostname}:{found.port}"


# --- bodies ---


def written(params: dict[str, Any]) -> bytes:
    """Return the body of a request. Binary attributes are base64 on the way."""
    try:
        return orjson.dumps(params, default=_base64)
    except orjson.JSONEncodeError:  # half of a surrogate pair, which is no UTF-8: the engine judges it
        return json.dumps(params, default=_base64).encode()


def _base64(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is nothing that an attribute holds")


def read(body: bytes) -> dict[str, Any]:
    """Return what an answer says. Raises ResponseParserError where it is no JSON object."""
    try:
        parsed = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        try:
            parsed = json.loads(body)
        except ValueError as error:
            raise ResponseParserError("the answer is no JSON") from error
    if not isinstance(parsed, dict):
        raise ResponseParserError("the answer is no JSON object")
    # Inside a text the quote would be escaped, so these bytes can only be a name: of a type, mostly.
    if b'"B":' in body or b'"BS":' in body:
        _decode(parsed)
    return parsed


def _decode(value: Any) -> None:
    """Make bytes of the binary attributes in an answer, wherever they stand: `{"B": text}` and `{"BS": texts}`."""
    if isinstance(value, list):
        for one in value:
            _decode(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name == "B" and isinstance(one, str):
                value[name] = b64decode(one)
            elif name == "BS" and isinstance(one, list):
                value[name] = [b64decode(each) for each in one]
            else:
                _decode(one)


def straighten(class_attributes: dict[str, Any], base_classes: list[type], **_: Any) -> None:
    """Put ItemCalls in front of a client's bases: a handler of botocore's event "creating-client-class"."""
    base_classes.insert(0, ItemCalls)


# --- the exchange ---


PROBE_SECONDS: Final = 0.5


class Silence:
    """Notice that an endpoint gives no answers any more, so that requests fail at once while that lasts.

    A request that waits for its timeout holds a thread of the web server; some seconds into an outage all threads would
    wait, and people with them. An endpoint is silent when a request has waited in vain and nobody in this process got
    an answer meanwhile: one slow request proves nothing while others are answered. One request in each PROBE_SECONDS
    still goes out, and the first answer to any ends the silence. A refused connection is none: it fails at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answered = time.monotonic()
        self._next_probe: float | None = None  # None while it answers

    def lets_pass(self) -> bool:
        """Tell whether a request may be sent: always, but in a silence."""
        if self._next_probe is None:
            return True
        with self._lock:
            now = time.monotonic()
            if self._next_probe is None or now >= self._next_probe:
                self._next_probe = None if self._next_probe is None else now + PROBE_SECONDS
                return True
            return False

    def end(self) -> None:
        """Note that an answer came."""
        self._answered, self._next_probe = time.monotonic(), None

    def note_timeout(self, since: float) -> None:
        """Note that a request got no answer that was sent at `since`, by the monotonic clock."""
        with self._lock:
            if self._answered < since:
                self._next_probe = time.monotonic() + PROBE_SECONDS


_silences: defaultdict[str, Silence] = defaultdict(Silence)  # by endpoint, for the clients of all roles


@dataclass(frozen=True)
class EngineAnswer:
    """A response. The names of its headers are in lower case."""

    status_code: int
    headers: dict[str, str]
    content: bytes


class HttpExchange:
    """The connections of one botocore client to its endpoint, kept open, for any number of threads.

    The standard library's `http.client` takes half the processor time of urllib3, which was a third of a request's.
    Behind a proxy, botocore's own session is asked.
    """

    def __init__(self, url: str, config: Any, session: Any) -> None:
        self._url, self._config, self._session = url, config, session
        self._through_proxy = bool(session._proxy_config.proxy_url_for(url))
        self._idle: deque[_Connection] = deque()
        self._silence = _silences[url]
        self._tls = None
        if url.startswith("https:"):
            self._tls = ssl.create_default_context(cafile=get_cert_path(session._verify))

    def send(self, request: SignedRequest) -> Any:
        """Return the answer, with status_code, headers and content. Raises errors of botocore's HTTPClientError."""
        if self._through_proxy:
            return self._session.send(
                AWSPreparedRequest(request.method, request.url, request.headers, request.body, False)
            )
        if not self._silence.lets_pass():
            raise EndpointConnectionError(endpoint_url=self._url, error="it gives no answers")
        began = time.monotonic()
        try:
            answer = self._answer(request)
        except (ConnectTimeoutError, ReadTimeoutError):
            self._silence.note_timeout(began)
            raise
        self._silence.end()
        return answer

    def _answer(self, request: SignedRequest) -> EngineAnswer:
        connection = self._connection()
        try:
            answer = connection.ask(request.headers, request.body)
            content = answer.read()
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
            raise ConnectionClosedError(endpoint_url=self._url, request=request, error=error) from error
        except BaseException:
            connection.close()  # half an answer is still on its way
            raise
        if answer.will_close or len(self._idle) >= self._config.max_pool_connections:
            connection.close()
        else:
            self._idle.append(connection)
        return EngineAnswer(answer.status, answer.headers, content)  # type: ignore[arg-type]  # as _Answer makes them

    def _connection(self) -> _Connection:
        """Return a connection: one that is idle, and that the other side has not closed meanwhile, or a new one."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if not connection.is_readable():
                return connection
            connection.close()
        connection = _Connection(self._url, self._config, self._tls)
        try:
            connection.connect()
        except ssl.SSLError as error:
            raise SSLError(endpoint_url=self._url, error=error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=self._url, error=error) from error
        return connection


class _Answer(http.client.HTTPResponse):
    """A response whose headers are read as lines: `http.client` reads them as those of a mail, in twice the time."""

    def begin(self) -> None:
        version, self.status, self.reason = self._read_status()  # type: ignore[attr-defined]
        self.code, self.version = self.status, 11
        headers: dict[str, str] = {}
        while (line := self.fp.readline(65537)) not in (b"\r\n", b"\n"):
            if not line:
                raise http.client.RemoteDisconnected("the answer ended among its headers")
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        self.headers = self.msg = headers  # type: ignore[assignment]
        self.chunked, self.chunk_left = headers.get("transfer-encoding", "").lower() == "chunked", None
        stated = headers.get("content-length")
        self.length = None if self.chunked or stated is None else int(stated)
        ends = version == "HTTP/1.0" or headers.get("connection", "").lower() == "close"
        self.will_close = ends or (not self.chunked and self.length is None)


class _Connection(http.client.HTTPConnection):
    """A connection to an endpoint, over TLS where its address says so."""

    def __init__(self, url: str, config: Any, tls: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        self.default_port = 443 if tls else 80
        super().__init__(str(parts.hostname), parts.port or self.default_port, timeout=config.connect_timeout)
        self._read_timeout, self._tls, self._authority = config.read_timeout, tls, _host(url)

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._tls:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)
        self.sock.settimeout(self._read_timeout)

    def ask(self, headers: Mapping[str, str], body: bytes) -> _Answer:
        """Send a POST request in one piece, and return the response, of which the body is still to be read.

        `http.client` sends head and body apart, which is one system call more. Raises ValueError for a header that
        would become several.
        """
        lines = [
            "POST / HTTP/1.1",
            f"Host: {self._authority}",
            "Accept-Encoding: identity",
            f"Content-Length: {len(body)}",
        ]
        lines += (f"{name}: {value}" for name, value in headers.items() if name != "Content-Length")
        head = "\r\n".join(lines)
        if not head.count("\n") == head.count("\r") == len(lines) - 1:
            raise ValueError("a header has a line break")
        self.sock.sendall(head.encode("latin-1") + b"\r\n\r\n" + body)
        answer = _Answer(self.sock, method="POST")
        answer.begin()
        return answer

    def is_readable(self) -> bool:
        """Tell whether something waits to be read, which before a request can only be the end of the connection."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(0))
