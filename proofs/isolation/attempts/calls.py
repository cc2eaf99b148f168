"""Call our own code as the portal does: the repository. A hostile call hands it what it must refuse.

Key builders, cursors and the tokens of letters are given hostile input by the tests of each, with hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from portal.dynamo import client
from portal.dynamo.models import ByIndex, RawItems
from portal.dynamo.store import Store, Transaction
from portal.nosql.stored import SessionItem
from portal.schema import keys
from proofs.isolation import keys as proof_keys
from proofs.isolation.attempts.attempt import KEYS, SCRATCH_SORT, AttackAttempt, Draw, as_json
from proofs.isolation.targets import Cursor
from tenants.membership import invitations, members
from tenants.membership.stored import MemberItem
from tenants.sign_in.stored import USERS, AccountItem
from tenants.tenancy.stored import TenantItem
from tickets.desk import lists, timelines
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import SUMMARY, TICKETS, CounterItem, DetailItem, SummaryItem

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


def hostile(draw: Draw) -> AttackAttempt:
    """Return a call of the repository with another tenant's key, or what is almost the own one."""
    rng, repository = draw.rng, draw.me.tenant.repository
    fuzz = KEYS["foreign key" if rng.random() < 0.7 else rng.choice([*KEYS])]
    key, name = fuzz(draw, draw.foreign(TICKETS)), rng.choice([*METHODS])
    call = _method(draw, name, key, draw.other.id)
    if name in ("get", "query") and rng.random() < 0.6:
        odd = rng.choice(_odd_gets(draw) if name == "get" else _odd_queries(draw, key))
        call = lambda draw: odd(repository)  # noqa: E731
    params = {"key": as_json(key)}
    return AttackAttempt(
        "foreign key handed over", f"repository.{name}", "repository", draw, params, call=lambda: call(draw)
    )


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


def honest(draw: Draw) -> AttackAttempt:
    """Return a call that the portal itself makes, with what is the tenant's."""
    name = draw.rng.choice([*OWN_CALLS, *(name for name in METHODS if name not in _NOT_GRANTED)])
    call = OWN_CALLS.get(name) or _method(draw, name, _number_key(draw), draw.me.id)
    return AttackAttempt("own call", name, "repository", draw, {}, honest=True, call=lambda: call(draw))
