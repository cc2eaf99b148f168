"""Writes one row of an archive as one ticket that appears whole or not at all, whatever interrupts it.

A row that fits is one transaction: marker, summary, description, history. One that does not fit claims its
number first, with a marker that says it is not done; then come the parts of its history; the last transaction
holds the summary, without which nothing shows the ticket, and the marker that says it is done. A rerun finds
the claim and goes on under the same number; the keys of the entries follow from the row, so they are written
again, not twice.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final

from portal.dynamo.repository import TRANSACTION_LIMIT, Condition, Transaction
from portal.errors import TransactionRefused
from tenants.tenancy.context import TenantContext
from tickets.desk.history import History, PastEntry, TicketItems, changed, collection, opened
from tickets.importing import keys as import_keys
from tickets.importing.archive_rows import ArchivedTicket
from tickets.importing.archive_texts import tag_list
from tickets.importing.export_rows import ExportedTicket
from tickets.importing.items import ImportItem
from tickets.importing.ledger import NumberBlocks
from tickets.importing.row_values import Refused
from tickets.importing.ticket_people import TicketPeople, assignee_tag
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, ActivityItem, RequestItem, SummaryItem

TRANSACTION_BYTES: Final = 4_000_000  # of all items of one TransactWriteItems; AWS, "Quotas in Amazon DynamoDB"
ITEM_BYTES: Final = 4096  # more than an item holds beside its long text: keys, names, title, tags
PART: Final = 100  # entries written and held at a time
_MARKER: Final = "marker"


def history(row: ArchivedTicket, *, identity: str, people: TicketPeople, closer: str) -> tuple[History, list[str]]:
    """Return the row as a ticket's history, and what could not be kept of it, each as the end of a sentence.

    The first assignee who is a member gets the ticket; the names of the others stay as tags. Who closed it is
    in the archive only for merged pull requests; otherwise it is `closer`.
    """
    found = [(name, people.find(name)) for name in row.assignees]
    resolver = next((member for _, member in found if member), None)
    others = [
        people.tag_for(name) if member is None else assignee_tag(name)
        for name, member in found
        if member is None or member is not resolver
    ]
    tags, left = tag_list([*row.labels, *others])
    remarks = [f"has no room for the tag “{name}”" for name in left]
    entries = [opened(row.created_at, "", row.author)]
    entries += sorted((PastEntry("comment", c.at, "", c.author, body=c.body) for c in row.comments), key=_at)
    if row.closed_at:
        closing = changed(row.closed_at, "", row.closed_by or closer, ("status", "open", "closed"))
        entries = sorted([*entries, closing], key=_at)
    made = History(
        identity=identity,
        values={
            "title": row.title,
            "description": row.body,
            "status": Status.CLOSED if row.closed_at else Status.OPEN,
            "tags": tags,
            "resolver": resolver.id if resolver else "",
        },
        created_at=row.created_at,
        updated_at=row.updated_at,
        requester="",
        requester_name=row.author,
        resolver_name=resolver.name if resolver else "",
        entries=tuple(entries),
    )
    return made, remarks


def _at(entry: PastEntry) -> datetime:
    return entry.at


def write(
    tenant: TenantContext,
    source: str,
    row: ArchivedTicket | ExportedTicket,
    made: History,
    claim: ImportItem | None,
    numbers: NumberBlocks,
) -> int:
    """Write the ticket and return its number. `claim` is the marker of a run that did not finish the row.

    Raises Refused when another import writes the same row at this moment.
    """
    changed_since = claim is not None and claim.digest != row.digest
    number = int(claim.number) if claim and not changed_since else numbers.next(row.own_number)
    items = collection(tenant, number, made, epoch=numbers.epoch)
    marker = _marker(tenant, source, row, made, number)
    try:
        if claim is None and _fits(made):
            _finish(tenant, marker, items, items.activity, ImportItem.pk.does_not_exist())
            return number
        if claim is None:
            _claim(tenant, marker, ImportItem.pk.does_not_exist())
        elif changed_since:
            _expire(tenant, int(claim.number))
            _claim(tenant, marker, (ImportItem.done == 0) & (ImportItem.digest == claim.digest))
        for start in range(0, len(items.activity), PART):
            tenant.repository.put_all(items.activity[start : start + PART])
        _finish(tenant, marker, items, [], (ImportItem.done == 0) & (ImportItem.digest == marker.digest))
    except TransactionRefused as error:
        raise Refused(_why(error)) from error
    return number


def _marker(
    tenant: TenantContext, source: str, row: ArchivedTicket | ExportedTicket, made: History, number: int
) -> ImportItem:
    return ImportItem(
        tenant.repository.key(import_keys.import_source, source),
        row.id,
        number=number,
        digest=row.digest,
        comments=made.comment_count,
        done=1,
    )


def _fits(made: History) -> bool:
    texts = [made.values["description"], *(entry.body for entry in made.entries)]
    size = sum(len(text.encode()) for text in texts) + len(texts) * ITEM_BYTES
    return len(texts) + 2 <= TRANSACTION_LIMIT and size <= TRANSACTION_BYTES


def _claim(tenant: TenantContext, marker: ImportItem, condition: Condition) -> None:
    marker.done = 0
    transaction = Transaction()
    transaction.put(marker, name=_MARKER, condition=condition)
    tenant.repository.transact(transaction)
    marker.done = 1


def _finish(
    tenant: TenantContext, marker: ImportItem, items: TicketItems, activity: list[ActivityItem], condition: Condition
) -> None:
    transaction = Transaction()
    transaction.put(marker, name=_MARKER, condition=condition)
    transaction.put(items.summary, condition=SummaryItem.pk.does_not_exist())
    transaction.put(items.detail)
    for entry in activity:
        transaction.put(entry)
    tenant.repository.transact(transaction)


def _expire(tenant: TenantContext, number: int) -> None:
    """Leave to TTL what an unfinished run wrote of a row that has changed since: the tenant's role cannot delete.

    The ticket gets another number, so nobody sees these items meanwhile.
    """
    for page in tenant.repository.query_pages(TICKETS, ticket_keys.ticket, number, limit=TRANSACTION_LIMIT):
        transaction = Transaction()
        for raw in page.items:
            item = RequestItem(raw["pk"]["S"], raw["sk"]["S"])
            transaction.update(item, [RequestItem.expires_at.set(int(time.time()))])
        if len(transaction):
            tenant.repository.transact(transaction)


def _why(error: TransactionRefused) -> str:
    expected = {"ConditionalCheckFailed", "TransactionConflict"}
    strange = next((reason for reason in error.reasons if reason and reason.code not in expected), None)
    if strange:
        return f"was refused by the database: {strange.message or strange.code}"
    if error.reason(_MARKER) is None:
        return "got the number of a ticket that exists; run the import again for another one"
    return "is being imported by somebody else at this moment"
