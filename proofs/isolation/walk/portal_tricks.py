"""Send what a hostile visitor would send: another tenant's numbers, ids and names wherever the portal might listen."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any, Final
from unittest.mock import patch

from django.conf import settings
from django.core import signing
from django.urls import reverse

from portal.nosql import stored as stored_sessions
from portal.web.desk_prefix import addresses_of
from proofs.isolation.targets import Target
from proofs.isolation.walk.http_request import HttpRequest, Route, argument, number, person
from proofs.isolation.walk.visitors import Visitor, Visitors
from tenants.sign_in import impersonation_session
from tenants.sign_in.impersonation_session import ActingIds
from tenants.tenancy import context
from tenants.tenancy.request import Ids, Pin, write_cookie
from tickets.public_form import challenges
from tickets.public_form.form_settings import FormSettings
from tickets.replies.ticket_links import TicketLink
from tickets.ticket import stored
from tickets.ticket.custom_values import FieldType
from tickets.ticket.fields import Priority, Status

# Names under which somebody might have let a request say its tenant, by what they would hold.
_IDS: Final = ("tenant_id", "tenant", "TenantId", "t", "account", "owner", "tenant[]")
_SLUGS: Final = ("slug", "org", "desk", "tenant_slug")
_ID_HEADERS: Final = ("HTTP_X_TENANT_ID", "HTTP_X_TENANT", "HTTP_TENANT", "HTTP_X_ORG_ID", "HTTP_AUTHORIZATION")
_PERSON_HEADERS: Final = ("HTTP_X_FORWARDED_USER", "HTTP_X_USER_ID", "HTTP_REMOTE_USER", "HTTP_X_AMZN_OIDC_IDENTITY")


def plain(visitor: Visitor) -> HttpRequest:
    with addresses_of(visitor.target.tenant.slug):
        path = reverse("tickets:queue")
    cookie, target = write_cookie(visitor.ids), visitor.target
    return HttpRequest(target, target, Route(path), "GET", path, visitor.homes, cookie)


def guest(target: Target) -> HttpRequest:
    path = reverse("tickets:public_form", args=[target.tenant.slug])
    return HttpRequest(target, target, Route(path), "GET", path, frozenset({target.id}))


@contextmanager
def open_forms() -> Iterator[None]:
    """Let the public form of each desk be open with all its custom fields, without storing anything: a closed one has
    nothing to give away."""
    as_stored, every = FormSettings.of, tuple(f"{kind}_{number}" for kind in FieldType for number in range(1, 100))
    with patch.object(FormSettings, "of", lambda item: replace(as_stored(item), is_on=True, own_fields=every)):
        yield


def visit(
    rng: random.Random,
    visitor: Visitor,
    victim: Target,
    visitors: Visitors,
    route: Route,
    method: str,
    names: Sequence[str],
) -> HttpRequest:
    """Return a visit of this address that asks for what is the victim's, with the tricks of these names."""
    theirs = visitors.members.get(victim.id)
    session = stored_sessions.session(theirs.session_key) if theirs else ""

    def value(converter: str, name: str) -> str:
        if name == "session" and session:
            return session
        if name == "token" and route.path.startswith("r/"):
            return _link(rng, visitor.target, victim, is_to_all=route.path.startswith("r/all/"))
        return argument(rng, visitor.target, victim, converter, name)

    path, cookie = route.filled(value), write_cookie(visitor.ids)
    form = _form(rng, visitor, victim)
    made = HttpRequest(
        visitor.target, victim, route, method, path, visitor.homes, cookie, form=form,
        tricks=tuple(names),
    )  # fmt: skip
    for name in sorted(names, key=lambda name: name == _LAST):
        made = made.changed(**TRICKS[name](rng, made, visitors))
    if made.is_by_link:  # a link of the visitor's own desk, or one that was forged
        made = made.changed(homes=frozenset({visitor.target.id}))
    elif made.is_of_guest:  # no cookie counts there: the desk that the address names answers, and no other
        named = {one.id for one in (visitor.target, victim) if f"/{one.tenant.slug}/" in made.path}
        made = made.changed(homes=frozenset(named))
    return made


def _link(rng: random.Random, own: Target, victim: Target, *, is_to_all: bool) -> str:
    """Return a link of the own desk that is genuine, one that names what is the victim's, or a forged one of the
    victim's desk."""
    asked = [(s.requester, int(s.number)) for s in own.summaries if stored.is_requester(s.requester)]
    theirs = [(s.requester, int(s.number)) for s in victim.summaries if stored.is_requester(s.requester)]
    nobody = [(f"rq_{'0' * 32}", number(rng, own, victim))]
    desk, known = rng.choice([(own, asked), (own, theirs), (victim, theirs)])
    person_id, of_ticket = rng.choice(known or nobody)
    token = TicketLink(desk.id, person_id, 0 if is_to_all else of_ticket, 0, 2**34).token
    if desk is victim:  # which nobody else can sign: the last letter but one is another
        return token[:-2] + ("a" if token[-2] != "a" else "b") + token[-1]
    return token


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
        "email": "nobody@proof.invalid",  # no form may send mail to a real person
        "subject": "Proof",
        "role": "owner",
        "name": "Proof",
        "scopes": ["tickets:read"],
        "grace": "0",
        "back": rng.choice(["/tickets/", f"//{victim.tenant.slug}.example/", "https://proof.invalid/"]),
    }


