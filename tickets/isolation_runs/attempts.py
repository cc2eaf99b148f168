"""List what a run tries: each trick on each kind of key that a desk has. Every attempt is harmless by its form.

The kinds come from what the packages declare: each holding in each of its tables, each index, each kind of objects. So
a table, an index or a holding that is added is attacked without a change here. The keys are the desk's own, read from
its holdings; where it has none of a kind, a key of the declared form is made up.

A read can return nothing but the desk's own items. A write carries a condition that no item meets, or names an item
that is not there. So even a layer that was broken would let an attempt change nothing, and show nothing of another
tenant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext_noop

from portal.dynamo.models import RawItems
from portal.dynamo.store import Store
from portal.isolation import policies
from portal.objects.object_store import ObjectStore
from portal.schema import holdings, registry
from portal.schema.registry import Index, Table

Params = dict[str, Any]
Raw = Mapping[str, Any]

# No item is there and not there: a write that carries this changes nothing, whomever it reaches.
_NEVER: Final = "attribute_not_exists(#k) AND attribute_exists(#k)"
_ABSENT: Final = "isolation-run"  # a sort key, and the name of an object, that nothing has
_OTHERS: Final = "other items"  # of tables that have nothing of one tenant


@dataclass(frozen=True)
class KindOfKey:
    """One kind of key: of a holding in one of its tables, of an index (`holding` is ""), or of objects (no table)."""

    holding: str
    table: Table | None = None
    index: Index | None = None

    @property
    def what(self) -> str:
        """Return the holding, or the label of the index."""
        return self.holding or (self.index.label if self.index else "")

    @property
    def place(self) -> str:
        return self.table.name if self.table else "S3"


def kinds() -> tuple[KindOfKey, ...]:
    """Return every kind of key in a stable order."""
    declared = sorted(holdings.holdings(), key=lambda one: one.name)
    found = [KindOfKey(one.name, table) for one in declared for table in one.tables]
    found += [KindOfKey(one.name) for one in declared if one.objects]
    held = {kind.table for kind in found}
    found += [KindOfKey(_OTHERS, table) for table in registry.tables() if table not in held]
    found += [KindOfKey("", table, index) for table in registry.tables() for index in table.indexes]
    return tuple(found)


@dataclass(frozen=True)
class AttemptDraw:
    """One attempt in the making: `item` has the desk's key, `name` is what its table is called."""

    kind: KindOfKey
    item: Raw
    name: str
    desk: str  # a tenant id
    attacker: str  # an id that no tenant has
    prefix: str = ""  # of the desk's objects of this kind

    @property
    def table(self) -> Table:
        assert self.kind.table is not None  # noqa: S101  # tricks on objects ask for no table
        return self.kind.table

    @property
    def hash(self) -> str:
        """Return the desk's partition key, of the index where the kind is one."""
        return text_of(self.item, self.kind.index.hash if self.kind.index else self.table.hash)

    @property
    def key(self) -> Params:
        return {name: {"S": text_of(self.item, name)} for name in self.table.key_names}

    @property
    def own(self) -> Params:
        """Return the same key as the attacker would have it."""
        return self.key | {self.table.hash: {"S": self.owned(text_of(self.item, self.table.hash))}}

    def owned(self, text: str) -> str:
        return text.replace(self.desk, self.attacker) if self.desk in text else self.attacker

    def about(self, **params: Any) -> Params:
        return {"TableName": self.name, **params}

    def impossible(self, **params: Any) -> Params:
        names = {"#k": self.table.hash}
        return self.about(ConditionExpression=_NEVER, ExpressionAttributeNames=names, **params)

    def query(self, condition: str, names: Params, values: dict[str, str], **params: Any) -> Params:
        typed = {name: {"S": text} for name, text in values.items() if name in condition}
        index = {"IndexName": self.kind.index.name} if self.kind.index else {}
        used = {name: text for name, text in names.items() if name in condition}
        return self.about(
            KeyConditionExpression=condition, ExpressionAttributeNames=used, ExpressionAttributeValues=typed, Limit=1,
            **index, **params,
        )  # fmt: skip


def text_of(item: Raw, name: str) -> str:
    """Return a key of an item, which is always text."""
    return str(item[name]["S"])


Request = tuple[str, Params]  # an operation and its parameters


