"""Draw one attempt to get past the layers: keys that are almost the tenant's own, values that are none, and tables.

Each key is derived from what the key builders make, so that no delimiter is written down here. Two functions keep an
attempt harmless whatever happens to it: `impossible` and `is_harmless`.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from delivery.outbox import stored as outbox_keys
from delivery.outbox.stored import OUTBOX
from delivery.webhooks import stored as webhook_keys
from delivery.webhooks.stored import DELIVERIES, ENDPOINTS, SECRETS
from portal.isolation import policies
from portal.isolation.iam import TAG
from portal.schema import registry
from portal.schema.tables import Index, Table
from proofs.isolation import keys
from proofs.isolation.targets import Target
from tenants.api_keys.stored import API_KEYS
from tenants.audit_trail.stored import AUDIT
from tenants.membership.stored import MEMBERS, UNREACHED
from tenants.sign_in.stored import USERS, email_key, user_key
from tenants.tenancy.stored import MEMBERSHIPS, slug_key
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import STATUS_UPDATED, TICKETS

ZERO_WIDTH: Final = "\u200b"
# Characters that look like the ones in an id, or that a careless comparison folds into them.
_LOOK_ALIKES: Final = str.maketrans("abce012", "\u0430\u0432\u0441\u0435\uff10\u0661\uff12")
_NO_ENDPOINT: Final = f"{webhook_keys.ENDPOINT}{'0' * 16}"
_OF_TENANTS: Final = (TICKETS, MEMBERS, UNREACHED, AUDIT, OUTBOX, ENDPOINTS, SECRETS, DELIVERIES, API_KEYS)
_NO_API_KEY: Final = "Ab0Cd1Ef"
_NOBODYS_SHARE: Final = 0.2  # of the wanted rows of the outbox: mail of no tenant, such as a password reset
_LIMIT: Final = 2048  # bytes of a partition key


@dataclass(frozen=True)
class Draw:
    """One request in the making: `me` is who acts, `other` is whose things are wanted."""

    rng: random.Random
    me: Target
    other: Target

    def own(self, table: Table, index: Index | None = None) -> str:
        """Return a partition key of the acting tenant in this table or index."""
        return _key_of(self, self.me, table, index)

    def foreign(self, table: Table, index: Index | None = None) -> str:
        if table == OUTBOX and index is None and self.rng.random() < _NOBODYS_SHARE:
            return outbox_keys.outbox_row(outbox_keys.NO_TENANT, f"{self.rng.getrandbits(128):032x}")
        return _key_of(self, self.other, table, index)

    def table(self) -> Table:
        return self.rng.choice(registry.tables())

    def place(self) -> tuple[Table, Index | None]:
        """Return any table or any index, each as often as the others, and more often those that hold the tenant's
        things."""
        places = [(t, i) for t in registry.tables() for i in (None, *t.indexes)]
        own = [p for p in places if p[0] in _OF_TENANTS]
        return self.rng.choice(places if self.rng.random() < 0.4 else own)

    def sort(self, table: Table) -> str:
        """Return a sort key that the other tenant really has, so that a hole would show something."""
        if table == MEMBERS:
            return self.rng.choice(self.other.members).id if self.other.members else "x"
        if table == MEMBERSHIPS:
            return self.other.id
        if table in (ENDPOINTS, SECRETS):
            return self.rng.choice(self.other.endpoints or [_NO_ENDPOINT])
        if table == API_KEYS:
            return self.rng.choice(self.other.api_keys or [_NO_API_KEY])
        if table == DELIVERIES and self.other.deliveries:
            return self.rng.choice(self.other.deliveries)["sort"]
        return self.rng.choice(self.other.items)["sk"] if self.other.items else ticket_keys.SUMMARY


def _key_of(draw: Draw, target: Target, table: Table, index: Index | None) -> str:
    rng = draw.rng
    if table == OUTBOX:
        row_id = f"{rng.getrandbits(128):032x}"
        return outbox_keys.outbox_row(target.id, row_id) if index is None else outbox_keys.pending_of(row_id)
    if index is not None:
        return rng.choice(target.partitions if table == TICKETS else target.trails(index))
    if table == TICKETS:
        return rng.choice(target.items)["pk"] if target.items else ticket_keys.ticket(target.id, 1)
    if table == DELIVERIES:
        return webhook_keys.log_partition(target.id, rng.choice(target.endpoints or [_NO_ENDPOINT]))
    person = rng.choice(target.members) if target.members else None
    if table == USERS and person:
        return rng.choice([user_key(person.id), email_key(person.email), slug_key(target.tenant.slug)])
    if table == MEMBERSHIPS and person:
        return person.id
    return target.id


Fuzzer = Callable[[Draw, str], str]  # from a foreign key of the right form, or from the own one


def _own_id(change: Callable[[Draw, str], str]) -> Fuzzer:
    """Return the own key with a changed id: what a pattern that is almost right takes for the tenant's."""

    def fuzz(draw: Draw, foreign: str) -> str:
        mine = draw.me.id
        return foreign.replace(draw.other.id, change(draw, mine)) if draw.other.id in foreign else change(draw, mine)

    return fuzz


