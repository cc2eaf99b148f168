"""Call an address of the API as somebody who must not get what is there: by the key, or by all else in a request.

Keys in several states are lent to every tenant, without storing one: the portal asks the engine for a key as ever, and
the answer is completed here, on its way from the engine's client to the portal. No killed run leaves a key behind.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.conf import settings

from api.documents import openapi
from delivery.webhooks import endpoints
from portal import clock
from portal.dynamo import client
from proofs.isolation.targets import Target
from proofs.isolation.walk.http_request import IDS_OF_NOBODY, HttpRequest, Route, argument, number, person
from proofs.isolation.walk.visitors import Visitors
from tenants.api_keys import key_text
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import API_KEYS, ApiKeyItem
from tenants.tenancy.request import write_cookie

_KEPT: Final = "keys_of_the_proof"  # in what botocore hands from one hook of a request to the next
_WITH_BODY: Final = ("POST", "PATCH", "PUT", "DELETE")
_DEEPEST: Final = 6  # objects within objects of a body


@dataclass
class LentKeys:
    """The keys of the tenants: texts by tenant and state, items as stored by tenant and prefix."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def text(self, target: Target, state: str) -> str:
        """Return the text of a tenant's key in a state: "good", "revoked", "expired", "elsewhere", or "but SCOPE"."""
        return self.texts[target.id, state]

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Have the engine's answers to the portal hold these keys as well."""
        events = client.connection("platform").client.meta.events
        events.register_first("before-call.dynamodb.BatchGetItem", self._asked)
        events.register_last("after-call.dynamodb.BatchGetItem", self._answered)
        try:
            yield
        finally:
            events.unregister("before-call.dynamodb.BatchGetItem", self._asked)
            events.unregister("after-call.dynamodb.BatchGetItem", self._answered)

    def _asked(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        wanted = json.loads(bytes(params["body"])).get("RequestItems", {}).get(API_KEYS.full_name, {"Keys": []})
        places = [(key[API_KEYS.hash]["S"], key[str(API_KEYS.range)]["S"]) for key in wanted["Keys"]]
        context[_KEPT] = [self.items[place] for place in places if place in self.items]

    def _answered(self, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if found := context.get(_KEPT):
            parsed["Responses"].setdefault(API_KEYS.full_name, []).extend(found)


def lend(targets: Sequence[Target]) -> LentKeys:
    keys, now = LentKeys(), clock.now()
    states: dict[str, dict[str, Any]] = {
        "good": {},
        "revoked": {"revoked_at": clock.stamp(now)},
        "expired": {"expires_at": clock.stamp(now - timedelta(seconds=1))},
        "elsewhere": {"addresses": ["192.0.2.1"]},
        **{f"but {scope.value}": {"scopes": sorted(one.value for one in Scope if one != scope)} for scope in Scope},
    }
    for target in targets:
        for state, values in states.items():
            prefix = key_text.new_prefix(uuid.uuid4().hex)
            text = keys.texts[target.id, state] = key_text.new(target.id, prefix)
            known = {"key_id": uuid.uuid4().hex, "digest": key_text.digest(text), "name": "Isolation proof"}
            known |= dict.fromkeys(("created_at", "last_used_at"), clock.stamp())
            every = {"scopes": sorted(scope.value for scope in Scope)}
            keys.items[target.id, prefix] = ApiKeyItem(target.id, prefix, **(known | every | values)).serialize()
    return keys


@dataclass(frozen=True)
class TrickPlay:
    rng: random.Random
    keys: LentKeys
    visitors: Visitors


def call(play: TrickPlay, trick: str, own: Target, victim: Target, route: Route) -> HttpRequest:
    """Return a call with the caller's own good key for what is the victim's, changed by the trick of this name."""
    path = route.filled(lambda converter, name: argument(play.rng, own, victim, converter, name))
    content = route.operation.get("requestBody", {}).get("content", {}).get("application/json")
    body = _body(play.rng, own, victim, content["schema"]) if content and route.method in _WITH_BODY else None
    made = HttpRequest(
        own, victim, route, route.method, path, homes=frozenset({own.id}), key=play.keys.text(own, "good"),
        body=body, tricks=(trick,),
    )  # fmt: skip
    return made.changed(**API_TRICKS[trick](play, made))


def own_list(keys: LentKeys, own: Target, listing: Route) -> HttpRequest:
    path, key = listing.filled(lambda converter, name: ""), keys.text(own, "good")
    return HttpRequest(own, own, listing, "GET", path, frozenset({own.id}), key=key, tricks=("none",))


def _body(
    rng: random.Random, own: Target, victim: Target, schema: Mapping[str, Any], name: str = "", depth: int = 0
) -> Any:
    """Return a value that fits a schema; where its name says what it is, one of the victim's."""
    if "$ref" in schema:
        schema = openapi.document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        wanted = [choice for choice in choices if choice.get("type") != "null"]
        return _body(rng, own, victim, rng.choice(wanted), name, depth)
    if "const" in schema or "enum" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    kind = schema.get("type", "object")
    if kind == "object":
        fields = schema.get("properties", {}) if depth < _DEEPEST else {}
        return {key: _body(rng, own, victim, value, key, depth + 1) for key, value in fields.items()}
    if kind == "array":
        return [_body(rng, own, victim, schema.get("items", {}), name, depth + 1)]
    if kind in ("integer", "number"):
        return number(rng, own, victim) if "number" in name or "ticket" in name else schema.get("minimum", 1)
    if kind == "boolean":
        return False
    if name in ("url", "address"):
        return "https://proof.invalid/hooks"
    if name == "event_types":
        return rng.choice(endpoints.offered()).name
    if name == "files":
        return rng.choice(victim.ids("file") or [IDS_OF_NOBODY["file"]])
    of_person = name in ("id", "resolver", "user", "member", "requester") or name.endswith("_id")
    return person(rng, victim) if of_person else "Proof"


# --- keys that must not let in ---

ApiTrick = Callable[[TrickPlay, HttpRequest], dict[str, Any]]


def _key(code: str, make: Callable[[TrickPlay, HttpRequest], str]) -> ApiTrick:
    """Return a call with another key, which has to be refused with this code and may be answered with nobody's data."""
    return lambda play, made: {"key": make(play, made), "homes": frozenset(), "refused": code}


def _state(state: str, code: str) -> ApiTrick:
    return _key(code, lambda play, made: play.keys.text(made.victim, state))


def _resealed(text: str) -> str:
    """Return a changed key with the checksum that it then has to have: anybody can compute that."""
    body = text[: -len(key_text.checksum(""))]
    return body + key_text.checksum(body)


def _mistyped(play: TrickPlay, made: HttpRequest) -> str:
    text = play.keys.text(made.victim, "good")
    place = play.rng.randrange(len(text) - 12, len(text))
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


def _with_victims_prefix(play: TrickPlay, made: HttpRequest) -> str:
    found = key_text.read(play.keys.text(made.victim, "good"))
    return key_text.new(made.victim.id, found.prefix if found else "")


def _of_two_keys(play: TrickPlay, made: HttpRequest) -> str:
    """Return the victim's tenant and prefix, with the random part of one's own key."""
    own, theirs = (play.keys.text(target, "good") for target in (made.own, made.victim))
    start = len(theirs) - len(theirs.rpartition("_")[2]) + key_text.PREFIX_LENGTH
    return _resealed(theirs[:start] + own[start:])


def _of_elsewhere(play: TrickPlay, made: HttpRequest) -> str:
    text = play.keys.text(made.victim, "good")
    return _resealed(text.replace(f"sk_{settings.API_KEY_ENVIRONMENT}_", "sk_elsewhere_", 1))


# --- a good key, and the victim's in all other places ---


def _with_cookie(play: TrickPlay, made: HttpRequest) -> dict[str, Any]:
    theirs = play.visitors.members.get(made.victim.id)
    return {"cookie": write_cookie(theirs.ids)} if theirs else {}


def _in_headers(play: TrickPlay, made: HttpRequest) -> dict[str, Any]:
    names = ("X_TENANT_ID", "X_TENANT", "TENANT", "X_ORG_ID", "X_API_KEY", "X_FORWARDED_USER", "IDEMPOTENCY_KEY")
    wanted = play.rng.choice([made.victim.id, made.victim.tenant.slug, play.keys.text(made.victim, "revoked")])
    return {"headers": {f"HTTP_{name}": wanted for name in names}}


def _in_query(play: TrickPlay, made: HttpRequest) -> dict[str, Any]:
    people = ("resolver", "actor", "user", "member")
    known = {name: person(play.rng, made.victim) for name in made.route.parameters if name in people}
    return {"query": known | play.rng.choice([{}, {"tenant": made.victim.id}, {"tenant_id": made.victim.id}])}


def _cursor(play: TrickPlay, made: HttpRequest) -> dict[str, Any]:
    if "after" not in made.route.parameters or not made.victim.cursors:
        return {}
    chosen = play.rng.choice(made.victim.cursors)
    with_status = {"status": chosen.status} if chosen.status and "status" in made.route.parameters else {}
    return {"query": {"after": chosen.text} | with_status}


def _in_body(play: TrickPlay, made: HttpRequest) -> dict[str, Any]:
    named = {"tenant_id": made.victim.id, "tenant": made.victim.tenant.slug, "pk": made.victim.id}
    return {"body": made.body | named} if isinstance(made.body, dict) else {}


API_TRICKS: Final[dict[str, ApiTrick]] = {
    "no key": _key("key_missing", lambda play, made: ""),
    "a session and no key": lambda play, made: (
        _with_cookie(play, made) | {"key": "", "homes": frozenset(), "refused": "key_missing"}
    ),
    "a mistyped key": _key("key_malformed", _mistyped),
    "own key in another tenant's name": _key(
        "key_unknown",
        lambda play, made: _resealed(play.keys.text(made.own, "good").replace(made.own.id, made.victim.id)),
    ),
    "another tenant's prefix, guessed": _key("key_unknown", _with_victims_prefix),
    "parts of two keys": _key("key_unknown", _of_two_keys),
    "a key of another installation": _key("key_unknown", _of_elsewhere),
    "a revoked key": _state("revoked", "key_revoked"),
    "an expired key": _state("expired", "key_expired"),
    "a key from elsewhere": _state("elsewhere", "address_not_allowed"),
    "a key without the scope": _key(
        "scope_missing", lambda play, made: play.keys.text(made.own, f"but {made.route.scope.value}")
    ),
    "foreign ids": lambda play, made: {},
    "foreign ids beside a foreign session": _with_cookie,
    "tenant in headers": _in_headers,
    "foreign people and tenant in the query": _in_query,
    "foreign cursor": _cursor,
    "tenant in the body": _in_body,
}
