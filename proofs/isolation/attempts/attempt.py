"""Draw one attempt to get past the layers: keys that are almost the tenant's own, values that are none, and tables.

Each key is derived from what the key builders make, so that no delimiter is written down here. Two functions keep an
attempt harmless whatever happens to it: `impossible` and `is_harmless`.
"""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from delivery.outbox import stored as outbox_keys
from delivery.outbox.stored import OUTBOX
from portal.isolation.policies import TAG
from portal.schema import registry
from portal.schema.registry import Index, Table
from proofs.isolation import keys, oracle
from proofs.isolation.targets import Target
from tenants.sign_in.stored import USERS, email_key, user_key
from tenants.tenancy.stored import MEMBERSHIPS, slug_key
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS

Key = dict[str, Any]

_ODD: Final = ("\u200b", "\u202e", "\u0301", "#", "|", "*", "?")  # nothing to be seen, delimiters, wildcards
_FULL_WIDTH: Final = 0xFEE0  # from an ASCII character to one that looks like it
_NOBODYS_SHARE: Final = 0.2  # of the wanted rows of the outbox: mail of no tenant, such as a password reset
_LIMIT: Final = 2048  # bytes of a partition key
SCRATCH_SORT: Final = "proof"


@dataclass(frozen=True)
class Draw:
    """One request in the making: `me` is who acts, `other` is whose things are wanted."""

    rng: random.Random
    me: Target
    other: Target

    def own(self, table: Table, index: Index | None = None) -> str:
        return self.rng.choice(self.me.partitions(table, index))

    def foreign(self, table: Table, index: Index | None = None) -> str:
        rng, other = self.rng, self.other
        if table == OUTBOX and index is None and rng.random() < _NOBODYS_SHARE:
            return outbox_keys.outbox_row(outbox_keys.NO_TENANT, f"{rng.getrandbits(128):032x}")
        if table in (USERS, MEMBERSHIPS) and index is None and other.members:
            person = rng.choice(other.members)
            of_users = [user_key(person.id), email_key(person.email), slug_key(other.tenant.slug)]
            return rng.choice(of_users) if table == USERS else person.id
        return rng.choice(other.partitions(table, index))

    def sort(self, table: Table) -> str:
        """Return a sort key that the other tenant really has, so that a hole would show something."""
        if table == MEMBERSHIPS:
            return self.other.id
        return str(self.rng.choice([key[str(table.range)]["S"] for key in self.other.keys(table)] or ["x"]))

    def place(self) -> tuple[Table, Index | None]:
        """Return any table or index, each as often as the others, and more often one that holds the tenant's items."""
        places = [(t, i) for t in registry.tables() for i in (None, *t.indexes)]
        own = [p for p in places if p[0] in oracle.ACTIONS]
        return self.rng.choice(places if self.rng.random() < 0.4 else own)


# --- keys that are almost right ---

Fuzzer = Callable[[Draw, str], str]  # from a foreign key of the right form


def _own_id(change: Callable[[Draw, str], str]) -> Fuzzer:
    """Return the own key with a changed id: what a pattern that is almost right takes for the tenant's."""

    def fuzz(draw: Draw, foreign: str) -> str:
        changed = change(draw, draw.me.id)
        return foreign.replace(draw.other.id, changed) if draw.other.id in foreign else changed

    return fuzz


def _edited(draw: Draw, foreign: str) -> str:
    """Return an own key of which a character of the id or before it is left out, doubled, or another that looks so."""
    rng, own = draw.rng, ticket_keys.counter(draw.me.id)
    at = rng.randrange(own.index(draw.me.id) + len(draw.me.id))
    alike = rng.choice([chr(ord(own[at]) + _FULL_WIDTH), rng.choice(_ODD) + own[at]])
    return own[:at] + rng.choice(["", own[at] * 2, alike]) + own[at + 1 :]


def _wild(draw: Draw, foreign: str) -> str:
    mine, theirs, cut = draw.me.id, draw.other.id, draw.rng.randrange(32)
    stand_in = draw.rng.choice(
        ["*", "?", "?" * 32, mine[:cut] + "*", theirs[:cut] + "*", f"${{{TAG}}}", "${*}", "[0-9a-f]*", ".*", "%"]
    )
    return foreign.replace(theirs, stand_in) if theirs in foreign else stand_in