class Trick(NamedTuple):
    """One way to ask. `says` goes on behind the number of the attempt, as a sentence.

    `request` makes what is sent; `call` uses our own code instead, whose keys have to refuse it.
    """

    says: str
    request: Callable[[AttemptDraw], Request] | None = None
    call: Callable[[AttemptDraw], object] | None = None


# --- tricks on items ---


def _many(draw: AttemptDraw, *keys: Params) -> Params:
    return {"RequestItems": {draw.name: {"Keys": [*keys]}}}


def _members(draw: AttemptDraw, kind: str, *bodies: Params) -> Params:
    return {"TransactItems": [{kind: body} for body in bodies]}


def _by_hash(draw: AttemptDraw, condition: str = "#h = :d", **params: Any) -> Request:
    index = draw.kind.index
    names = {"#h": index.hash if index else draw.table.hash, "#r": (index.range if index else draw.table.range) or "x"}
    values = {":d": draw.hash, ":o": draw.owned(draw.hash), ":x": "2"}
    return "Query", draw.query(condition, names, values, **params)


def _changed(draw: AttemptDraw, change: Callable[[str, str], str]) -> Params:
    """Return the desk's key with the desk's id changed: what a pattern that is almost right takes for one's own."""
    text = text_of(draw.item, draw.table.hash)
    changed = change(draw.desk, draw.attacker)
    return draw.key | {draw.table.hash: {"S": text.replace(draw.desk, changed) if draw.desk in text else changed}}


def _of_table(draw: AttemptDraw, change: Callable[[str, str], str]) -> Request:
    return "GetItem", draw.about(Key=_changed(draw, change))


def _start(draw: AttemptDraw) -> Request:
    index = draw.kind.index
    names = {*draw.table.key_names, *((index.hash, index.range) if index else ())}
    start = {name: {"S": text_of(draw.item, name)} for name in names if name in draw.item}
    return _by_hash(draw, "#h = :o", ExclusiveStartKey=start)


def _absent(draw: AttemptDraw) -> Params:
    """Return a key within the desk's partition, or almost within, that no item has."""
    name = draw.table.range or draw.table.hash
    return draw.key | {name: {"S": f"{text_of(draw.item, name)}{_ABSENT}" if name == draw.table.hash else _ABSENT}}


def _own_table(draw: AttemptDraw) -> Request:
    """Ask for a key of the attacker's own, so that only a look at the table's name stops it."""
    placed = draw.table if draw.table.placed else registry.placed_tables()[0]
    prefix = draw.name.removesuffix(f".{draw.table.name}").removesuffix(f".{draw.desk}")
    key = {one: {"S": draw.attacker} for one in placed.key_names}
    return "GetItem", {"TableName": registry.physical(prefix, draw.desk, placed), "Key": key}


def _partiql(draw: AttemptDraw) -> Request:
    statement = f'SELECT * FROM "{draw.name}" WHERE {draw.table.hash} = ?'  # noqa: S608  # the guard has to refuse it
    return "ExecuteStatement", {"Statement": statement, "Parameters": [draw.key[draw.table.hash]], "Limit": 1}


def _scan(draw: AttemptDraw) -> Request:
    return "Scan", draw.about(Select="COUNT", Limit=1)


def _update(draw: AttemptDraw, key: Params) -> Params:
    return draw.impossible(Key=key, UpdateExpression="SET title = :v", ExpressionAttributeValues={":v": {"S": "x"}})


def _condition_old(draw: AttemptDraw) -> Request:
    condition = {"ComparisonOperator": "EQ", "AttributeValueList": [draw.key[draw.table.hash]]}
    return "Query", draw.about(KeyConditions={draw.table.hash: condition}, Limit=1)