# --- tricks: each returns what it changes in the visit; see `HttpRequest.changed` ---

Trick = Callable[[random.Random, HttpRequest, Visitors], dict[str, Any]]


def _both(v: HttpRequest, visitors: Visitors) -> tuple[Visitor, Visitor]:
    mine = visitors.members[v.own.id]
    return visitors.members.get(v.victim.id, mine), mine


def _names(rng: random.Random, v: HttpRequest) -> dict[str, str]:
    named = dict.fromkeys(_IDS, v.victim.id) | dict.fromkeys(_SLUGS, v.victim.tenant.slug)
    return named | {"pk": stored.counter(v.victim.id), "user": person(rng, v.victim)}


def _at_victims_desk(v: HttpRequest) -> str:
    return v.path.replace(f"/{v.own.tenant.slug}/", f"/{v.victim.tenant.slug}/", 1)


def _headers(rng: random.Random, v: HttpRequest, _: Visitors) -> dict[str, Any]:
    named = dict.fromkeys(_ID_HEADERS, rng.choice([v.victim.id, v.victim.tenant.slug]))
    return {"headers": named | dict.fromkeys(_PERSON_HEADERS, person(rng, v.victim))}


def _host(rng: random.Random, v: HttpRequest, _: Visitors) -> dict[str, Any]:
    host = rng.choice([f"{v.victim.tenant.slug}.testserver", f"testserver@{v.victim.tenant.slug}", v.victim.id])
    names = ["HTTP_HOST", "HTTP_X_FORWARDED_HOST", "HTTP_FORWARDED", "HTTP_X_ORIGINAL_URL", "HTTP_X_REWRITE_URL"]
    return {"headers": {rng.choice(names): host}}


def _cursor(rng: random.Random, v: HttpRequest, _: Visitors) -> dict[str, Any]:
    theirs = [c for c in v.victim.cursors if c.status] or v.victim.cursors
    if not theirs:
        return {}
    chosen = rng.choice(theirs)
    query = {"after": chosen.text, "before": chosen.text, "status": chosen.status or Status.OPEN.value}
    return {"query": query | ({"resolver": chosen.resolver} if chosen.resolver else {})}


def _other_secret(rng: random.Random, v: HttpRequest, visitors: Visitors) -> dict[str, Any]:
    """Return another member's cookie, signed with a key that is not ours."""
    theirs = _both(v, visitors)[0]
    value = f"{theirs.session_key}.{theirs.user.id}.{v.victim.tenant.slug}~{v.victim.id}"
    signer = signing.Signer(key=_NOT_OURS, salt="pooldesk.session-cookie")
    return {"cookie": signer.sign(value), "homes": frozenset()}


def _spliced(rng: random.Random, v: HttpRequest, visitors: Visitors) -> dict[str, Any]:
    """Return parts of two cookies, under a signature of ours or of one of the two, not all of them the victim's."""
    (theirs, mine), homes = (one.ids for one in _both(v, visitors)), _both(v, visitors)[1].homes
    swapped = Pin(v.own.tenant.slug, theirs.tenant_id), Pin(v.victim.tenant.slug, mine.tenant_id)
    sessions, users = (mine.session_key, theirs.session_key), (mine.user_id, theirs.user_id)
    pins = (mine.pins, theirs.pins, (*mine.pins, *theirs.pins), swapped)
    whole = {Ids(sessions[0], users[0], mine.pins)}
    mixed = [Ids(*parts) for parts in product(sessions, users, pins) if (parts[0], parts[1]) != (sessions[1], users[1])]
    parts = rng.choice([one for one in mixed if one not in whole])
    signed = write_cookie(parts)
    if rng.random() < 0.5:
        signed = signed.rpartition(":")[0] + ":" + write_cookie(theirs).rpartition(":")[2]
    path = v.path if parts.pins == mine.pins or rng.random() < 0.2 else _at_victims_desk(v)
    return {"cookie": signed, "homes": homes, "path": path}


