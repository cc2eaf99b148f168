"""Attempts through our own code: key builders, the repository, cursors, with what they should never be given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from django.core import signing

from portal.dynamo import client, paging
from portal.dynamo.repository import TenantRepository, Transaction
from portal.nosql.stored import SessionItem
from portal.schema import keys, registry
from proofs.isolation import keys as proof_keys
from proofs.isolation.attempts.attempt import KEYS, SCRATCH_SORT, AttackAttempt, Draw, as_json, typed_key
from proofs.isolation.targets import Cursor
from tenants.membership.stored import MEMBERS, MemberItem
from tenants.sign_in.stored import USERS, AccountItem
from tenants.tenancy.stored import TenantItem
from tickets.desk import lists, timelines
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, CounterItem, DetailItem, SummaryItem


class HostileInputAccepted(AssertionError):
    """A builder made a key that is not the tenant's, or took for the tenant's what is not."""


def _modules_of_keys() -> Iterator[ModuleType]:
    """Import the `stored.py`, or `keys.py`, of every package."""
    for app in ("portal", "tenants", "delivery", "tickets", "api", "proofs"):
        for room in iter_modules(import_module(app).__path__, f"{app}."):
            for kind in ("stored", "keys"):
                if room.ispkg and find_spec(f"{room.name}.{kind}"):
                    yield import_module(f"{room.name}.{kind}")


# Every builder that takes a tenant; one that is added is attacked without a change here.
BUILDERS: Final = {
    name: build
    for module in _modules_of_keys()
    for name, build in vars(module).items()
    if inspect.isfunction(build)
    and build.__module__ == module.__name__
    and not name.startswith("_")
    and [*inspect.signature(build).parameters][:1] == ["tenant_id"]
}
_ODD_ARGUMENTS: Final = (0, -1, 10**20, True, None, "", "7", b"x", "\0", "x" * 600, ["x"], 1.5, {"S": "x"})


def attempt(draw: Draw) -> AttackAttempt:
    roll = draw.rng.random()
    return (_builder if roll < 0.35 else _repository if roll < 0.65 else _cursor)(draw)


def _attempt(draw: Draw, kind: str, name: str, place: str, call: Callable[[], object], **params: Any) -> AttackAttempt:
    return AttackAttempt(kind, name, place, draw, {k: as_json(v) for k, v in params.items()}, call=call)


def _hostile(draw: Draw) -> Any:
    """Return an argument that would end one part of a key and begin another."""
    return draw.rng.choice([*_ODD_ARGUMENTS, draw.foreign(TICKETS), draw.other.id, ticket_keys.counter(draw.other.id)])


def _builder(draw: Draw) -> AttackAttempt:
    rng = draw.rng
    name = rng.choice([*BUILDERS])
    build = BUILDERS[name]
    kind = rng.choice([*KEYS])
    fuzzed = rng.random() < 0.6
    tenant_id = _almost(draw, kind) if fuzzed else draw.me.id
    arguments = [_hostile(draw) for _ in [*inspect.signature(build).parameters][1:]]

    def call() -> object:
        made = build(tenant_id, *arguments)
        # No argument belongs to the tenant, so a reader has nothing to find in them.
        right = keys.belongs_to(draw.me.id, made) if isinstance(made, str) else not made
        if fuzzed or not right:
            raise HostileInputAccepted(f"{name} answered {made!r}")
        return made

    kind = f"tenant id: {kind}" if fuzzed else "hostile argument"
    return _attempt(draw, kind, f"keys.{name}", "key builder", call, tenant_id=tenant_id, arguments=arguments)


def _almost(draw: Draw, kind: str) -> str:
    """Return a tenant id that is none; the other tenant's real one would only be its owner's business."""
    fuzzed = KEYS[kind](draw, draw.other.id)
    return fuzzed if fuzzed != draw.other.id else ticket_keys.counter(draw.other.id)


# --- the repository ---


def _repository(draw: Draw) -> AttackAttempt:
    method = draw.rng.choice([*METHODS])
    foreign = draw.rng.random() < 0.7
    fuzz = KEYS["foreign key" if foreign else draw.rng.choice([*KEYS])]
    key = fuzz(draw, draw.foreign(TICKETS))
    call = METHODS[method](draw, draw.me.tenant.repository, key)
    return _attempt(draw, "foreign key handed over", f"repository.{method}", "repository", call, key=key)


def _get(draw: Draw, repository: TenantRepository, key: str) -> Callable[[], object]:
    """Return a builder that forgets the tenant; models of tables that no tenant may read."""
    model, theirs, sort = draw.rng.choice(
        [
            (SummaryItem, key, ticket_keys.SUMMARY),
            (DetailItem, key, ticket_keys.DETAIL),
            (MemberItem, draw.other.id, draw.sort(MEMBERS)),
            (TenantItem, draw.other.id, None),
            (TenantItem, draw.me.id, None),
            (AccountItem, draw.foreign(USERS), None),
            (SessionItem, "x", None),
        ]
    )
    return lambda: repository.get(model, lambda tenant_id: theirs, sort=sort, consistent=True)


def _query(draw: Draw, repository: TenantRepository, key: str) -> Callable[[], object]:
    rng = draw.rng
    index = rng.choice([None, *TICKETS.indexes])
    theirs = rng.choice(draw.other.partitions) if index else key
    start = {"pk": {"S": key}, "sk": {"S": ticket_keys.SUMMARY}}
    if index:
        start |= {index.hash: {"S": theirs}, index.range: {"S": "2"}}
    table = rng.choice([TICKETS, *registry.tables()])
    return rng.choice(
        [
            lambda: repository.query(TICKETS, lambda tenant_id: theirs, index=index, limit=5),
            lambda: repository.query(TICKETS, ticket_keys.ticket, 1, limit=5, start=start),
            lambda: repository.query(TICKETS, ticket_keys.counter, limit=5, between=(key, key)),
            lambda: repository.query(TICKETS, ticket_keys.counter, limit=5, begins_with=key),
            lambda: repository.query(table, keys.tenant if table.range else ticket_keys.counter, limit=5),
            lambda: repository.query(MEMBERS, lambda tenant_id: draw.other.id),
        ]
    )


def _transact(draw: Draw, repository: TenantRepository, key: str) -> Callable[[], object]:
    transaction = Transaction()
    never = DetailItem.pk.exists() & DetailItem.pk.does_not_exist()
    transaction.put(DetailItem(proof_keys.proof(draw.me.id), SCRATCH_SORT), condition=never)
    if draw.rng.random() < 0.5:
        transaction.put(DetailItem(key, SCRATCH_SORT), condition=never)
    else:
        transaction.update(DetailItem(key, SCRATCH_SORT), [DetailItem.description.set("proof")], condition=never)
    return lambda: repository.transact(transaction)


def _update(draw: Draw, repository: TenantRepository, key: str) -> Callable[[], object]:
    never = DetailItem.pk.exists() & DetailItem.pk.does_not_exist()
    item = DetailItem(key, SCRATCH_SORT)
    return lambda: repository.update(item, [DetailItem.description.set("proof")], condition=never)


def _here(draw: Draw, repository: TenantRepository, key: str) -> Callable[[], object]:
    wanted = {"TableName": TICKETS.full_name, "Key": typed_key(TICKETS, {"S": key}, ticket_keys.SUMMARY)}

    def call() -> object:
        with repository.here():
            return client.connection("tenant").dispatch("GetItem", wanted)

    return call


METHODS: Final[dict[str, Callable[[Draw, TenantRepository, str], Callable[[], object]]]] = {
    "get": _get,
    "here": _here,
    "query": _query,
    "query_all": lambda d, r, key: lambda: [*r.query_all(TICKETS, lambda tenant_id: key, limit=5)],
    "query_pages": lambda d, r, key: lambda: [*r.query_pages(TICKETS, lambda tenant_id: key, limit=5)],
    "increment": lambda d, r, key: (
        lambda: r.increment(CounterItem, lambda tenant_id: proof_keys.proof(d.other.id), sort="counter")
    ),
    "transact": _transact,
    "get_many": lambda d, r, key: lambda: r.get_many(SummaryItem, [(lambda tenant_id: key, (), ticket_keys.SUMMARY)]),
    "get_stored": lambda d, r, key: (
        lambda: r.get_stored(TICKETS, [(lambda tenant_id: key, (), ticket_keys.SUMMARY)], consistent=True)
    ),
    "get_raw": lambda d, r, key: lambda: r.get_raw(TICKETS, lambda tenant_id, k: k, [key], sort=ticket_keys.SUMMARY),
    "update": _update,
    "put_all": lambda d, r, key: (
        lambda: r.put_all([DetailItem(proof_keys.proof(d.other.id), SCRATCH_SORT, description="x")])
    ),
    "key": lambda d, r, key: lambda: r.key(ticket_keys.ticket, key),
    "wanted": lambda d, r, key: lambda: r.wanted(SummaryItem, key, sort=ticket_keys.SUMMARY),
    "get_all": lambda d, r, key: lambda: r.get_all([(SummaryItem, key, ticket_keys.SUMMARY)]),
    "put": lambda d, r, key: lambda: r.put(DetailItem(proof_keys.proof(d.other.id), SCRATCH_SORT, description="x")),
    "delete": lambda d, r, key: lambda: r.delete(DetailItem(proof_keys.proof(d.other.id), SCRATCH_SORT)),
    "send": lambda d, r, key: (
        lambda: r.send(
            "GetItem",
            {"TableName": TICKETS.full_name, "Key": {"pk": {"S": key}, "sk": {"S": ticket_keys.SUMMARY}}},
        )
    ),
    "as_role": lambda d, r, key: lambda: r.as_role("tenant").get(SummaryItem, key, sort=ticket_keys.SUMMARY),
}


# --- cursors ---

_BENT: Final = (
    "foreign cursor", "truncated", "altered", "signed with another key", "bound to the other", "invented position",
)  # fmt: skip


def _cursor(draw: Draw) -> AttackAttempt:
    """Return another tenant's position in the own list, whole, broken, or signed again."""
    rng = draw.rng
    kind = rng.choice(_BENT)
    theirs = rng.choice(draw.other.cursors) if draw.other.cursors else Cursor("x", Status.OPEN.value)
    text = _bent(draw, kind, theirs)

    def call() -> object:
        if theirs.number:
            return timelines.ticket(draw.me.tenant, theirs.number, before=text)
        return lists.page(draw.me.tenant, status=Status(theirs.status), resolver=theirs.resolver, after=text)

    name = "timelines.ticket" if theirs.number else "lists.page"
    described = {"status": theirs.status, "resolver": theirs.resolver, "number": theirs.number}
    return _attempt(draw, kind, name, "cursor", call, **described)


