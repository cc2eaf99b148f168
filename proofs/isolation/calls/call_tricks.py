"""Call an address of the API as somebody who must not get what is there: by the key, or by all else in a request."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.conf import settings

from proofs.isolation.calls.api_routes import CallableRoute
from proofs.isolation.calls.lent_keys import LentKeys
from proofs.isolation.targets import Target
from proofs.isolation.visits import visit
from proofs.isolation.visits.visitors import Visitors
from tenants.api_keys import key_text
from tenants.tenancy import request_identity

_BODY: Final = "POST PATCH PUT DELETE"


@dataclass(frozen=True)
class ApiCall:
    """A request to the API. `homes` are the tenants whose data it may be answered with.

    `refused` is the code that it has to be refused with; "" where it may be answered, with one's own or with nothing.
    """

    trick: str
    own: Target
    victim: Target
    route: CallableRoute
    path: str
    homes: frozenset[str]
    key: str = ""
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cookie: str = ""
    refused: str = ""

    @property
    def described(self) -> dict[str, Any]:
        return {
            "method": self.route.method,
            "path": self.path,
            "query": self.query,
            "headers": self.headers,
            "body": self.body,
            "key": self.key,
            "cookie": self.cookie,
            "acting": self.own.id,
            "target": self.victim.id,
            "tricks": [self.trick],
        }


@dataclass(frozen=True)
class TrickPlay:
    """Hold what tricks are made with."""

    rng: random.Random
    keys: LentKeys
    visitors: Visitors


def call(play: TrickPlay, trick: str, own: Target, victim: Target, route: CallableRoute) -> ApiCall:
    """Return a call with the caller's own good key for what is the victim's, changed by the trick of this name."""
    path = route.path.filled(lambda converter, name: visit.argument(play.rng, own, victim, converter, name))
    made = ApiCall(
        trick,
        own,
        victim,
        route,
        path,
        homes=frozenset({own.id}),
        key=play.keys.text(own, "good"),
        body=route.body(play.rng, own, victim) if route.method in _BODY else None,
    )
    return TRICKS[trick](play, made)


def plain(keys: LentKeys, own: Target, route: CallableRoute) -> ApiCall:
    """Return the own list of tickets, as any system asks for it."""
    path = route.path.filled(lambda converter, name: "")
    return ApiCall("none", own, own, route, path, frozenset({own.id}), keys.text(own, "good"))


# --- keys that must not let in ---

Trick = Callable[[TrickPlay, ApiCall], ApiCall]


def _key(code: str, make: Callable[[TrickPlay, ApiCall], str]) -> Trick:
    """Return a call with another key, which has to be refused with this code and may be answered with nobody's data."""
    return lambda play, made: replace(made, key=make(play, made), homes=frozenset(), refused=code)


def _state(state: str, code: str) -> Trick:
    return _key(code, lambda play, made: play.keys.text(made.victim, state))


def _resealed(text: str) -> str:
    """Return a changed key with the checksum that it then has to have: anybody can compute that."""
    body = text[: -len(key_text.checksum(""))]
    return body + key_text.checksum(body)


def _mistyped(play: TrickPlay, made: ApiCall) -> str:
    text = play.keys.text(made.victim, "good")
    place = play.rng.randrange(len(text) - 12, len(text))
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


def _in_victims_name(play: TrickPlay, made: ApiCall) -> str:
    own = play.keys.text(made.own, "good")
    return _resealed(own.replace(made.own.id, made.victim.id))


def _with_victims_prefix(play: TrickPlay, made: ApiCall) -> str:
    found = key_text.read(play.keys.text(made.victim, "good"))
    return key_text.new(made.victim.id, found.prefix if found else "")


