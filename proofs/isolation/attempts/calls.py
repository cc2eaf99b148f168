"""Call our own code: key builders, the repository, cursors. A hostile call gives them what they must refuse."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from django.conf import settings
from django.core import signing

from portal.dynamo import client, paging
from portal.dynamo.models import ByIndex, RawItems
from portal.dynamo.store import Store, Transaction
from portal.isolation import guard, object_guard
from portal.nosql.stored import SessionItem
from portal.schema import keys
from proofs.isolation import keys as proof_keys
from proofs.isolation import privileges
from proofs.isolation.attempts.attempt import KEYS, SCRATCH_SORT, AttackAttempt, Draw, as_json
from proofs.isolation.targets import Cursor, Target
from tenants.membership import invitations, members
from tenants.membership.stored import MemberItem
from tenants.sign_in.stored import USERS, AccountItem
from tenants.tenancy.stored import TenantItem
from tickets.desk import lists, timelines
from tickets.replies import message_ids, reply_addresses
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import SUMMARY, TICKETS, CounterItem, DetailItem, SummaryItem


class HostileInputAccepted(AssertionError):
    """A builder made a key that is not the tenant's, or took for the tenant's what is not."""


def _modules_of_keys() -> Iterator[ModuleType]:
    """Import the `stored.py`, or `keys.py`, of every package."""
    for app in ("portal", "tenants", "delivery", "tickets", "api", "proofs"):
        for package in iter_modules(import_module(app).__path__, f"{app}."):
            for kind in ("stored", "keys"):
                if package.ispkg and find_spec(f"{package.name}.{kind}"):
                    yield import_module(f"{package.name}.{kind}")


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


def hostile(draw: Draw) -> AttackAttempt:
    return draw.rng.choices((_builder, _repository, _cursor, _token, _object), (35, 25, 20, 10, 10))[0](draw)


def honest(draw: Draw) -> AttackAttempt:
    """Return a call that the portal itself makes, with what is the tenant's."""
    name = draw.rng.choice([*OWN_CALLS, *(name for name in METHODS if name not in _NOT_GRANTED)])
    call = OWN_CALLS.get(name) or _method(draw, name, _number_key(draw), draw.me.id)
    return AttackAttempt("own call", name, "repository", draw, {}, honest=True, call=lambda: call(draw))


def _attempt(draw: Draw, kind: str, name: str, place: str, call: Callable[[], object], **params: Any) -> AttackAttempt:
    return AttackAttempt(kind, name, place, draw, {k: as_json(v) for k, v in params.items()}, call=call)


# --- key builders ---


def _builder(draw: Draw) -> AttackAttempt:
    rng = draw.rng
    name, kind, fuzzed = rng.choice([*BUILDERS]), rng.choice([*KEYS]), rng.random() < 0.6
    build, tenant_id = BUILDERS[name], draw.me.id
    if fuzzed:
        tenant_id = KEYS[kind](draw, draw.other.id)
        # The other tenant's real id would only be its owner's business.
        tenant_id = tenant_id if tenant_id != draw.other.id else ticket_keys.counter(draw.other.id)
    # Arguments that would end one part of a key and begin another.
    odd = [*_ODD_ARGUMENTS, draw.foreign(TICKETS), draw.other.id, ticket_keys.counter(draw.other.id)]
    arguments = [rng.choice(odd) for _ in [*inspect.signature(build).parameters][1:]]

    def call() -> object:
        made = build(tenant_id, *arguments)
        # No argument belongs to the tenant, so a reader has nothing to find in them.
        own_object = f"tenant/{draw.me.id}/"
        is_own = isinstance(made, str) and (keys.belongs_to(draw.me.id, made) or made.startswith(own_object))
        right = is_own if isinstance(made, str) else not made
        if fuzzed or not right:
            raise HostileInputAccepted(f"{name} answered {made!r}")
        return made

    kind = f"tenant id: {kind}" if fuzzed else "hostile argument"
    return _attempt(draw, kind, f"keys.{name}", "key builder", call, tenant_id=tenant_id, arguments=arguments)


# --- tokens of letters ---


