"""Send one request to an address that somebody else chose, and let it lead nowhere but to the public internet.

The name is resolved once. If any of its addresses is not public, nothing is sent; else the connection is made to one
of the addresses that were looked at, so that a second, different answer of the name server changes nothing. The
certificate is checked against the name. Proxies of the environment are not used, and redirects are not followed: each
connection is made here, by hand.

A receiver has DEADLINE seconds for everything, resolution included. A socket's timeout holds for one read only, so the
time that is left is set anew before each read and write: a receiver that sends a byte now and then gains nothing.

http.client and not urllib3, whose pools, retries and redirects would all have to be switched off.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.webhooks import safe_addresses
from delivery.webhooks.safe_addresses import WebhookAddress
from portal.errors import PortalError
from portal.web.locales import declare_stored

DEADLINE: Final = 10.0  # seconds
ANSWER_LIMIT: Final = 64 * 1024  # bytes of an answer's body that are read


class AddressRefused(PortalError):
    """The name leads, with one of its addresses at least, to where webhooks are not sent."""


# The reasons are stored, in English; pages translate them.
LATE: Final = declare_stored(gettext_noop("No answer within %(seconds)s seconds."))
CERTIFICATE: Final = declare_stored(gettext_noop("The certificate is not valid: %(why)s."))
ENCRYPTION: Final = declare_stored(gettext_noop("No encrypted connection: %(why)s."))
NO_HTTP: Final = gettext_noop("The answer is not HTTP.")
CONNECTION: Final = declare_stored(gettext_noop("No connection: %(why)s."))
INTERNAL: Final = declare_stored(gettext_noop("%(host)s leads to an address that is not of the public internet."))
NO_HOST: Final = declare_stored(gettext_noop("There is no host %(host)s."))


class NoAnswer(PortalError):
    """The receiver could not be reached, or did not answer as HTTP in time."""


@dataclass(frozen=True)
class HttpAnswer:
    """The answer of a receiver. `body` has up to ANSWER_LIMIT bytes, `is_cut` says that there were more."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    is_cut: bool

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True)
class SafeClient:
    """Send requests within bounds: `is_allowed` judges each IP address, `trusted` the receivers' certificates."""

    is_allowed: Callable[[str], bool] = safe_addresses.is_public
    trusted: ssl.SSLContext | None = None
    deadline: float = DEADLINE

    def post(self, target: WebhookAddress, *, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """POST a body once. Raises AddressRefused and NoAnswer; an answer of any status is an answer."""
        limit = _Limit(self.deadline)
        try:
            with self._connected(target, limit) as connection:
                return _exchange(_TimedConnection(connection, limit), target, body, headers)
        except TimeoutError as error:
            raise NoAnswer(LATE % {"seconds": f"{self.deadline:g}"}) from error
        except ssl.SSLCertVerificationError as error:
            raise NoAnswer(CERTIFICATE % {"why": error.verify_message}) from error
        except ssl.SSLError as error:
            raise NoAnswer(ENCRYPTION % {"why": error.reason or "it was closed"}) from error
        except http.client.HTTPException as error:
            raise NoAnswer(NO_HTTP) from error
        except OSError as error:
            raise NoAnswer(CONNECTION % {"why": error.strerror or "it was closed"}) from error

    def _connected(self, target: WebhookAddress, limit: _Limit) -> socket.socket:
        addresses = _resolved(target, limit)
        refused = [address for address in addresses if not self.is_allowed(address)]
        if refused or not addresses:
            raise AddressRefused(INTERNAL % {"host": target.host})
        connection = _first_connected(addresses, target.port, limit)
        if target.scheme == "http":
            return connection
        connection.settimeout(limit.left())  # of the whole handshake: OpenSSL counts it down itself
        return (self.trusted or _public_authorities()).wrap_socket(connection, server_hostname=target.host)


@lru_cache(maxsize=1)
def _public_authorities() -> ssl.SSLContext:
    return ssl.create_default_context()


class _Limit:
    """The time that one exchange has left."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left. Raises TimeoutError where there are none."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class _TimedReads(io.RawIOBase):
    """The reading side of a connection; each read has only the time that is left."""

    def __init__(self, connection: socket.socket, limit: _Limit) -> None:
        self._connection, self._limit = connection, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(self._limit.left())
        return self._connection.recv_into(buffer)


class _TimedConnection:
    """A connection as http.client uses one; each read and write has only the time that is left."""

    def __init__(self, connection: socket.socket, limit: _Limit) -> None:
        self._connection, self._limit = connection, limit

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReads(self._connection, self._limit))

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._connection.settimeout(self._limit.left())
            rest = rest[self._connection.send(rest) :]

    def close(self) -> None:
        """Do nothing: http.client closes it before it has read the answer. `SafeClient.post` closes the socket."""


def _resolved(target: WebhookAddress, limit: _Limit) -> list[str]:
    """Return all addresses of a name, each once. The system's resolver has no timeout, so it is asked beside us.

    A thread of its own for each name: those that wait for a slow name server are then in nobody's way.
    """
    found: list[list[str] | OSError] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
            found.append([_with_zone(answer[4]) for answer in answers])
        except (OSError, UnicodeError) as error:
            found.append(error if isinstance(error, OSError) else OSError(str(error)))

    resolver = threading.Thread(target=ask, name=f"resolve {target.host}", daemon=True)
    resolver.start()
    resolver.join(limit.left())
    if not found:
        raise TimeoutError
    if isinstance(found[0], OSError):
        raise NoAnswer(NO_HOST % {"host": target.host}) from found[0]
    return list(dict.fromkeys(found[0]))


def _with_zone(sockaddr: Any) -> str:
    """Return the IP address of what getaddrinfo answered, with the zone if it has one."""
    address = str(sockaddr[0])
    return f"{address}%{sockaddr[3]}" if len(sockaddr) == 4 and sockaddr[3] and "%" not in address else address


def _first_connected(addresses: Sequence[str], port: int, limit: _Limit) -> socket.socket:
    """Connect to the first address that takes a connection. Each but the last has its share of the time."""
    for tried, address in enumerate(addresses, 1):
        share = limit.left() / (len(addresses) - tried + 1)
        connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        try:
            connection.settimeout(share)
            connection.connect((address, port))
        except OSError:
            connection.close()
            if tried == len(addresses):
                raise
        else:
            return connection
    raise AssertionError("unreachable: there is an address")


def _exchange(
    connection: _TimedConnection, target: WebhookAddress, body: bytes, headers: Mapping[str, str]
) -> HttpAnswer:
    client = http.client.HTTPConnection(target.host, target.port)
    client.sock = connection  # what it uses of a socket; connected already: http.client makes no connection of its own
    client.putrequest("POST", target.path, skip_host=True, skip_accept_encoding=True)
    own = {"Host": target.host_header, "Content-Length": str(len(body)), "Connection": "close"}
    for name, value in (own | dict(headers)).items():
        client.putheader(name, value)
    client.endheaders(body)
    answer = client.getresponse()
    content = answer.read(ANSWER_LIMIT + 1)
    return HttpAnswer(answer.status, answer.getheaders(), content[:ANSWER_LIMIT], len(content) > ANSWER_LIMIT)