def _of_two_keys(play: TrickPlay, made: ApiCall) -> str:
    """Return the victim's tenant and prefix, with the random part of one's own key."""
    own, theirs = (play.keys.text(target, "good") for target in (made.own, made.victim))
    start = len(theirs) - len(theirs.rpartition("_")[2]) + key_text.PREFIX_LENGTH
    return _resealed(theirs[:start] + own[start:])


def _of_elsewhere(play: TrickPlay, made: ApiCall) -> str:
    text = play.keys.text(made.victim, "good")
    return _resealed(text.replace(f"sk_{settings.API_KEY_ENVIRONMENT}_", "sk_elsewhere_", 1))


def _wrong_scope(play: TrickPlay, made: ApiCall) -> ApiCall:
    key = play.keys.text(made.own, f"but {made.route.scope.value}")
    return replace(made, key=key, homes=frozenset(), refused="scope_missing")


def _cookie_alone(play: TrickPlay, made: ApiCall) -> ApiCall:
    return replace(_with_cookie(play, made), key="", homes=frozenset(), refused="key_missing")


# --- a good key, and the victim's in all other places ---


def _with_cookie(play: TrickPlay, made: ApiCall) -> ApiCall:
    theirs = play.visitors.members.get(made.victim.id)
    return replace(made, cookie=request_identity.write_cookie(theirs.ids)) if theirs else made


def _in_headers(play: TrickPlay, made: ApiCall) -> ApiCall:
    names = ("X-Tenant-Id", "X-Tenant", "Tenant", "X-Org-Id", "X-Api-Key", "X-Forwarded-User", "Idempotency-Key")
    wanted = play.rng.choice([made.victim.id, made.victim.tenant.slug, play.keys.text(made.victim, "revoked")])
    return replace(made, headers=dict.fromkeys(names, wanted))


def _in_query(play: TrickPlay, made: ApiCall) -> ApiCall:
    known = {name: visit.person(play.rng, made.victim) for name in made.route.parameters if name in _PEOPLE}
    unknown = play.rng.choice([{}, {"tenant": made.victim.id}, {"tenant_id": made.victim.id}])
    return replace(made, query=known | unknown)


_PEOPLE: Final = ("resolver", "actor", "user", "member")


def _cursor(play: TrickPlay, made: ApiCall) -> ApiCall:
    if "after" not in made.route.parameters or not made.victim.cursors:
        return made
    chosen = play.rng.choice(made.victim.cursors)
    query = {"after": chosen.text}
    if chosen.status and "status" in made.route.parameters:
        query["status"] = chosen.status
    return replace(made, query=query)


def _in_body(play: TrickPlay, made: ApiCall) -> ApiCall:
    named = {"tenant_id": made.victim.id, "tenant": made.victim.tenant.slug, "pk": made.victim.id}
    return replace(made, body=made.body | named if isinstance(made.body, dict) else made.body)


TRICKS: Final[dict[str, Trick]] = {
    "no key": _key("key_missing", lambda play, made: ""),
    "a session and no key": _cookie_alone,
    "a mistyped key": _key("key_malformed", _mistyped),
    "own key in another tenant's name": _key("key_unknown", _in_victims_name),
    "another tenant's prefix, guessed": _key("key_unknown", _with_victims_prefix),
    "parts of two keys": _key("key_unknown", _of_two_keys),
    "a key of another installation": _key("key_unknown", _of_elsewhere),
    "a revoked key": _state("revoked", "key_revoked"),
    "an expired key": _state("expired", "key_expired"),
    "a key from elsewhere": _state("elsewhere", "address_not_allowed"),
    "a key without the scope": _wrong_scope,
    "foreign ids": lambda play, made: made,
    "foreign ids beside a foreign session": _with_cookie,
    "tenant in headers": _in_headers,
    "foreign people and tenant in the query": _in_query,
    "foreign cursor": _cursor,
    "tenant in the body": _in_body,
}


def sent(made: ApiCall) -> bytes:
    """Return the body as it is sent."""
    return b"" if made.body is None else json.dumps(made.body).encode()