def _taken_out(rng: random.Random, v: HttpRequest, visitors: Visitors) -> dict[str, Any]:
    """Return somebody who was the victim's owner until a moment ago, with the session of that time."""
    stale = next((s for s in visitors.stale if s.target.id == v.victim.id), None)
    if stale is None:
        return {}
    form, cookie = {"_page": context.page_mark_of(stale.user.id, v.victim.id)}, write_cookie(stale.ids)
    return {"cookie": cookie, "homes": frozenset(), "form": form, "path": _at_victims_desk(v)}


def _acted_as(rng: random.Random, v: HttpRequest, visitors: Visitors) -> dict[str, Any]:
    """Return the cookie of an operator who acts as the victim's member, beside one that is no operator's or no
    session's."""
    theirs, mine = _both(v, visitors)
    key = rng.choice([theirs.session_key, mine.session_key])
    acting = impersonation_session.write_cookie(ActingIds(key, theirs.user.id, v.victim.id))
    cookies = f"{settings.SESSION_COOKIE_NAME}={v.cookie}; {impersonation_session.COOKIE}={acting}"
    form = {"_page": context.page_mark_of(theirs.user.id, v.victim.id)}
    return {"headers": {"HTTP_COOKIE": cookies}, "form": form, "path": _at_victims_desk(v)}


def _mark(rng: random.Random, v: HttpRequest, visitors: Visitors) -> dict[str, Any]:
    """Return a page of the victim's: made for its own member, or for this visitor if that were one."""
    user_id = rng.choice([one.user.id for one in _both(v, visitors)])
    return {"form": {"_page": context.page_mark_of(user_id, v.victim.id)}}


def _tokens(rng: random.Random, v: HttpRequest, visitors: Visitors) -> dict[str, Any]:
    """Return a kept form that belongs on the victim's pages, and a way back that leads there."""
    mark, slug = context.page_mark_of(_both(v, visitors)[0].user.id, v.victim.id), v.victim.tenant.slug
    with addresses_of(slug):
        kept = [reverse("tickets:new"), [["title", "Proof"]], mark]
    token = signing.dumps(kept, key=rng.choice([None, _NOT_OURS]), salt="portal.web.stash", compress=True)
    ways = [f"/{slug}/tickets/?tenant={v.victim.id}", f"//{slug}/", "https://proof.invalid/", "/\\proof.invalid"]
    more = {"resume": token, "next": rng.choice(ways)}
    return {"form": more, "query": more}


def _challenge(rng: random.Random, v: HttpRequest, _: Visitors) -> dict[str, Any]:
    """Return a challenge of either desk, solved, or one that was signed with a key that is not ours; and a file of the
    victim's."""
    desk = rng.choice([v.own, v.victim]).tenant
    issued = challenges.issue(desk, bits=0).text
    text = rng.choice([issued, issued[:-1] + "A", signing.Signer(key=_NOT_OURS).sign(issued.rpartition(":")[0])])
    more = {"challenge": text, "proof": "0", "website": "", "files": v.victim.ids("file")[:1]}
    return {"form": more, "query": {"challenge": text}}


def _partial(rng: random.Random, v: HttpRequest, _: Visitors) -> dict[str, Any]:
    url = f"https://testserver/{v.victim.tenant.slug}/tickets/?tenant={v.victim.id}"
    return {"headers": {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": url, "HTTP_REFERER": url}}


_NOT_OURS: Final = "a key that is not ours " * 2
_LAST: Final = "member acted as"  # it sends the session's cookie along, as the other tricks have left it
TRICKS: Final[dict[str, Trick]] = {
    "tenant in the address": lambda rng, v, _: {"query": _names(rng, v)},
    "tenant in the form": lambda rng, v, _: {"form": _names(rng, v)},
    "another desk's address": lambda rng, v, _: {"path": _at_victims_desk(v)},
    "tenant in headers": _headers,
    "another host": _host,
    "foreign cursor": _cursor,
    "foreign person": lambda rng, v, _: {
        "query": {"resolver": person(rng, v.victim), "q": "", "status": rng.choice([*Status]).value}
    },
    "cookie of another secret": _other_secret,
    "spliced cookie": _spliced,
    "member no more": _taken_out,
    _LAST: _acted_as,
    "foreign page mark": _mark,
    "kept form and way back": _tokens,
    "challenge of a form": _challenge,
    "partial request": _partial,
}
# Of which each visit has one: a visitor who is somebody else, or elsewhere, sees nothing of the other tricks.
IN_TURN: Final = (
    "another desk's address", "another host", "cookie of another secret", "spliced cookie", "member no more", _LAST,
    "partial request",
)  # fmt: skip
# What every address gets; apart, because one may be refused before another is looked at.
PASSES: Final[tuple[tuple[str, ...], ...]] = (
    ("tenant in the address", "tenant in the form", "tenant in headers"),
    ("foreign cursor", "foreign person"),
    ("foreign page mark", "kept form and way back", "challenge of a form"),
    IN_TURN,
)
