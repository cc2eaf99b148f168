"""Have keys in several states for every tenant, without storing one: there is nothing to remove, and no killed run
leaves a key behind.

The portal asks the engine for a key as ever. The answer is completed here with the key that the run has in memory, on
its way from the engine's client to the portal.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from portal import clock
from portal.dynamo import client
from proofs.isolation.targets import Target
from tenants.api_keys import key_text
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import API_KEYS, ApiKeyItem

_ELSEWHERE: Final = "192.0.2.1"
_KEPT: Final = "keys_of_the_proof"  # in what botocore hands from one hook of a request to the next


@dataclass
class LentKeys:
    """The keys of the tenants, by tenant and state; see `STATES`."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)  # as stored, by tenant and prefix

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
    """Make keys of every state for every tenant."""
    keys, everything, now = LentKeys(), frozenset(Scope), clock.now()
    for target in targets:
        _lend(keys, target, "good", everything)
        _lend(keys, target, "revoked", everything, revoked_at=clock.stamp(now))
        _lend(keys, target, "expired", everything, expires_at=clock.stamp(now - timedelta(seconds=1)))
        _lend(keys, target, "elsewhere", everything, addresses=[_ELSEWHERE])
        for scope in Scope:
            _lend(keys, target, f"but {scope.value}", everything - {scope})
    return keys


def _lend(keys: LentKeys, target: Target, state: str, scopes: Collection[Scope], **values: Any) -> None:
    prefix = key_text.new_prefix(uuid.uuid4().hex)
    text = key_text.new(target.id, prefix)
    item = ApiKeyItem(
        target.id,
        prefix,
        key_id=uuid.uuid4().hex,
        digest=key_text.digest(text),
        name="Isolation proof",
        scopes=sorted(scope.value for scope in scopes),
        created_at=clock.stamp(),
        last_used_at=clock.stamp(),
        **values,
    )
    keys.texts[target.id, state] = text
    keys.items[target.id, prefix] = item.serialize()
