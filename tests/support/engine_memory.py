"""The wire to the embedded engine of the tests, and what it remembers: what one test began with is brought back for the
next.

The portal's own clients sign, check and count each request, which a fixture need not pay for.
"""

from __future__ import annotations

import copy
import functools
import http.client
import json
import urllib.parse
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings

# The engine takes account and region from the signature, which it does not check.
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=pooldesk/20260101/{region}/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
)
MEMORY = "/_tests/"  # of tests/support/quick_engine.py

Made = TypeVar("Made")

_made: dict[tuple[str, str], Any] = {}  # by the engine's address and the name
# Whether what is made next is what any test would make.
may_go_on = False


class Wire:
    """One connection to the engine, which stays open from test to test."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=300)

    def post(self, path: str, body: str = "", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        try:
            return self._answer(path, body, headers or {})
        except (ConnectionError, http.client.BadStatusLine):  # it was idle for too long
            self._connection.close()
            return self._answer(path, body, headers or {})

    def _answer(self, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def call(self, operation: str, **arguments: object) -> dict[str, Any]:
        headers = {
            "Authorization": SIGNATURE.format(region=settings.AWS_REGION),
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        }
        status, content = self.post("/", json.dumps(arguments), headers)
        assert status == 200, content
        return json.loads(content)  # type: ignore[no-any-return]


@functools.cache
def _wire(url: str) -> Wire:
    return Wire(url)


def wire() -> Wire:
    return _wire(settings.DYNAMODB_ENDPOINT_URL)


def brought(name: str) -> bool:
    """Whether the engine now holds what was kept under this name and nothing else; not so where nothing was kept."""
    return wire().post(f"{MEMORY}bring/{name}")[0] == 200


def keep(name: str) -> None:
    wire().post(f"{MEMORY}keep/{name}")


def is_empty(queue: str) -> bool:
    """Whether the engine knows that a queue of this full name holds nothing, not even what is to be seen later."""
    try:
        return wire().post(f"{MEMORY}empty/{queue}")[0] == 200
    except OSError:  # the tables are elsewhere, and away
        return False


def prepared(name: str, make: Callable[[], Made]) -> Made:
    """What `make` makes: made once by the portal's own code, then brought back under this name."""
    place = (settings.DYNAMODB_ENDPOINT_URL, name)
    if place not in _made or not brought(name):
        _made[place] = make()
        keep(name)
    return copy.deepcopy(_made[place])  # type: ignore[no-any-return]


def continued(label: str, make: Callable[[], Made], *, always: bool = False) -> Made:
    """What `make` makes of what was just brought back: made once by the portal's own code, then brought back as well.

    Where anything has been written since, or a test may have changed how things are made, it is made; the latter not
    with `always`.
    """
    if not (may_go_on or always):
        return make()
    status, name = wire().post(f"{MEMORY}go_on/{label}")
    place = (settings.DYNAMODB_ENDPOINT_URL, name.decode())
    if status != 200:
        made = make()
        if name:
            _made[place] = made
            keep(name.decode())
        return made
    return copy.deepcopy(_made[place])  # type: ignore[no-any-return]
