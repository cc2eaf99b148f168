"""Send what a hostile visitor would send: another tenant's numbers, ids and names wherever the portal might listen."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from django.conf import settings
from django.core import signing
from django.urls import reverse

from portal.web.desk_prefix import addresses_of
from proofs.isolation.targets import Target
from proofs.isolation.visits.routes import Route
from proofs.isolation.visits.visit import Visit, aimed, person
from proofs.isolation.visits.visitors import Visitor, Visitors
from tenants.sign_in import impersonation_session
from tenants.sign_in.impersonation_session import ActingIds
from tenants.tenancy import context, request_identity
from tenants.tenancy.request_identity import Ids, Pin
from tickets.ticket import stored
from tickets.ticket.fields import Status

# Names under which somebody might have let a request say its tenant, by what they would hold.
_IDS: Final = ("tenant_id", "tenant", "TenantId", "t", "account", "owner", "tenant[]")
_SLUGS: Final = ("slug", "org", "desk", "tenant_slug")
_ID_HEADERS: Final = ("HTTP_X_TENANT_ID", "HTTP_X_TENANT", "HTTP_TENANT", "HTTP_X_ORG_ID", "HTTP_AUTHORIZATION")
_PERSON_HEADERS: Final = ("HTTP_X_FORWARDED_USER", "HTTP_X_USER_ID", "HTTP_REMOTE_USER", "HTTP_X_AMZN_OIDC_IDENTITY")


def visit(
    rng: random.Random,
    visitor: Visitor,
    victim: Target,
    visitors: Visitors,
    route: Route,
    method: str,
    names: Sequence[str],
) -> Visit:
    """Return this address, filled with what is the victim's, with the tricks of these names."""
    made = replace(aimed(rng, visitor, victim, visitors, route, method), tricks=tuple(names))
    for name in names:
        made = TRICKS[name](rng, made, visitors)
    return made


def some(rng: random.Random) -> list[str]:
    """Return up to three tricks; most visits stay signed in, since others see little."""
    staying = [name for name in TRICKS if name not in _OF_COOKIES]
    return rng.sample(staying if rng.random() < 0.7 else [*TRICKS], rng.randint(0, 3))


# --- tricks: each returns the visit, changed ---

Trick = Callable[[random.Random, Visit, Visitors], Visit]


def _names(rng: random.Random, v: Visit) -> dict[str, str]:
    named = dict.fromkeys(_IDS, v.victim.id) | dict.fromkeys(_SLUGS, v.victim.tenant.slug)
    return named | {"pk": stored.counter(v.victim.id), "user": person(rng, v.victim)}