def _bent(draw: Draw, kind: str, theirs: Cursor) -> str:
    rng, text = draw.rng, theirs.text
    foreign = draw.foreign(TICKETS)
    positions: list[list[Any]] = [
        [0, "2026", 0, 1, 0, []],
        [1, foreign, 0, 1, 0, []],
        [0, "2026", 99, -1, 0, []],
        [0, foreign, 0, 1, -1, [1]],
        [draw.other.id],
        [foreign],
    ]
    position = rng.choice(positions)
    tenant = draw.me.tenant
    bound: tuple[object, ...] = ("activity", theirs.number)
    if not theirs.number:
        bound = lists.binding(statuses=[Status(theirs.status)], resolver=theirs.resolver)
    match kind:
        case "truncated":
            return text[: rng.randrange(len(text))]
        case "altered":
            place = rng.randrange(len(text))
            return text[:place] + rng.choice("aZ0:._-~\0\u0430") + text[place + 1 :]
        case "signed with another key":
            salt = "cursor:" + repr((tenant.tenant_id, bound))
            return signing.dumps(position, key="not the key " * 4, salt=salt, compress=True)
        case "bound to the other":
            return paging.dump(position, tenant_id=draw.other.id, query=bound)
        case "invented position":
            return paging.dump(position, tenant_id=draw.me.id, query=bound)
    return text
