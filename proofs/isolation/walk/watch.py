"""Stand on the clients of the portal while it is visited: see in whose name it asks, and keep it from writing.

A request to the portal may only make requests to DynamoDB in the name of the visitor's own tenants, whatever its page
then shows of them. No write is sent at all: it gets the answer of an engine whose condition did not hold, so that even
a broken view changes nobody's data. It never looks held by a move: for the end of a hold, rules wait.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from portal.dynamo import fencing
from portal.dynamo.store import TRANSACTION_LIMIT
from portal.isolation import guard
from portal.nosql.stored import SESSIONS
from proofs.isolation.transport import Crossed, Judge, hooks_of, logged_by
from tenants.audit_trail.stored import AUDIT
from tenants.sign_in.stored import THROTTLES
from tickets.ticket.stored import COUNTER_TICKET, TICKETS

_NEXT: Final = "999999999"  # the number of a ticket that nobody has
_ANY_ID: Final = "0" * 32
_MOVE: Final = fencing.move_key(_ANY_ID).partition(_ANY_ID)[2]  # how the keys of moves end
_WRITES: Final = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
Answer = tuple[Any, dict[str, Any]]


@dataclass
class Watch(Judge):
    """`homes` are the tenants that the visitor of this moment may see."""

    homes: frozenset[str] = frozenset()
    withheld: int = 0  # writes that were not sent

    @contextmanager
    def watching(self) -> Iterator[None]:
        withheld, silent = hooks_of("tenant", "seed", "platform"), logging.NullHandler()
        for events in withheld:
            events.register_first("before-call.dynamodb", self._withhold)
        try:
            # Thousands of refused hosts and bad requests are what the visits are for.
            with self.attached("tenant", "seed"), logged_by("django", silent), logged_by("pooldesk", silent):
                yield
        finally:
            for events in withheld:
                events.unregister("before-call.dynamodb", self._withhold)

    @contextmanager
    def visit(self, homes: frozenset[str]) -> Iterator[None]:
        """Take what is asked inside for this visitor's. Raises Crossed, also where a view has handled it."""
        self.homes, self.crossing = homes, ""
        yield
        if self.crossing:
            raise Crossed(self.crossing)

    def _judge(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.passed += 1
        tenant = guard.current_tenant()
        if tenant not in self.homes:
            self._cross(f"The portal sent {model.name} in the name of {tenant}, where the visitor is no member.")
        if not self._oracle().allows(model.name, params):
            self._cross(f"The portal sent {model.name} for what is not the visitor's.")

    def _withhold(self, model: Any, params: dict[str, Any], **_: Any) -> Answer | None:
        if model.name not in _WRITES:
            return None
        self.withheld += 1
        body = bytes(params.get("body") or b"").decode()
        if SESSIONS.full_name in body or THROTTLES.full_name in body:
            # A visit that ends its session, or counts an attempt to sign in, goes on as if it were done.
            return SimpleNamespace(status_code=200), {"Attributes": {"attempts": {"N": "1"}}}
        if AUDIT.full_name in body:
            # So does one whose change is audited: refused for ever, it would try again and again.
            return SimpleNamespace(status_code=200), {}
        if model.name == "UpdateItem" and json.loads(body)["Key"].get(TICKETS.range) == {"S": COUNTER_TICKET}:
            # So does one that draws a ticket's number: only a move that holds writes refuses it, and one waits for it.
            return SimpleNamespace(status_code=200), {"Attributes": {**json.loads(body)["Key"], "last": {"N": _NEXT}}}
        many = model.name == "TransactWriteItems"
        code = "TransactionCanceledException" if many else "ConditionalCheckFailedException"
        reasons = [{"Code": "ConditionalCheckFailed"}] * TRANSACTION_LIMIT * many
        for place, member in enumerate(json.loads(body)["TransactItems"] if many else ()):
            if _is_fence(member):  # which is open: writes wait in front of a closed one
                reasons[place] = {"Code": "None"}
        return SimpleNamespace(status_code=400), {
            "Error": {"Code": code, "Message": "withheld"},
            "CancellationReasons": reasons,
            "ResponseMetadata": {},
        }


def _is_fence(member: dict[str, Any]) -> bool:
    """Tell whether a member of a transaction asks whether a move holds writes."""
    checked = (member.get("ConditionCheck") or {}).get("Key") or {}
    return str((checked.get(TICKETS.hash) or {}).get("S", "")).endswith(_MOVE)