def _token(draw: Draw) -> AttackAttempt:
    """Make a reply address (a requester's or an agent's), a return address or a Message-ID of another desk's ticket out
    of one that the tenant was given."""
    rng, number = draw.rng, draw.rng.randint(1, 9)
    mine, wanted = (_tokens(target, number) for target in (draw.me, draw.other))
    place = rng.randrange(len(mine))
    made, goal, is_read = mine[place], wanted[place], _READ[place]
    cut = rng.randrange(1, len(made))
    forged = rng.choice(
        [goal[:cut] + made[cut:], made[:cut] + goal[cut:], made[: cut - 1] + rng.choice(_LETTERS) + made[cut:],
         goal.replace(goal[cut - 1], rng.choice(_LETTERS), 1), made[:cut] + made[cut + 1 :]]
    )  # fmt: skip

    def call() -> object:
        read = is_read(forged)
        given = [text.rpartition("@")[0] for text in (made, goal)]  # their domain says nothing
        if read is not None and forged.rpartition("@")[0] not in given:
            raise HostileInputAccepted(f"{forged} was taken for {read!r}")
        return None

    return _attempt(draw, "forged token", is_read.__qualname__, "letters", call, token=forged)


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"


_READ: Final = (reply_addresses.read, reply_addresses.read, reply_addresses.read_return, message_ids.read_message_id)


def _tokens(target: Target, number: int) -> tuple[str, ...]:
    person = [*target.ids("requester"), target.id][0]
    member = target.members[0].id if target.members else target.id
    made = (
        reply_addresses.address_of(target.id, number, person, is_agent=False),
        reply_addresses.address_of(target.id, number, member, is_agent=True),
        reply_addresses.return_address(target.id, number, "e1"),
        message_ids.message_id(target.id, number, "e1").strip("<>"),
    )
    return tuple(f"{one.partition('@')[0]}@x.example" for one in made)


# --- objects ---


@cache
def _check() -> object_guard.Check:
    return object_guard.check_of("tenant", settings.MAIL_BUCKET)


_OBJECT_OPERATIONS: Final = (
    "GetObject", "HeadObject", "PutObject", "CopyObject", "DeleteObject", "ListObjectsV2",
)  # fmt: skip


def _object(draw: Draw) -> AttackAttempt:
    """Ask for an object under a key that is not the tenant's."""
    operation = draw.rng.choice(_OBJECT_OPERATIONS)
    key = draw.rng.choice(privileges.foreign_objects(draw.me.id, draw.other.id))
    named = {"Prefix": f"{key.rpartition('/')[0]}/"} if operation == "ListObjectsV2" else {"Key": key}
    if operation == "ListObjectsV2" and named["Prefix"] == f"tenant/{draw.me.id}/letters/":
        named["Prefix"] = "tenant/"  # the other one is the tenant's own
    if operation == "CopyObject":
        # One of the two keys is the tenant's own.
        source, named["Key"] = draw.rng.choice(
            ((key, f"tenant/{draw.me.id}/files/one"), (f"tenant/{draw.me.id}/uploads/one", key))
        )
        named["CopySource"] = f"{settings.MAIL_BUCKET}/{source}"

    def call() -> object:
        try:
            with guard.acting_for(draw.me.id):
                _check()(operation, {"Bucket": settings.MAIL_BUCKET, **named})
        except guard.IsolationError as error:
            if settings.DYNAMODB_GUARD:
                raise
            raise ValueError(error.why) from error  # it is asked here also where the clients are not guarded
        raise HostileInputAccepted(f"{operation} of {named!r} was let through")

    return _attempt(draw, "object key", operation, "objects", call, **named)


# --- the repository ---

Method = Callable[[Store, str, str], object]  # from a partition key, and one of scratch items
_NEVER: Final = DetailItem.pk.does_not_exist() & DetailItem.pk.exists()


def _here(repository: Store, key: str, scratch: str) -> object:
    wanted = {"TableName": TICKETS.full_name, "Key": {"pk": {"S": key}, "sk": {"S": SUMMARY}}}
    with repository.here():
        return client.connection("tenant").dispatch("GetItem", wanted)