KEYS: Final[dict[str, Fuzzer]] = {
    "foreign key": lambda draw, foreign: foreign,
    "longer id": _own_id(lambda d, mine: d.rng.choice([mine + d.rng.choice("0123456789abcdef"), mine * 2, "0" + mine])),
    "shorter id": _own_id(lambda d, mine: d.rng.choice([mine[:-1], mine[1:], mine[: d.rng.randrange(31)]])),
    "upper case": _own_id(lambda d, mine: mine.upper() if mine.upper() != mine else mine + "A"),
    "two ids": _own_id(lambda d, mine: d.rng.choice([mine + d.other.id, d.other.id + mine, d.other.id])),
    "wildcard": _wild,
    "edited": _edited,
    "NUL and blanks": lambda d, f: d.rng.choice(["\0" + f, f + "\0", d.me.id + "\0" + f, " " + f, f + "\n", "\t"]),
    "empty key": lambda draw, foreign: "",
    "oversized key": lambda draw, foreign: foreign + "x" * _LIMIT,
    "other form": lambda d, f: d.rng.choice([d.other.id, ticket_keys.counter(d.other.id), d.other.tenant.slug]),
}


def no_text(draw: Draw, own: str, foreign: str) -> Any:
    """Return something that stands in a request where a typed text should."""
    return draw.rng.choice(
        [{"N": "1"}, {"B": foreign.encode()}, {"SS": [own, foreign]}, {"L": [{"S": foreign}]},
         {"M": {"S": {"S": foreign}}}, {"NULL": True}, {"BOOL": True}, {"S": own, "N": "1"}, {"S": [foreign]},
         {"S": None}, {"S": 5}, {"s": own}, {}, foreign, [{"S": foreign}], None]
    )  # fmt: skip


# --- attempts, and their harmlessness ---

# No item is there and not there: a write that carries this changes nothing, whomever it reaches.
IMPOSSIBLE: Final = "attribute_not_exists(#k) AND attribute_exists(#k)"
_IMPOSSIBLE: Final = re.compile(r"\(?attribute_not_exists ?\((#\w+)\) AND attribute_exists ?\(\1\)\)?")
_READS: Final = ("GetItem", "Query", "BatchGetItem", "TransactGetItems", "Scan", "ConditionCheckItem")
_ANY_ID: Final = "0" * 32
_SCRATCH_ENDING: Final = keys.proof(_ANY_ID).partition(_ANY_ID)[2]


@dataclass(frozen=True)
class AttackAttempt:
    """A request to DynamoDB, or a `call` of our own code that may lead to some.

    An honest one must be answered; every other one is judged by the oracle. `kind` is the trick, `place` the table
    or index as the report names it.
    """

    kind: str
    operation: str
    place: str
    draw: Draw
    params: dict[str, Any]
    honest: bool = False
    call: Callable[[], object] | None = None

    @property
    def described(self) -> dict[str, Any]:
        """Return it as JSON: enough to see what it is, and with its number and seed to make it again."""
        return {
            "kind": self.kind,
            "operation": self.operation,
            "place": self.place,
            "acting": self.draw.me.id,
            "target": self.draw.other.id,
            "honest": self.honest,
            "parameters": as_json(self.params),
        }


def impossible(table: Table, **params: Any) -> dict[str, Any]:
    return {"ConditionExpression": IMPOSSIBLE, "ExpressionAttributeNames": {"#k": table.hash}, **params}


def is_harmless(operation: str, params: dict[str, Any]) -> bool:
    """Tell whether a request, if the engine got it, would read, fail by its condition, or stay within scratch items."""
    try:
        return _is_harmless(operation, params)
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def _is_harmless(operation: str, params: dict[str, Any]) -> bool:
    if operation in _READS:
        return True
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        return _is_idle(params) or _is_scratch(params)
    if operation == "TransactWriteItems":
        members = [body for member in params["TransactItems"] for body in member.values()]
        return any(_is_idle(body) for body in members) or all(_is_scratch(body) for body in members)
    if operation == "BatchWriteItem":
        members = [body for group in params["RequestItems"].values() for m in group for body in m.values()]
        return all(_is_scratch(body) for body in members)
    return False


def _is_idle(body: dict[str, Any]) -> bool:
    # A table of a tenant's own is called as the one of all, with an id before the last two words.
    name = ".".join(body["TableName"].rsplit(".", 2)[1:])
    table = next((t for t in registry.tables() if t.name == name), None)
    found = _IMPOSSIBLE.fullmatch(body.get("ConditionExpression") or "")
    return found is not None and table is not None and body["ExpressionAttributeNames"].get(found[1]) == table.hash


def _is_scratch(body: dict[str, Any]) -> bool:
    pk = (body.get("Item") or body.get("Key") or {}).get(TICKETS.hash) or {}
    return str(pk.get("S", "")).endswith(_SCRATCH_ENDING)


def as_json(value: Any) -> Any:
    """Return the parameters as JSON can hold them; what is no JSON is named by its kind."""
    if isinstance(value, dict):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
