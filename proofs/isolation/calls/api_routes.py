"""List the routes of the API, from its URL configuration and its schema: one that is added is attacked without a
change here."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import URLPattern, URLResolver, get_resolver

from api.documents import openapi
from delivery.webhooks import webhook_events
from proofs.isolation.targets import Target
from proofs.isolation.visits import visit
from proofs.isolation.visits.routes import Route
from tenants.api_keys.scopes import Scope

_DEEPEST: Final = 6  # objects within objects of a body


@dataclass(frozen=True)
class CallableRoute:
    """A method of an address of the API, with the scope that it asks for and its operation in the schema."""

    path: Route
    method: str
    scope: Scope
    operation: Mapping[str, Any]

    @property
    def parameters(self) -> list[str]:
        """Return the names that its query may have."""
        return [p["name"] for p in self.operation.get("parameters", ()) if p["in"] == "query"]

    def body(self, rng: random.Random, own: Target, victim: Target) -> Any:
        """Return a body that the schema takes, with what is the victim's wherever a name or a number goes; None for
        none."""
        content = self.operation.get("requestBody", {}).get("content", {}).get("application/json")
        return _BodyMaker(rng, own, victim).made(content["schema"], "", 0) if content else None


def api_routes(patterns: Sequence[URLPattern | URLResolver] | None = None, prefix: str = "") -> Iterator[CallableRoute]:
    """Return every method of every address that takes a key."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from api_routes(pattern.url_patterns, path)
        else:
            for method, route in getattr(pattern.callback, "api_routes", {}).items():
                written = openapi.document()["paths"]["/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)]
                yield CallableRoute(Route(path), method, route.scope, written[method.lower()])


@dataclass(frozen=True)
class _BodyMaker:
    """Makes values that fit a schema; where a name says what it is, one of the victim's."""

    rng: random.Random
    own: Target
    victim: Target

    def made(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        if "$ref" in schema:
            schema = openapi.document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            wanted = [choice for choice in choices if choice.get("type") != "null"]
            return self.made(self.rng.choice(wanted), name, depth)
        if "const" in schema or "enum" in schema:
            return self.rng.choice(schema.get("enum") or [schema["const"]])
        kind = schema.get("type", "object")
        if kind == "object":
            fields = schema.get("properties", {}) if depth < _DEEPEST else {}
            return {key: self.made(value, key, depth + 1) for key, value in fields.items()}
        if kind == "array":
            return [self.made(schema.get("items", {}), name, depth + 1)]
        if kind in ("integer", "number"):
            is_ticket = "number" in name or "ticket" in name
            return visit.number(self.rng, self.own, self.victim) if is_ticket else schema.get("minimum", 1)
        return False if kind == "boolean" else self._text(name)

    def _text(self, name: str) -> str:
        if name in ("url", "address"):
            return "https://proof.invalid/hooks"
        if name == "event_types":
            return self.rng.choice(webhook_events.offered()).name
        if name in ("id", "resolver", "user", "member", "requester") or name.endswith("_id"):
            return visit.person(self.rng, self.victim)
        return "Proof"