def _transact(repository: Store, key: str, scratch: str) -> None:
    transaction = Transaction()
    transaction.put(DetailItem(repository.key(proof_keys.proof), SCRATCH_SORT), condition=_NEVER)
    transaction.update(DetailItem(key, SCRATCH_SORT), [DetailItem.description.set("proof")], condition=_NEVER)
    repository.transact(transaction)


def _of_scratch(scratch: str) -> DetailItem:
    return DetailItem(scratch, SCRATCH_SORT, description="proof")


# Every method of the repository; a test compares.
METHODS: Final[dict[str, Method]] = {
    "get": lambda r, key, s: r.get(SummaryItem, lambda tenant_id: key, sort=SUMMARY, consistent=True),
    "get_many": lambda r, key, s: r.get_many(SummaryItem, [(lambda tenant_id: key, (), SUMMARY)]),
    "get_all": lambda r, key, s: r.get_all([(SummaryItem, key, SUMMARY)]),
    "query": lambda r, key, s: r.query(RawItems(TICKETS), lambda tenant_id: key, limit=5),
    "query_all": lambda r, key, s: [*r.query_all(RawItems(TICKETS), lambda tenant_id: key, limit=5)],
    "query_pages": lambda r, key, s: [*r.query_pages(RawItems(TICKETS), lambda tenant_id: key, limit=5)],
    "wanted": lambda r, key, s: r.wanted(SummaryItem, key, sort=SUMMARY),
    "key": lambda r, key, s: r.key(ticket_keys.ticket, key),
    "here": _here,
    "send": lambda r, key, s: r.send(
        "GetItem", {"TableName": TICKETS.full_name, "Key": {"pk": {"S": key}, "sk": {"S": SUMMARY}}}
    ),
    "as_role": lambda r, key, s: r.as_role("tenant").get(SummaryItem, key, sort=SUMMARY),
    "increment": lambda r, key, s: r.increment(CounterItem, lambda tenant_id: s, sort="counter"),
    "put": lambda r, key, s: r.put(_of_scratch(s)),
    "put_new": lambda r, key, s: r.put_new(_of_scratch(s)),
    "put_all": lambda r, key, s: r.put_all([_of_scratch(s)]),
    "delete": lambda r, key, s: r.delete(_of_scratch(s)),
    "update": lambda r, key, s: r.update(
        DetailItem(key, SCRATCH_SORT), [DetailItem.description.set("proof")], condition=_NEVER
    ),
    "updating": lambda r, key, s: r.updating(
        DetailItem, SCRATCH_SORT, [DetailItem.description.set("proof")], condition=_NEVER
    )(key),
    "transact": _transact,
    "write_raw": lambda r, key, s: r.write_raw([(TICKETS, {"PutRequest": {"Item": _of_scratch(s).serialize()}})]),
    "delete_raw": lambda r, key, s: r.delete_raw(TICKETS, [_of_scratch(s).serialize()]),
}
_NOT_GRANTED: Final = ("delete", "delete_raw", "write_raw", "key")  # of a ticket; and a key builder takes a number


def _method(draw: Draw, name: str, key: str, scratch_of: str) -> Callable[[Draw], object]:
    return lambda draw: METHODS[name](draw.me.tenant.repository, key, proof_keys.proof(scratch_of))


def _repository(draw: Draw) -> AttackAttempt:
    rng, repository = draw.rng, draw.me.tenant.repository
    fuzz = KEYS["foreign key" if rng.random() < 0.7 else rng.choice([*KEYS])]
    key, name = fuzz(draw, draw.foreign(TICKETS)), rng.choice([*METHODS])
    call = _method(draw, name, key, draw.other.id)
    if name in ("get", "query") and rng.random() < 0.6:
        odd = rng.choice(_odd_gets(draw) if name == "get" else _odd_queries(draw, key))
        call = lambda draw: odd(repository)  # noqa: E731
    return _attempt(draw, "foreign key handed over", f"repository.{name}", "repository", lambda: call(draw), key=key)