_ALWAYS: Final = (
    Trick(gettext_noop("Read an item by its exact key."), lambda d: ("GetItem", d.about(Key=d.key))),
    Trick(gettext_noop("List the items beside it."), _by_hash),
    Trick(
        gettext_noop("Read it in a batch, behind an item of its own."),
        lambda d: ("BatchGetItem", _many(d, d.own, d.key) if d.own != d.key else _many(d, d.key)),
    ),
    Trick(
        gettext_noop("Read it in a transaction, behind an item of its own."),
        lambda d: ("TransactGetItems", _members(d, "Get", d.about(Key=d.own), d.about(Key=d.key))),
    ),
    Trick(gettext_noop("Write another item in its place."), lambda d: ("PutItem", d.impossible(Item=d.key))),
    Trick(gettext_noop("Change it."), lambda d: ("UpdateItem", _update(d, d.key))),
    Trick(gettext_noop("Delete it."), lambda d: ("DeleteItem", d.impossible(Key=d.key))),
    Trick(
        gettext_noop("Change it in a transaction, behind an item of its own."),
        lambda d: ("TransactWriteItems", _members(d, "Update", _update(d, d.own), _update(d, d.key))),
    ),
    Trick(
        gettext_noop("Hand its key to the program's own code, to read it."),
        call=lambda d: Store("tenant", d.attacker).get_many(
            RawItems(d.table), [(d.hash, (), text_of(d.item, d.table.range) if d.table.range else None)]
        ),
    ),
    Trick(
        gettext_noop("Hand its key to the program's own code, to list what is beside it."),
        call=lambda d: Store("tenant", d.attacker).query(RawItems(d.table), d.hash, limit=1),
    ),
    Trick(gettext_noop("Read the whole table."), _scan),
    Trick(gettext_noop("Ask for it in SQL (PartiQL)."), _partiql),
)
_IN_TURN: Final = (
    Trick(gettext_noop("List its own items or these."), lambda d: _by_hash(d, "#h = :o OR #h = :d")),
    Trick(gettext_noop("List its own items, beginning at this one."), _start),
    Trick(gettext_noop("List every key that begins like this one."), lambda d: _by_hash(d, "begins_with (#h, :d)")),
    Trick(
        gettext_noop("Read it under the desk's id in capital letters."), lambda d: _of_table(d, lambda t, a: t.upper())
    ),
    Trick(gettext_noop("Read it under the desk's id with its own id in front."), lambda d: _of_table(d, _in_front)),
    Trick(gettext_noop("Read it with a wildcard in place of the desk's id."), lambda d: _of_table(d, lambda t, a: "*")),
    Trick(
        gettext_noop("Read it by a list of keys where one key belongs."),
        lambda d: ("GetItem", d.about(Key=d.key | {d.table.hash: {"SS": [d.attacker, d.hash]}})),
    ),
    Trick(
        gettext_noop("Read it without a key."),
        lambda d: ("GetItem", d.about(Key={name: v for name, v in d.key.items() if name != d.table.hash})),
    ),
    Trick(gettext_noop("Ask for it in the old form of a condition."), _condition_old),
    Trick(
        gettext_noop("Read it from the table's full address (ARN)."),
        lambda d: ("GetItem", {"TableName": policies.table_arn(d.name), "Key": d.key}),
    ),
    Trick(gettext_noop("Name a table that is the desk's alone."), _own_table),
    Trick(
        gettext_noop("Delete in a batch, within the desk's items."),
        lambda d: ("BatchWriteItem", {"RequestItems": {d.name: [{"DeleteRequest": {"Key": _absent(d)}}]}}),
    ),
    Trick(
        gettext_noop("Find out whether it is there, by a check in a transaction."),
        lambda d: ("TransactWriteItems", _members(d, "ConditionCheck", d.impossible(Key=d.key))),
    ),
    Trick(gettext_noop("Ask the database how the table is made."), lambda d: ("DescribeTable", {"TableName": d.name})),
)


def _in_front(desk: str, attacker: str) -> str:
    return attacker + desk


# --- tricks on indexes ---


def _planted(draw: AttemptDraw) -> Params:
    index = draw.kind.index
    assert index is not None  # noqa: S101  # these tricks are those of indexes
    return {name: {"S": text_of(draw.item, name)} for name in (index.hash, index.range)}


def _plant_by_update(draw: AttemptDraw) -> Request:
    planted = _planted(draw)
    values = {f":{n}": value for n, value in enumerate(planted.values())}
    text = ", ".join(f"{name} = :{n}" for n, name in enumerate(planted))
    key = {name: value for name, value in draw.own.items() if name in draw.table.key_names}
    params = draw.impossible(Key=key, UpdateExpression=f"SET {text}", ExpressionAttributeValues=values)
    return "UpdateItem", params


