"""Name the table that another tenant has to itself, in a request that is honest but for that.

The keys are the acting tenant's, so that what stops it can only be a look at the name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from django.conf import settings

from portal.schema import placed_names
from proofs.isolation.attempts import honest, item_requests
from proofs.isolation.attempts.attempt import AttackAttempt, Draw, place_of
from tickets.ticket.stored import TICKETS

_TRIES: Final = 8  # to draw an honest request that names a table which can be a tenant's own


def attempt(draw: Draw) -> AttackAttempt:
    for _ in range(_TRIES):
        made = honest.attempt(draw)
        names = {} if made.call else {_declared(table): table for table in placed_names.placed_tables()}
        if any(body.get("TableName") in names or names.keys() & body.keys() for body in _bodies(made.params)):
            break
    else:
        key = {"pk": {"S": draw.own(TICKETS)}, "sk": {"S": draw.sort(TICKETS) or "proof"}}
        params = item_requests.request(draw, "GetItem", TICKETS, [key])
        made = AttackAttempt("", "GetItem", place_of(TICKETS), draw, params)
        names = {_declared(TICKETS): TICKETS}
    prefix = draw.rng.choice([settings.DYNAMODB_TABLE_PREFIX, *(s["prefix"] for s in settings.SILOS.values())])
    params = copy.deepcopy(made.params)
    for body in _bodies(params):
        for name, table in names.items():
            foreign = placed_names.physical(prefix, draw.other.id, table)
            if body.get("TableName") == name:
                body["TableName"] = foreign
            elif name in body:
                body[foreign] = body.pop(name)
    return replace(made, kind="own keys, a table of another's own", params=params, honest=False)


def _declared(table: Any) -> str:
    return str(table.full_name)


def _bodies(params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return whatever in a request may name a table."""
    yield params
    if "RequestItems" in params:
        yield params["RequestItems"]
    for member in params.get("TransactItems", ()):
        yield from member.values()