def _odd_gets(draw: Draw) -> list[Callable[[Store], object]]:
    """Return reads of items, and of models of tables, that no tenant may read."""
    other, account = draw.other.id, draw.foreign(USERS)
    return [
        lambda r: r.get(MemberItem, lambda tenant_id: other, sort="x"),
        lambda r: r.get(TenantItem, lambda tenant_id: other),
        lambda r: r.get(TenantItem, lambda tenant_id: tenant_id),
        lambda r: r.get(AccountItem, lambda tenant_id: account),
        lambda r: r.get(SessionItem, lambda tenant_id: "x"),
    ]


def _odd_queries(draw: Draw, key: str) -> list[Callable[[Store], object]]:
    """Return queries of the other's index, from a foreign position, and within foreign bounds."""
    index = draw.rng.choice(TICKETS.indexes)
    theirs = draw.foreign(TICKETS, index)
    table, foreign = draw.place()[0], draw.other.id
    start = {"pk": {"S": key}, "sk": {"S": SUMMARY}}
    rows = RawItems(TICKETS)
    return [
        lambda r: r.query(ByIndex(SummaryItem, index), lambda tenant_id: theirs, limit=5),
        lambda r: r.query(rows, ticket_keys.ticket, 1, limit=5, start=start),
        lambda r: r.query(rows, ticket_keys.counter, limit=5, between=(key, key)),
        lambda r: r.query(rows, ticket_keys.counter, limit=5, begins_with=key),
        lambda r: r.query(RawItems(table), keys.tenant if table.range else ticket_keys.counter, limit=5),
        lambda r: r.query(MemberItem, lambda tenant_id: foreign),
    ]


# --- rules, as the portal uses them ---


def _number_key(draw: Draw) -> str:
    return draw.me.tenant.repository.key(ticket_keys.ticket, _number(draw))


def _number(draw: Draw) -> int:
    return int(draw.rng.choice(draw.me.summaries).number) if draw.me.summaries else 1


def _list(draw: Draw) -> object:
    own = [c for c in draw.me.cursors if c.status] or [Cursor("", Status.OPEN.value)]
    chosen = draw.rng.choice(own)
    status = Status(chosen.status)
    return lists.page(draw.me.tenant, status=status, resolver=chosen.resolver, after=chosen.text or None, size=5)


OWN_CALLS: Final[dict[str, Callable[[Draw], object]]] = {
    "get counter": lambda d: d.me.tenant.repository.get(
        CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET
    ),
    "members": lambda d: members.members_of(d.me.tenant.repository),
    "unreached invitations": lambda d: invitations.unreached(d.me.tenant.repository),
    "list": _list,
    "ticket": lambda d: timelines.ticket(d.me.tenant, _number(d)) if d.me.summaries else None,
}


# --- cursors ---

_BENT: Final = (
    "foreign cursor", "truncated", "altered", "signed with another key", "bound to the other", "invented position",
)  # fmt: skip


def _cursor(draw: Draw) -> AttackAttempt:
    """Return another tenant's position in the own list, whole, broken, or signed again."""
    rng, kind = draw.rng, draw.rng.choice(_BENT)
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
    rng, text, foreign = draw.rng, theirs.text, draw.foreign(TICKETS)
    at = rng.randrange(len(text))
    position: list[Any] = rng.choice([[0, "2026", 0, 1, 0, []], [1, foreign, 0, 1, 0, []], [0, "2026", 99, -1, 0, []],
                           [0, foreign, 0, 1, -1, [1]], [draw.other.id], [foreign]])  # fmt: skip
    bound: tuple[object, ...] = ("activity", theirs.number)
    if not theirs.number:
        bound = lists.binding(statuses=[Status(theirs.status)], resolver=theirs.resolver)
    match kind:
        case "truncated":
            return text[:at]
        case "altered":
            return text[:at] + rng.choice("aZ0:._-~\0\u0430") + text[at + 1 :]
        case "signed with another key":
            salt = "cursor:" + repr((draw.me.id, bound))
            return signing.dumps(position, key="not the key " * 4, salt=salt, compress=True)
        case "bound to the other":
            return paging.dump(position, tenant_id=draw.other.id, query=bound)
        case "invented position":
            return paging.dump(position, tenant_id=draw.me.id, query=bound)
    return text
