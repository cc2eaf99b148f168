"""What a hostile visitor sends: another tenant's numbers, ids and names wherever the portal might listen."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from django.core import signing
from django.urls import reverse

from portal.dynamo import keys
from tenants import context
from tickets.fields import Priority, Status
from tickets.proof.targets import Target
from tickets.proof.visitors import Visitor, Visitors

if TYPE_CHECKING:
    from tickets.proof.web import Route

_NOBODY: Final = "nobody@proof.invalid"  # no form may send mail to a real person
_NAMES: Final = ("tenant", "tenant_id", "t", "slug", "org", "account", "desk", "TenantId", "tenant[]", "pk", "owner")
_HEADERS: Final = (
    "HTTP_X_TENANT_ID", "HTTP_X_TENANT", "HTTP_TENANT", "HTTP_X_ORG_ID", "HTTP_X_FORWARDED_USER", "HTTP_X_USER_ID",
    "HTTP_REMOTE_USER", "HTTP_AUTHORIZATION", "HTTP_X_AMZN_OIDC_IDENTITY",
)  # fmt: skip


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
    """The own queue, as anybody asks for it."""
    from tickets.proof.web import Route

    path = reverse("tickets:queue")
    return Visit(visitor, visitor.target, Route(path), "GET", path, visitor.homes, context.write_cookie(visitor.ids))


def visit(
    rng: random.Random, visitor: Visitor, victim: Target, visitors: Visitors, route: Route, method: str, signed_in: bool
) -> Visit:
    """This address, filled with what is the victim's, with up to three tricks; the cookie stays if `signed_in`."""
    path = route.filled(lambda converter, name: _argument(rng, visitor, victim, converter, name))
    cookie = context.write_cookie(visitor.ids)
    made = Visit(visitor, victim, route, method, path, visitor.homes, cookie, form=_form(rng, visitor, victim))
    for name in rng.sample([t for t in TRICKS if not (signed_in and t in _OF_COOKIES)], rng.randint(0, 3)):
        made = TRICKS[name](rng, made, visitors)
        made = replace(made, tricks=(*made.tricks, name))
    return made if made.tricks else replace(made, tricks=("numbers and names only",))


def _number(rng: random.Random, visitor: Visitor, victim: Target) -> int:
    """A ticket of the victim's, beyond the visitor's own numbers where there is one."""
    real = [int(s.number) for s in victim.summaries]
    beyond = [n for n in real if n > visitor.target.last_number]
    return rng.choice(beyond or real or [visitor.target.last_number + 1])


def _argument(rng: random.Random, visitor: Visitor, victim: Target, converter: str, name: str) -> str:
    if "number" in converter or converter == "int" or name in ("number", "id", "pk"):
        return str(_number(rng, visitor, victim))
    person = _person(rng, victim)
    if name == "token":
        return "abcdef-0123456789abcdef0123456789abcdef"
    encoded = base64.urlsafe_b64encode(person.encode()).decode().rstrip("=")
    return rng.choice([encoded, person, victim.id, victim.tenant.slug])


def _person(rng: random.Random, target: Target) -> str:
    return rng.choice(target.members).id if target.members else "0" * 32


def _form(rng: random.Random, visitor: Visitor, victim: Target) -> dict[str, Any]:
    """Every field that a form of the portal has, valid, so that a view would go on to its write."""
    number = _number(rng, visitor, victim)
    stored = next((s for s in victim.summaries if int(s.number) == number), None)
    version = int(stored.version) if stored else 1
    seen = f"{number}.{version}.{stored.status if stored else Status.OPEN.value}.{stored.resolver if stored else ''}"
    return {
        "_page": context.page_mark(visitor.user.id, visitor.target.id),
        "title": "Proof",
        "description": "Proof",
        "body": "Proof",
        "priority": rng.choice([*Priority]).value,
        "status": rng.choice([*Status]).value,
        "to": rng.choice([*Status]).value,
        "then": rng.choice([*Status]).value,
        "resolver": rng.choice(["me", "none", _person(rng, victim)]),
        "version": str(version),
        "tickets": [seen, str(number)],
        "number": str(number),
        "request_id": f"{rng.getrandbits(128):032x}",
        "tags": "",
        "email": _NOBODY,
        "role": "owner",
        "name": "Proof",
        "back": rng.choice(["/tickets/", f"//{victim.tenant.slug}.example/", "https://proof.invalid/"]),
    }


# --- tricks: each returns the visit, changed ---

Trick = Callable[[random.Random, Visit, Visitors], Visit]


