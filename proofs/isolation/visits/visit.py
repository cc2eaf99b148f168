"""One request to the portal, filled with what is another tenant's wherever the address or a form has a place for it."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from typing import Any, Final

from django.urls import reverse

from portal.nosql import stored
from portal.web.desk_prefix import addresses_of
from proofs.isolation.targets import Target
from proofs.isolation.visits.routes import Route
from proofs.isolation.visits.visitors import Visitor, Visitors
from tenants.tenancy import context, request_identity
from tickets.ticket.fields import Priority, Status

_NOBODY: Final = "nobody@proof.invalid"  # no form may send mail to a real person


@dataclass(frozen=True)
class Visit:
    """One request to the portal. `homes` are the tenants whose data its cookie entitles to."""

    visitor: Visitor
    victim: Target
    route: Route
    method: str
    path: str
    homes: frozenset[str]
    cookie: str = ""
    query: dict[str, Any] = field(default_factory=dict)
    form: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    tricks: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "form": self.form if self.method == "POST" else {},
            "headers": self.headers,
            "cookie": self.cookie,
            "acting": self.visitor.target.id,
            "target": self.victim.id,
            "tricks": list(self.tricks),
        }


def plain(visitor: Visitor) -> Visit:
    """Return the own queue, as anybody asks for it."""
    with addresses_of(visitor.target.tenant.slug):
        path = reverse("tickets:queue")
    cookie = request_identity.write_cookie(visitor.ids)
    return Visit(visitor, visitor.target, Route(path), "GET", path, visitor.homes, cookie)


def aimed(rng: random.Random, visitor: Visitor, victim: Target, visitors: Visitors, route: Route, method: str) -> Visit:
    """Return a visit of this address that asks for what is the victim's, with the visitor's own cookie and page."""
    theirs = visitors.members.get(victim.id)
    session = stored.session(theirs.session_key) if theirs else ""

    def value(converter: str, name: str) -> str:
        if name == "session" and session:
            return session
        return argument(rng, visitor.target, victim, converter, name)

    path = route.filled(value)
    cookie, form = request_identity.write_cookie(visitor.ids), _form(rng, visitor, victim)
    return Visit(visitor, victim, route, method, path, visitor.homes, cookie, form=form)


def number(rng: random.Random, own: Target, victim: Target) -> int:
    """Return a ticket of the victim's, beyond the visitor's own numbers where there is one."""
    real = [int(s.number) for s in victim.summaries]
    beyond = [n for n in real if n > own.last_number]
    return rng.choice(beyond or real or [own.last_number + 1])


def argument(rng: random.Random, own: Target, victim: Target, converter: str, name: str) -> str:
    """Return what an address has in a place of this name, such that it asks for what is the victim's."""
    if "number" in converter or converter == "int" or name in ("number", "id", "pk"):
        return str(number(rng, own, victim))
    somebody = person(rng, victim)
    if name == "desk":  # the visitor's own, without which no view is reached
        return own.tenant.slug
    if name.startswith(("endpoint", "webhook")):
        return rng.choice(victim.endpoints or ["ep_0123456789abcdef"])
    if name == "api_key":
        return rng.choice(victim.api_keys or ["Ab0Cd1Ef"])
    if name.startswith("delivery"):
        name_of_none = f"evt_{'0' * 32}_0.2026-01-31T12:00:00.000000Z"
        return rng.choice(victim.deliveries)["name"] if victim.deliveries else name_of_none
    if name == "token":
        return "abcdef-0123456789abcdef0123456789abcdef"
    encoded = base64.urlsafe_b64encode(somebody.encode()).decode().rstrip("=")
    return rng.choice([encoded, somebody, victim.id, victim.tenant.slug])


def person(rng: random.Random, target: Target) -> str:
    return rng.choice(target.members).id if target.members else "0" * 32


def _form(rng: random.Random, visitor: Visitor, victim: Target) -> dict[str, Any]:
    """Return every field that a form of the portal has, valid, so that a view would go on to its write."""
    wanted = number(rng, visitor.target, victim)
    stored = next((s for s in victim.summaries if int(s.number) == wanted), None)
    version = int(stored.version) if stored else 1
    seen = f"{wanted}.{version}.{stored.status if stored else Status.OPEN.value}.{stored.resolver if stored else ''}"
    return {
        "_page": context.page_mark_of(visitor.user.id, visitor.target.id),
        "title": "Proof",
        "description": "Proof",
        "body": "Proof",
        "priority": rng.choice([*Priority]).value,
        "status": rng.choice([*Status]).value,
        "to": rng.choice([*Status]).value,
        "then": rng.choice([*Status]).value,
        "resolver": rng.choice(["me", "none", person(rng, victim)]),
        "version": str(version),
        "tickets": [seen, str(wanted)],
        "number": str(wanted),
        "request_id": f"{rng.getrandbits(128):032x}",
        "tags": "",
        "email": _NOBODY,
        "role": "owner",
        "name": "Proof",
        "scopes": ["tickets:read"],
        "grace": "0",
        "back": rng.choice(["/tickets/", f"//{victim.tenant.slug}.example/", "https://proof.invalid/"]),
    }
