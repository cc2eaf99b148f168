"""Ask for what a tenant's own code asks for, of every kind: layers that refuse these prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from delivery.outbox import stored as outbox_keys
from delivery.outbox.stored import OUTBOX, OutboxItem
from portal.dynamo.client import Item
from portal.dynamo.repository import Transaction
from portal.errors import ConditionFailed, TransactionRefused
from portal.schema import keys, tables
from proofs.isolation import keys as proof_keys
from proofs.isolation.attempts import item_requests, key_conditions
from proofs.isolation.attempts.attempt import (
    IMPOSSIBLE,
    SCRATCH_SORT,
    AttackAttempt,
    Draw,
    impossible,
    place_of,
    typed_key,
)
from tenants.audit_trail.stored import AUDIT
from tenants.membership import invitations, members
from tenants.membership.stored import MEMBERS, MemberItem
from tickets.desk import lists, timelines
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, CounterItem, DetailItem, SummaryItem

_OPERATIONS: Final = (
    "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "TransactWriteItems", "TransactGetItems",
)  # fmt: skip
_OUTBOX_SHARE: Final = 0.25
SCRATCH_ITEMS: Final = 200  # of one tenant at most, however long the run


def attempt(draw: Draw) -> AttackAttempt:
    if draw.rng.random() < 0.4:
        return _call(draw)
    operation = draw.rng.choice(_OPERATIONS)
    reads = operation in ("GetItem", "Query", "TransactGetItems")
    table = draw.rng.choice([TICKETS, TICKETS, MEMBERS]) if reads else TICKETS
    if operation == "TransactWriteItems" and draw.rng.random() < _OUTBOX_SHARE:
        return _made(draw, operation, OUTBOX, {"TransactItems": [_tell(draw)]})
    if operation in ("GetItem", "PutItem", "UpdateItem") and draw.rng.random() < _OUTBOX_SHARE:
        table = OUTBOX
    if operation == "Query":
        return _query(draw, draw.rng.choice([table, table, AUDIT]))
    if operation == "BatchGetItem":
        wanted = [_own_key(draw, TICKETS), *(_key_of(_scratch(draw, n)) for n in range(draw.rng.randrange(3)))]
        return _made(draw, operation, TICKETS, item_requests.of_many(operation, TICKETS, wanted))
    if operation.startswith("Transact"):
        return _made(draw, operation, table, {"TransactItems": _members(draw, operation, table)})
    params = item_requests.request(draw, operation, table, [_own_key(draw, table)])
    return _made(draw, operation, table, params if operation == "GetItem" else params | {"ReturnValues": "NONE"})


def _made(draw: Draw, operation: str, table: tables.Table, params: dict[str, Any]) -> AttackAttempt:
    return AttackAttempt("own request", operation, place_of(table), draw, params, honest=True)


def _own_key(draw: Draw, table: tables.Table) -> dict[str, Any]:
    """Return a real item of the acting tenant."""
    if table == MEMBERS:
        sort = draw.rng.choice(draw.me.members).id if draw.me.members else SCRATCH_SORT
        return typed_key(table, {"S": draw.me.id}, sort)
    if table == OUTBOX:
        return typed_key(table, {"S": draw.own(table)}, "2026")
    real = draw.rng.choice(draw.me.items) if draw.me.items else {"pk": proof_keys.proof(draw.me.id), "sk": SCRATCH_SORT}
    return {name: {"S": text} for name, text in real.items()}


def _key_of(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("pk", "sk")}


def _scratch(draw: Draw, number: int) -> dict[str, Any]:
    """Return an item that no list shows. Its text may well look like somebody else's key."""
    key = typed_key(TICKETS, {"S": proof_keys.proof(draw.me.id)}, f"{SCRATCH_SORT}{number}")
    return key | {"title": {"S": draw.rng.choice(["proof", ticket_keys.ticket(draw.other.id, 1)])}}


def _query(draw: Draw, table: tables.Table) -> AttackAttempt:
    index = draw.rng.choice([None, *table.indexes])
    params = key_conditions.request(draw, table, index, {"S": draw.own(table, index)})
    range_name = index.range if index else table.range
    more = draw.rng.choice(["", " AND #r BETWEEN :lo AND :hi", " AND begins_with (#r, :lo)", " AND #r >= :lo"])
    if more and range_name:
        params["KeyConditionExpression"] += more
        params["ExpressionAttributeNames"]["#r"] = range_name
        params["ExpressionAttributeValues"] |= {":lo": {"S": "2"}} | ({":hi": {"S": "~"}} if "hi" in more else {})
    return AttackAttempt("own request", "Query", place_of(table, index), draw, params, honest=True)