def _named_in_query(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    named = rng.choice([v.victim.id, v.victim.tenant.slug, keys.counter(v.victim.id)])
    return replace(v, query=v.query | dict.fromkeys(rng.sample(_NAMES, 4), named))


def _named_in_form(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    return replace(v, form=v.form | dict.fromkeys(_NAMES, rng.choice([v.victim.id, v.victim.tenant.slug])))


def _headers(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    named = rng.choice([v.victim.id, v.victim.tenant.slug, _person(rng, v.victim), f"Bearer {v.victim.id}"])
    return replace(v, headers=v.headers | dict.fromkeys(_HEADERS, named))


def _host(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    host = rng.choice([f"{v.victim.tenant.slug}.testserver", f"testserver@{v.victim.tenant.slug}", v.victim.id])
    name = rng.choice(
        ["HTTP_HOST", "HTTP_X_FORWARDED_HOST", "HTTP_FORWARDED", "HTTP_X_ORIGINAL_URL", "HTTP_X_REWRITE_URL"]
    )
    return replace(v, headers=v.headers | {name: host})


def _cursor(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    theirs = [c for c in v.victim.cursors if c.status] or v.victim.cursors
    if not theirs:
        return v
    chosen = rng.choice(theirs)
    query = {"after": chosen.text, "before": chosen.text, "status": chosen.status or Status.OPEN.value}
    return replace(v, query=v.query | query | ({"resolver": chosen.resolver} if chosen.resolver else {}))


def _resolver(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    return replace(
        v, query=v.query | {"resolver": _person(rng, v.victim), "q": "", "status": rng.choice([*Status]).value}
    )


def _other_secret(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Another member's cookie, signed with a key that is not ours."""
    theirs = visitors.members.get(v.victim.id, v.visitor)
    value = f"{theirs.session_key}.{theirs.user.id}.{v.victim.id}"
    signer = signing.Signer(key="a key that is not ours " * 2, salt="pooldesk.session-cookie")
    return replace(v, cookie=signer.sign(value), homes=frozenset())


def _spliced(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Parts of two cookies, under a signature of ours or of one of the two. Never all parts of the victim's own."""
    theirs, mine = visitors.members.get(v.victim.id, v.visitor).ids, v.visitor.ids
    parts = rng.choice(
        [
            context.Ids(mine.session_key, mine.user_id, theirs.tenant_id),
            context.Ids(mine.session_key, theirs.user_id, theirs.tenant_id),
            context.Ids(theirs.session_key, mine.user_id, theirs.tenant_id),
            context.Ids(theirs.session_key, mine.user_id, mine.tenant_id),
            context.Ids(mine.session_key, theirs.user_id, mine.tenant_id),
        ]
    )
    signed = context.write_cookie(parts)
    if rng.random() < 0.5:
        signed = signed.rpartition(":")[0] + ":" + context.write_cookie(theirs).rpartition(":")[2]
    return replace(v, cookie=signed, homes=v.visitor.homes)


def _taken_out(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Somebody who was the victim's owner until a moment ago, with the session of that time."""
    stale = next((s for s in visitors.stale if s.target.id == v.victim.id), None)
    if stale is None:
        return v
    form = v.form | {"_page": context.page_mark(stale.user.id, v.victim.id)}
    return replace(v, cookie=context.write_cookie(stale.ids), homes=frozenset(), form=form)


def _mark(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """A page of the victim's: made for its own member, or for this visitor if that were one."""
    theirs = visitors.members.get(v.victim.id, v.visitor)
    user_id = rng.choice([theirs.user.id, v.visitor.user.id])
    return replace(v, form=v.form | {"_page": context.page_mark(user_id, v.victim.id)})


def _tokens(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """A kept form that belongs on the victim's pages, and a way back that leads there."""
    mark = context.page_mark(visitors.members.get(v.victim.id, v.visitor).user.id, v.victim.id)
    kept = [reverse("tickets:new"), [["title", "Proof"]], mark]
    key = rng.choice([None, "a key that is not ours " * 2])
    token = signing.dumps(kept, key=key, salt="portal.stash", compress=True)
    to = rng.choice(
        [f"/tickets/?tenant={v.victim.id}", f"//{v.victim.tenant.slug}/", "https://proof.invalid/", "/\\proof.invalid"]
    )
    more = {"resume": token, "next": to}
    return replace(v, form=v.form | more, query=v.query | more)


def _partial(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    url = f"https://testserver/tickets/?tenant={v.victim.id}"
    return replace(v, headers=v.headers | {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": url, "HTTP_REFERER": url})


TRICKS: Final[dict[str, Trick]] = {
    "tenant in the address": _named_in_query,
    "tenant in the form": _named_in_form,
    "tenant in headers": _headers,
    "another host": _host,
    "foreign cursor": _cursor,
    "foreign person": _resolver,
    "cookie of another secret": _other_secret,
    "spliced cookie": _spliced,
    "member no more": _taken_out,
    "foreign page mark": _mark,
    "kept form and way back": _tokens,
    "partial request": _partial,
}
_OF_COOKIES: Final = {"cookie of another secret", "spliced cookie", "member no more"}
