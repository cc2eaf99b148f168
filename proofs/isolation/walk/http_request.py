"""Make one request over HTTP, with what is another tenant's wherever its address has a place for it.

Addresses come from the URL configuration and methods of the API from its schema: one that is added is attacked without
a change here.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode

from api.documents import openapi
from portal.web import checks
from portal.web.access import is_guest_path
from proofs.isolation.targets import Target
from tenants.api_keys.scopes import Scope

# An id of each kind that nobody has, by the beginning of the names of parameters.
IDS_OF_NOBODY: Final = {
    "endpoint": "ep_0123456789abcdef", "requester": f"rq_{'0' * 32}", "letter": "d" * 48, "file": "0" * 32,
    "api_key": "Ab0Cd1Ef", "delivery": f"evt_{'0' * 32}_0.2026-01-31T12:00:00.000000Z",
}  # fmt: skip


@dataclass(frozen=True)
class Route:
    """An address with its parameters as Django writes them: `tickets/<ticket_number:number>/`.

    Of the API it has a method, the scope that it asks for, and its operation in the schema.
    """

    path: str
    method: str = ""
    scope: Scope = Scope.TICKETS_READ
    operation: Mapping[str, Any] = field(default_factory=dict)

    def filled(self, value: Callable[[str, str], str]) -> str:
        named = re.sub(r"\(\?P<(\w+)>[^()]*\)", r"<re:\1>", self.path)
        filled = re.sub(r"<(?:(\w+):)?(\w+)>", lambda m: value(m[1] or "str", m[2]), named)
        return "/" + re.sub(r"[\^$]|\\Z", "", filled)

    @property
    def parameters(self) -> list[str]:
        return [p["name"] for p in self.operation.get("parameters", ()) if p["in"] == "query"]


def routes() -> Iterator[Route]:
    return (Route(path[1:]) for path, _, _ in checks.routes())


def api_routes() -> Iterator[Route]:
    """Return every method of every address that takes a key."""
    for path, _, view in checks.routes():
        for method, route in getattr(view, "api_routes", {}).items():
            written = openapi.document()["paths"][re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)]
            yield Route(path[1:], method, route.scope, written[method.lower()])


@dataclass(frozen=True)
class HttpRequest:
    """A request by somebody of the tenant `own`. `homes` are the tenants whose data it may be answered with.

    `refused` is the code that the API has to refuse it with; "" where it may be answered, with one's own or nothing.
    """

    own: Target
    victim: Target
    route: Route
    method: str
    path: str
    homes: frozenset[str]
    cookie: str = ""
    key: str = ""
    query: dict[str, Any] = field(default_factory=dict)
    form: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    tricks: tuple[str, ...] = ()
    refused: str = ""

    def changed(self, **changes: Any) -> HttpRequest:
        """Return it with other values; what has several is added to what is there."""
        added = {name: getattr(self, name) | to for name, to in changes.items() if name in ("query", "form", "headers")}
        return replace(self, **(changes | added))

    @property
    def is_of_guest(self) -> bool:
        """Tell whether it asks for a page of people outside a desk, who see what is public and nothing of the rest."""
        return is_guest_path(self.path)

    @property
    def is_by_link(self) -> bool:
        """Tell whether it comes by the signed link of a requester, who sees the one ticket that it names."""
        return self.path.startswith("/r/")

    @property
    def described(self) -> dict[str, Any]:
        shown = ("method", "path", "query", "body", "headers", "cookie", "key")
        return {name: getattr(self, name) for name in shown} | {
            "form": self.form if self.method == "POST" else {},
            "acting": self.own.id,
            "target": self.victim.id,
            "tricks": list(self.tricks),
        }

    @property
    def address(self) -> str:
        return self.path + (f"?{urlencode(self.query, doseq=True)}" if self.query else "")

    @property
    def content(self) -> tuple[str, str]:
        if self.route.method:
            return ("", "") if self.body is None else (json.dumps(self.body), "application/json")
        form = self.form if self.method == "POST" else {}
        return urlencode(form, doseq=True), "application/x-www-form-urlencoded"


def number(rng: random.Random, own: Target, victim: Target) -> int:
    """Return a ticket of the victim's, beyond the visitor's own numbers where there is one."""
    real = [int(s.number) for s in victim.summaries]
    beyond = [n for n in real if n > own.last_number]
    return rng.choice(beyond or real or [own.last_number + 1])


def person(rng: random.Random, target: Target) -> str:
    return rng.choice(target.members).id if target.members else "0" * 32


def argument(rng: random.Random, own: Target, victim: Target, converter: str, name: str) -> str:
    """Return what an address has in a place of this name, such that it asks for what is the victim's."""
    if converter == "int" and victim.articles:
        return str(rng.choice([*victim.articles]))
    if "number" in converter or converter == "int" or name in ("number", "id", "pk"):
        return str(number(rng, own, victim))
    if name == "desk":  # the visitor's own, without which no view is reached
        return own.tenant.slug
    if name == "slug":  # of a guest's page, which is anybody's
        return rng.choice([own.tenant.slug, victim.tenant.slug])
    if name == "token":
        return "abcdef-0123456789abcdef0123456789abcdef"
    for kind, of_nobody in IDS_OF_NOBODY.items():
        if name.startswith(kind):
            return rng.choice(victim.ids(kind) or [of_nobody])
    somebody = person(rng, victim)
    encoded = base64.urlsafe_b64encode(somebody.encode()).decode().rstrip("=")
    return rng.choice([encoded, somebody, victim.id, victim.tenant.slug])