def _members(draw: Draw, operation: str, table: tables.Table) -> list[dict[str, Any]]:
    count = draw.rng.choice([1, 2, 4, 30])
    drawn = [_own_key(draw, table) for _ in range(count)]
    distinct = [*{str(key): key for key in drawn}.values()]
    if operation == "TransactGetItems":
        return [{"Get": {"TableName": table.full_name, "Key": key}} for key in distinct]
    body = {
        "TableName": table.full_name,
        "ConditionExpression": IMPOSSIBLE,
        "ExpressionAttributeNames": {"#k": table.hash},
    }
    own_index = {"tenant_status": {"S": draw.own(table, table.indexes[0])}, "updated_at": {"S": "2026"}}
    values = {":s": own_index["tenant_status"]}
    update = {"UpdateExpression": "SET tenant_status = :s", "ExpressionAttributeValues": values}
    return [
        {"Put": body | {"Item": key | own_index}} if i % 2 else {"Update": body | update | {"Key": key}}
        for i, key in enumerate(distinct)
    ]


def _tell(draw: Draw) -> dict[str, Any]:
    """Return the row that a rule adds to its transaction, with the key of an index that is no tenant's."""
    key = _own_key(draw, OUTBOX)
    pending = {"pending": {"S": outbox_keys.pending_of(outbox_keys.row_parts(key["event_id"]["S"])[1])}}
    row = key | pending | {"due_at": {"S": "2026"}, "open": {"SS": ["0/ep_proof"]}}
    return {"Put": impossible(OUTBOX, TableName=OUTBOX.full_name, Item=row)}


# --- the repository and the rules, as the portal uses them ---


def _call(draw: Draw) -> AttackAttempt:
    name = draw.rng.choice([*CALLS])
    return AttackAttempt("own call", name, "repository", draw, {}, honest=True, call=lambda: CALLS[name](draw))


def _number(draw: Draw) -> int:
    return int(draw.rng.choice(draw.me.summaries).number) if draw.me.summaries else 1


def _get(draw: Draw) -> object:
    model, sort = draw.rng.choice([(SummaryItem, ticket_keys.SUMMARY), (DetailItem, ticket_keys.DETAIL)])
    return draw.me.tenant.repository.get(model, ticket_keys.ticket, _number(draw), sort=sort)


def _put_all(draw: Draw) -> object:
    pk = draw.me.tenant.repository.key(proof_keys.proof)
    items: list[Item] = [DetailItem(pk, f"{SCRATCH_SORT}{draw.rng.randrange(SCRATCH_ITEMS)}", description="proof")]
    draw.me.tenant.repository.put_all(items)
    return None


def _transact(draw: Draw) -> object:
    """Return a transaction of own members that cannot take place: refused by its condition, not by a layer."""
    transaction = Transaction()
    pk = draw.me.tenant.repository.key(proof_keys.proof)
    transaction.put(DetailItem(pk, SCRATCH_SORT), condition=DetailItem.pk.exists() & DetailItem.pk.does_not_exist())
    try:
        draw.me.tenant.repository.transact(transaction)
    except TransactionRefused:
        return None
    raise ConditionFailed("A transaction took place against its condition.")


def _list(draw: Draw) -> object:
    """Return a page of a list, by one of its own cursors where it has some."""
    own = [c for c in draw.me.cursors if c.status]
    if not own:
        return lists.page(draw.me.tenant, status=Status.OPEN)
    chosen = draw.rng.choice(own)
    status = Status(chosen.status)
    return lists.page(draw.me.tenant, status=status, resolver=chosen.resolver, after=chosen.text, size=5)


def _ticket(draw: Draw) -> object:
    return timelines.ticket(draw.me.tenant, _number(draw)) if draw.me.summaries else None


CALLS: Final[dict[str, Callable[[Draw], object]]] = {
    "get": _get,
    "get member": lambda d: d.me.tenant.repository.get(MemberItem, keys.tenant, sort=SCRATCH_SORT),
    "get counter": lambda d: d.me.tenant.repository.get(
        CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET
    ),
    "query": lambda d: d.me.tenant.repository.query(TICKETS, ticket_keys.ticket, _number(d), limit=5),
    "query members": lambda d: members.members_of(d.me.tenant.repository),
    "get_many": lambda d: d.me.tenant.repository.get_many(
        SummaryItem, [(ticket_keys.ticket, (1,), ticket_keys.SUMMARY)]
    ),
    "get_raw": lambda d: d.me.tenant.repository.get_raw(TICKETS, ticket_keys.ticket, [1, 2], sort=ticket_keys.SUMMARY),
    "increment": lambda d: d.me.tenant.repository.increment(CounterItem, proof_keys.proof, sort="counter"),
    "transact": _transact,
    "put_all": _put_all,
    "get row": lambda d: d.me.tenant.repository.get(
        OutboxItem, outbox_keys.outbox_row, f"{d.rng.getrandbits(128):032x}", sort="2026"
    ),
    "unreached invitations": lambda d: invitations.unreached(d.me.tenant.repository),
    "list": _list,
    "ticket": _ticket,
}