def _delimiters(foreign: str, other: str) -> tuple[str, str]:
    """Return the characters around the id of a composite key; a plain one has none, and gets those of another."""
    before, _, after = (foreign if other in foreign[1:] else ticket_keys.counter(other)).partition(other)
    return before[-1:], after[:1]


def _moved(draw: Draw, foreign: str) -> str:
    first, second = _delimiters(foreign, draw.other.id)
    own = ticket_keys.counter(draw.me.id)
    section, tail = own.partition(draw.me.id)[0][:-1], own.partition(draw.me.id)[2][1:]
    mine, theirs = draw.me.id, draw.other.id
    return draw.rng.choice(
        [
            section + second + mine + first + tail,
            section + first + first + mine + second + tail,
            section + first + mine + first + tail,
            section + mine + tail,
            section + first + mine,
            section + first + mine + tail,
            section + first + theirs + second + section + first + mine + second + tail,
            section + first + theirs + first + mine + second + tail,
            section + first + second + mine + second + tail,
            first + mine + second,
            section + first + second,
            own.lower(),
        ]
    )


def _shown_as(draw: Draw, foreign: str) -> str:
    first, second = _delimiters(foreign, draw.other.id)
    own, mine = ticket_keys.counter(draw.me.id), draw.me.id
    middle = draw.rng.randrange(1, len(mine))
    return draw.rng.choice(
        [
            own.replace(mine, mine.translate(_LOOK_ALIKES)),
            own.replace(second, "\uff5c"),
            own.replace(first, "\uff03"),
            own.replace(mine, mine[:middle] + ZERO_WIDTH + mine[middle:]),
            own.replace(mine, mine + ZERO_WIDTH),
            ZERO_WIDTH + own,
            "\u202e" + own,
            own.replace("T", "\u0422", 1),
            mine.translate(_LOOK_ALIKES),
            mine + "\u0301",
        ]
    )


def _wild(draw: Draw, foreign: str) -> str:
    mine, theirs = draw.me.id, draw.other.id
    cut = draw.rng.randrange(0, 32)
    variable = f"${{{TAG}}}"
    stand_in = draw.rng.choice(
        ["*", "?", "?" * 32, mine[:cut] + "*", theirs[:cut] + "*", variable, "${*}", "[0-9a-f]*", ".*", "%"]
    )
    return foreign.replace(theirs, stand_in) if theirs in foreign else stand_in


KEYS: Final[dict[str, Fuzzer]] = {
    "foreign key": lambda draw, foreign: foreign,
    "longer id": _own_id(lambda d, mine: d.rng.choice([mine + d.rng.choice("0123456789abcdef"), mine * 2, "0" + mine])),
    "shorter id": _own_id(lambda d, mine: d.rng.choice([mine[:-1], mine[1:], mine[: d.rng.randrange(31)]])),
    "upper case": _own_id(lambda d, mine: mine.upper() if mine.upper() != mine else mine + "A"),
    "wildcard": _wild,
    "delimiters": _moved,
    "look-alike": _shown_as,
    "NUL and blanks": lambda d, f: d.rng.choice(["\0" + f, f + "\0", d.me.id + "\0" + f, " " + f, f + "\n", "\t"]),
    "empty key": lambda draw, foreign: "",
    "oversized key": lambda draw, foreign: foreign + "x" * _LIMIT,
    "other form": lambda d, f: d.rng.choice([d.other.id, ticket_keys.counter(d.other.id), d.other.tenant.slug]),
}