_PLANTING: Final = (
    Trick(
        gettext_noop("Plant an item of its own in the desk's part of the index."),
        lambda d: ("PutItem", d.impossible(Item=d.own | _planted(d))),
    ),
    Trick(gettext_noop("Move an item of its own into the desk's part of the index."), _plant_by_update),
)
_OF_INDEXES: Final = (
    Trick(gettext_noop("List the desk's part of the index."), _by_hash),
    Trick(gettext_noop("List its own part of the index or the desk's."), lambda d: _by_hash(d, "#h = :o OR #h = :d")),
    Trick(gettext_noop("List its own part of the index, beginning in the desk's."), _start),
    Trick(gettext_noop("Count the desk's part of the index."), lambda d: _by_hash(d, Select="COUNT")),
    Trick(gettext_noop("List what the index has from a moment on."), lambda d: _by_hash(d, "#h = :d AND #r >= :x")),
    Trick(
        gettext_noop("List every part of the index that begins like the desk's."),
        lambda d: _by_hash(d, "begins_with (#h, :d)"),
    ),
    Trick(
        gettext_noop("Read the whole index."),
        lambda d: ("Scan", d.about(Select="COUNT", Limit=1, IndexName=d.kind.index.name if d.kind.index else "")),
    ),
)


# --- tricks on objects ---


def _read_object(change: Callable[[AttemptDraw], str]) -> Callable[[AttemptDraw], object]:
    return lambda draw: ObjectStore("tenant", draw.attacker).get(change(draw), most=1)


_OF_OBJECTS: Final = (
    Trick(gettext_noop("Read a file."), call=_read_object(lambda d: f"{d.prefix}{_ABSENT}")),
    Trick(
        gettext_noop("List the files."),
        call=lambda d: next(ObjectStore("tenant", d.attacker).list(d.prefix, page=1), None),
    ),
    Trick(
        gettext_noop("Read a file by a path that leads out of its own folder."),
        call=_read_object(lambda d: f"{d.prefix.replace(d.desk, d.attacker)}../../{d.desk}/{_ABSENT}"),
    ),
    Trick(
        gettext_noop("Read a file under the desk's id in capital letters."),
        call=_read_object(lambda d: f"{d.prefix.upper()}{_ABSENT}"),
    ),
    Trick(
        gettext_noop("Read a file with a wildcard in place of the desk's id."),
        call=_read_object(lambda d: f"{d.prefix.replace(d.desk, '*')}{_ABSENT}"),
    ),
    Trick(
        gettext_noop("Read a file under an address with its own id in front."),
        call=_read_object(lambda d: f"{d.prefix.replace(d.desk, d.attacker + d.desk)}{_ABSENT}"),
    ),
    Trick(
        gettext_noop("Read a file by an address with two slashes."),
        call=_read_object(lambda d: f"{d.prefix.replace('tenant/', 'tenant//')}{_ABSENT}"),
    ),
)


# --- the plan of a run ---


@dataclass(frozen=True)
class IsolationAttempt:
    """One attempt by its number: a trick on a kind of key."""

    number: int
    kind: KindOfKey
    place: int  # of the kind among all
    trick: Trick
    turn: int  # how often the run has come to this kind before


@dataclass(frozen=True)
class RunPlan:
    """All attempts of a run: kind after kind, and a next trick in each turn. It follows from what is declared."""

    kinds: tuple[KindOfKey, ...] = field(default_factory=kinds)

    @property
    def digest(self) -> str:
        """Return what changes with the kinds and the tricks: numbers of another plan mean other attempts."""
        tricks = (*_ALWAYS, *_IN_TURN, *_OF_INDEXES, *_PLANTING, *_OF_OBJECTS)
        told = [*(f"{k.what} {k.place}" for k in self.kinds), *(trick.says for trick in tricks)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]

    def attempt(self, number: int) -> IsolationAttempt:
        turn, place = divmod(number, len(self.kinds))
        kind = self.kinds[place]
        return IsolationAttempt(number, kind, place, _trick(kind, turn, place), turn)

    def attempts(self, count: int) -> Iterable[IsolationAttempt]:
        return map(self.attempt, range(count))


def _trick(kind: KindOfKey, turn: int, place: int) -> Trick:
    if kind.table is None:
        return _OF_OBJECTS[turn % len(_OF_OBJECTS)]
    if kind.index is not None:
        # Nobody's part of an index that is shared is the desk's, so an item can be planted in no part of it.
        tricks = _OF_INDEXES + (_PLANTING if kind.index.leading_keys else ())
        return tricks[turn % len(tricks)]
    if turn < len(_ALWAYS):
        return _ALWAYS[turn]
    return _IN_TURN[(turn - len(_ALWAYS) + place) % len(_IN_TURN)]