def _named_in_query(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    return replace(v, query=v.query | _names(rng, v))


def _named_in_form(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    return replace(v, form=v.form | _names(rng, v))


def _desk(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    """Return the victim's desk in the address, where the visitor's own stood."""
    return replace(v, path=_at_victims_desk(v))


def _at_victims_desk(v: Visit) -> str:
    return v.path.replace(f"/{v.visitor.target.tenant.slug}/", f"/{v.victim.tenant.slug}/", 1)


def _headers(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    named = dict.fromkeys(_ID_HEADERS, rng.choice([v.victim.id, v.victim.tenant.slug]))
    return replace(v, headers=v.headers | named | dict.fromkeys(_PERSON_HEADERS, person(rng, v.victim)))


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
        v, query=v.query | {"resolver": person(rng, v.victim), "q": "", "status": rng.choice([*Status]).value}
    )


def _other_secret(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Return another member's cookie, signed with a key that is not ours."""
    theirs = visitors.members.get(v.victim.id, v.visitor)
    value = f"{theirs.session_key}.{theirs.user.id}.{v.victim.tenant.slug}~{v.victim.id}"
    signer = signing.Signer(key="a key that is not ours " * 2, salt="pooldesk.session-cookie")
    return replace(v, cookie=signer.sign(value), homes=frozenset())


def _spliced(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Return parts of two cookies, under a signature of ours or of one of the two, not all of them the victim's."""
    theirs, mine = visitors.members.get(v.victim.id, v.visitor).ids, v.visitor.ids
    swapped = (
        Pin(v.visitor.target.tenant.slug, theirs.tenant_id),
        Pin(v.victim.tenant.slug, mine.tenant_id),
    )
    parts = rng.choice(
        [
            Ids(mine.session_key, mine.user_id, theirs.pins),
            Ids(mine.session_key, mine.user_id, (*mine.pins, *theirs.pins)),
            Ids(mine.session_key, mine.user_id, swapped),
            Ids(mine.session_key, theirs.user_id, theirs.pins),
            Ids(theirs.session_key, mine.user_id, theirs.pins),
            Ids(theirs.session_key, mine.user_id, mine.pins),
            Ids(mine.session_key, theirs.user_id, mine.pins),
        ]
    )
    signed = request_identity.write_cookie(parts)
    if rng.random() < 0.5:
        signed = signed.rpartition(":")[0] + ":" + request_identity.write_cookie(theirs).rpartition(":")[2]
    path = v.path if parts.pins == mine.pins or rng.random() < 0.2 else _at_victims_desk(v)
    return replace(v, cookie=signed, homes=v.visitor.homes, path=path)


def _taken_out(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Return somebody who was the victim's owner until a moment ago, with the session of that time."""
    stale = next((s for s in visitors.stale if s.target.id == v.victim.id), None)
    if stale is None:
        return v
    form = v.form | {"_page": context.page_mark_of(stale.user.id, v.victim.id)}
    cookie = request_identity.write_cookie(stale.ids)
    return replace(v, cookie=cookie, homes=frozenset(), form=form, path=_at_victims_desk(v))


def _acted_as(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Return the cookie of an operator who acts as the victim's member, beside one that is no operator's or no
    session's."""
    theirs, mine = visitors.members.get(v.victim.id, v.visitor), v.visitor
    key = rng.choice([theirs.session_key, mine.session_key])
    acting = impersonation_session.write_cookie(ActingIds(key, theirs.user.id, v.victim.id))
    cookies = f"{settings.SESSION_COOKIE_NAME}={v.cookie}; {impersonation_session.COOKIE}={acting}"
    form = v.form | {"_page": context.page_mark_of(theirs.user.id, v.victim.id)}
    return replace(v, headers=v.headers | {"HTTP_COOKIE": cookies}, form=form, path=_at_victims_desk(v))


def _mark(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Return a page of the victim's: made for its own member, or for this visitor if that were one."""
    theirs = visitors.members.get(v.victim.id, v.visitor)
    user_id = rng.choice([theirs.user.id, v.visitor.user.id])
    return replace(v, form=v.form | {"_page": context.page_mark_of(user_id, v.victim.id)})


def _tokens(rng: random.Random, v: Visit, visitors: Visitors) -> Visit:
    """Return a kept form that belongs on the victim's pages, and a way back that leads there."""
    mark = context.page_mark_of(visitors.members.get(v.victim.id, v.visitor).user.id, v.victim.id)
    with addresses_of(v.victim.tenant.slug):
        kept = [reverse("tickets:new"), [["title", "Proof"]], mark]
    key = rng.choice([None, "a key that is not ours " * 2])
    token = signing.dumps(kept, key=key, salt="portal.web.stash", compress=True)
    slug = v.victim.tenant.slug
    ways = [f"/{slug}/tickets/?tenant={v.victim.id}", f"//{slug}/", "https://proof.invalid/", "/\\proof.invalid"]
    to = rng.choice(ways)
    more = {"resume": token, "next": to}
    return replace(v, form=v.form | more, query=v.query | more)


def _partial(rng: random.Random, v: Visit, _: Visitors) -> Visit:
    url = f"https://testserver/{v.victim.tenant.slug}/tickets/?tenant={v.victim.id}"
    return replace(v, headers=v.headers | {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": url, "HTTP_REFERER": url})


TRICKS: Final[dict[str, Trick]] = {
    "tenant in the address": _named_in_query,
    "tenant in the form": _named_in_form,
    "another desk's address": _desk,
    "tenant in headers": _headers,
    "another host": _host,
    "foreign cursor": _cursor,
    "foreign person": _resolver,
    "cookie of another secret": _other_secret,
    "spliced cookie": _spliced,
    "member no more": _taken_out,
    "member acted as": _acted_as,
    "foreign page mark": _mark,
    "kept form and way back": _tokens,
    "partial request": _partial,
}
# What every address gets at least; apart, because one may be refused before another is looked at.
PASSES: Final[tuple[tuple[str, ...], ...]] = (
    ("tenant in the address", "tenant in the form", "tenant in headers"),
    ("foreign cursor", "foreign person"),
    ("foreign page mark", "kept form and way back"),
)
_OF_COOKIES: Final = {"cookie of another secret", "spliced cookie", "member no more", "member acted as"}