# What stands in a request where a typed text should.
NO_TEXT: Final[tuple[Callable[[str, str], Any], ...]] = (
    lambda own, foreign: {"N": "1"},
    lambda own, foreign: {"B": foreign.encode()},
    lambda own, foreign: {"SS": [own, foreign]},
    lambda own, foreign: {"L": [{"S": foreign}]},
    lambda own, foreign: {"M": {"S": {"S": foreign}}},
    lambda own, foreign: {"NULL": True},
    lambda own, foreign: {"BOOL": True},
    lambda own, foreign: {"S": own, "N": "1"},
    lambda own, foreign: {"S": [foreign]},
    lambda own, foreign: {"S": None},
    lambda own, foreign: {"S": 5},
    lambda own, foreign: {"s": own},
    lambda own, foreign: {},
    lambda own, foreign: foreign,
    lambda own, foreign: [{"S": foreign}],
    lambda own, foreign: None,
)


def no_table(draw: Draw, table: Table) -> Any:
    """Return, in place of a table's name: its ARN, a neighbour's, nothing at all."""
    name = table.full_name
    return draw.rng.choice(
        [policies.table_arn(name), name + "x", name.lower(), name[:-1], name.replace(".", ".Dev.", 1), "*", "", None,
         [name], {"S": name}, name + "\0", f"{name}/index/{STATUS_UPDATED.name}", " " + name]
    )  # fmt: skip


def no_index(draw: Draw, table: Table) -> Any:
    real = STATUS_UPDATED.name
    return draw.rng.choice(
        [real + "x", real.upper(), "*", "", policies.table_arn(table.full_name, real), [real], 0, real + "\0", "gsi"]
    )


# No item is there and not there: a write that carries this changes nothing, whomever it reaches.
IMPOSSIBLE: Final = "attribute_not_exists(#k) AND attribute_exists(#k)"
SCRATCH_SORT: Final = "proof"
_READS: Final = ("GetItem", "Query", "BatchGetItem", "TransactGetItems", "Scan")
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


def place_of(table: Table, index: Index | None = None) -> str:
    return f"{table.name}/{index.name}" if index else table.name


def typed_key(table: Table, hash_value: Any, sort: str | None = None) -> dict[str, Any]:
    """Return a key with the hash as given, whatever it is, and a sort key where the table has one."""
    key = {table.hash: hash_value}
    if table.range:
        key[table.range] = {"S": sort or SCRATCH_SORT}
    return key


def used(placeholders: dict[str, Any], expression: str) -> dict[str, Any]:
    """Return the placeholders that an expression has: engines refuse the others, and then show nothing."""
    return {name: value for name, value in placeholders.items() if name in expression}


def impossible(table: Table, **params: Any) -> dict[str, Any]:
    """Return the parameters of a write that cannot take place."""
    names = {"#k": table.hash, **params.pop("ExpressionAttributeNames", {})}
    return {"ConditionExpression": IMPOSSIBLE, "ExpressionAttributeNames": names, **params}


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
        return _is_idle(params)
    if operation == "TransactWriteItems":
        return any(_is_idle(body) for member in params["TransactItems"] for body in member.values()) or all(
            _is_scratch(body) for member in params["TransactItems"] for body in member.values()
        )
    if operation == "BatchWriteItem":
        members = [body for group in params["RequestItems"].values() for m in group for body in m.values()]
        return all(_is_scratch(body) for body in members)
    return False


def _is_idle(body: dict[str, Any]) -> bool:
    names = body.get("ExpressionAttributeNames") or {}
    # A table of a tenant's own is called as the one of all, with an id before the last two words.
    named = body["TableName"].rsplit(".", 2)
    table = next(t for t in registry.tables() if t.name == ".".join(named[1:]))
    return (body.get("ConditionExpression") == IMPOSSIBLE and names.get("#k") == table.hash) or _is_scratch(body)


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
