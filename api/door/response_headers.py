"""Tell in the OpenAPI document which headers come with an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_TEXTS: Final = {
    "ETag": "the tag of what is sent, or of what is stored; for If-None-Match and If-Match",
    "Link": "the address of the next page, as rel=next; not on the last one",
    "Location": "the address of what was made",
    "RateLimit": "the units that are left at the process that answers, and the seconds until there are more",
    "RateLimit-Policy": "the units that the desk may take at once after a rest, and in how many seconds they come back",
    "Retry-After": "the seconds after which to send it again",
    "WWW-Authenticate": "how to come with a key, or which scope is missing",
    "X-Request-Id": "finds the request in our log",
}
_REF: Final = "#/components/headers/"
_RATE: Final = ("RateLimit", "RateLimit-Policy")
_BY_STATUS: Final[Mapping[int, tuple[str, ...]]] = {
    401: ("WWW-Authenticate",),
    403: ("WWW-Authenticate",),
    412: ("ETag",),
    429: ("Retry-After", *_RATE),
    503: ("Retry-After",),
}

COMPONENTS: Final = {name: {"description": text, "schema": {"type": "string"}} for name, text in _TEXTS.items()}


def of(status: int, *more: str) -> dict[str, Any]:
    """Return the headers of answers with this status, and those that this route sends with it."""
    usual = _RATE if status < 400 else _BY_STATUS.get(status, ())
    return {name: {"$ref": _REF + name} for name in sorted({"X-Request-Id", *usual, *more})}
