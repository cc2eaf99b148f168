"""Fills tenants with tickets as the rules write them, in parallel batches. Existing data stays.

Texts follow from a ticket's distance from the newest, not from its number, so that the same row of a list is as long
in every tenant: what differs between sizes is then the number of tickets, and a digit or two of their numbers.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.stack import BenchmarkError
from benchmarks.ticket_ranges import COMMENTS, SMALLEST, Layout
from portal import clock
from portal.dynamo import client, provisioning
from portal.dynamo.client import Item, fan_out
from portal.dynamo.store import chunked
from portal.errors import NotFound
from portal.schema import registry
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext, enter
from tickets.desk.changing import TicketState
from tickets.desk.history import History, PastEntry, changed, collection, opened
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import ActivityItem, CounterItem, DetailItem, SummaryItem

EMAIL: Final = "measured@example.com"
NAME: Final = "Mara Measured"
BLOCK: Final = 250  # tickets
PARALLEL: Final = 4  # blocks on their way at the same time
_VERSION: Final = 2  # grows when this module writes something else
# The newest tickets are spread over a little more than the days of a dashboard, alike in every tenant, and all others
# lie long before them.
_LATELY: Final = SMALLEST
_APART: Final = timedelta(minutes=149)
_LONG_BEFORE: Final = timedelta(days=120)
_COMMENTED_ROWS: Final = 240

_SUBJECTS: Final = (
    "Invoice shows the wrong address",
    "Printer on the second floor is offline",
    "Cannot sign in after the password change",
    "Export stops at row 5,000",
    "Webhook answers 500 since this morning",
    "Please add two seats to our plan",
    "Report totals differ from the dashboard",
    "Mobile app logs out every few minutes",
)
_WHERE: Final = ("in the Leipzig office", "for the whole team", "on the new laptops", "with the May update")
_TAGS: Final = (("billing", "address"), ("hardware",), ("sign-in", "password", "urgent-ish"), ("export", "api"))
_PEOPLE: Final = ("Ana Ruiz", "Ben Adeyemi", "Chloe Martin", "Deepa Rao", "Emil Novak", "Fatima Haddad")
_TALK: Final = (
    "Thanks for the quick answer. I tried it with **both** accounts and it still happens, always at the same place.",
    "Could you send us the log of that minute? It is under `Settings / Diagnostics`, and it looks like this:\n\n"
    "```\n2025-01-06 08:12:44 WARN sync: retry 3 of 5\n2025-01-06 08:12:49 ERROR sync: gave up\n```\n",
    "We found two things:\n\n1. the certificate had expired\n2. the [proxy](https://example.com/proxy) kept the old "
    "one\n\nBoth are mended now. Please try again and tell us what you see.",
    "> Please try again\n\nIt works for me, but my colleague still gets the error. She is on version 4.2, I am on 4.3.",
)


@dataclass(frozen=True)
class Filled:
    """A tenant that is ready to be measured."""

    slug: str
    size: int
    shards: int
    layout: Layout
    context: TenantContext
    made_at: datetime

    def opened_at(self, number: int) -> datetime:
        """Return when a ticket was opened: a fill that was interrupted writes the same items again."""
        rank = self.size - number
        if rank < _LATELY:
            return self.made_at - rank * _APART
        return self.made_at - _LONG_BEFORE - timedelta(minutes=rank)

    @property
    def tenant_id(self) -> str:
        return self.context.tenant_id

    @property
    def label(self) -> str:
        return f"{self.size:,}" if self.shards == 1 else f"{self.size:,} in {self.shards} shards"

    def address(self, path: str) -> str:
        """Return a path of the desk, with the name of the desk; any other path as it is."""
        return f"/{self.slug}{path}" if path.startswith(("/tickets/", "/search/")) else path

    def seen(self, numbers: Iterable[int]) -> list[TicketState]:
        """Return these tickets as a list would show them now, consistently read."""
        repository = self.context.repository
        items = [repository.get(SummaryItem, stored.ticket, n, sort=stored.SUMMARY, consistent=True) for n in numbers]
        return [TicketState.of(item) for item in items if item is not None]


def prepare_tables(marker: Path) -> None:
    """Make the tables, without what another version of the portal or of this module has filled."""
    models = (SummaryItem, DetailItem, ActivityItem)
    shape = repr((_VERSION, registry.tables(), [sorted(m.get_attributes()) for m in models]))
    digest = hashlib.blake2b(shape.encode(), digest_size=16).hexdigest()
    if marker.exists() and marker.read_text() != digest:
        for table in registry.tables():
            if provisioning.describe(table):
                client.connection("platform").call("DeleteTable", TableName=table.full_name)
    provisioning.create_all(wait=True)
    marker.write_text(digest)


def person() -> tuple[User, str]:
    """Return the person who is measured, and a password that counts from now on."""
    password = secrets.token_urlsafe(16)
    found = accounts.find_by_email(EMAIL)
    if found is None:
        return accounts.create(email=EMAIL, name=NAME, password=password, by=SYSTEM), password
    return accounts.set_password(found.id, password, by=SYSTEM), password


def tenant(user: User, *, size: int, shards: int, advance: Callable[[int], object]) -> Filled:
    """Return a tenant of this size whose owner is the person measured. `advance` gets numbers of tickets, as they
    come."""
    slug = f"bench-{size}-{shards}"
    try:
        item = tenant_directory.find(slug)
    except NotFound:
        name = f"Bench {size:,}" + (f" / {shards}" if shards > 1 else "")
        item = tenant_lifecycle.create(name=name, slug=slug, owner=user, shards=shards, by=SYSTEM)
    entered = enter(user, item.tenant_id)
    if entered is None:
        raise BenchmarkError(f"{EMAIL} is not a member of {slug}.")
    filled = Filled(slug, size, shards, Layout(size), entered, clock.parse(item.created_at))
    counter = entered.repository.get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET, consistent=True)
    if counter is None or counter.last < size:
        _fill(filled, user, advance)
    else:
        advance(size)
    return filled


def _fill(filled: Filled, user: User, advance: Callable[[int], object]) -> None:
    repository = filled.context.repository

    def write(numbers: range) -> int:
        repository.put_all(list(_items(filled, user, numbers)))
        return len(numbers)

    blocks = [range(n, min(n + BLOCK, filled.size + 1)) for n in range(1, filled.size + 1, BLOCK)]
    for some in chunked(blocks, PARALLEL):
        advance(sum(fan_out([partial(write, block) for block in some])))
    # Last: where it is missing, the fill was not finished.
    pk = repository.key(stored.counter)
    repository.put_all([CounterItem(pk, stored.COUNTER_TICKET, last=filled.size)])


def _items(filled: Filled, user: User, numbers: range) -> Iterator[Item]:
    for number in numbers:
        made = collection(filled.context, number, _history(filled, user, number))
        yield from (made.summary, made.detail, *made.activity)


def _history(filled: Filled, user: User, number: int) -> History:
    layout, rank = filled.layout, filled.size - number
    # The first few have a place of their own in every tenant; all others follow from the top.
    place = number if number in layout.mine or number in layout.talked else rank
    mine = number in layout.mine
    taken = mine or (number in layout.others and rank % 4 != 0)
    name = NAME if mine else _PEOPLE[place % len(_PEOPLE)] if taken else ""
    resolver = user.id if mine else _made_id(name) if taken else ""
    at = filled.opened_at(number)
    entries = tuple(_talk(filled, number, place, at)) if _has_talk(layout, number, rank) else ()
    return History(
        identity=f"{filled.slug}/{number}",
        values={
            "title": f"{_SUBJECTS[place % len(_SUBJECTS)]} {_WHERE[place // len(_SUBJECTS) % len(_WHERE)]}",
            "description": f"Since yesterday. {_TALK[place % len(_TALK)]} What else do you need from us?",
            "status": Status.PENDING if layout.pending(number) else Status.OPEN,
            "priority": list(Priority)[place % len(Priority)],
            "tags": _TAGS[place % len(_TAGS)],
            "resolver": resolver,
        },
        created_at=at,
        updated_at=max((e.at for e in entries if e.kind != "note"), default=at),
        requester="",
        requester_name=_PEOPLE[place // 2 % len(_PEOPLE)],
        resolver_name=name,
        entries=entries,
    )


def _has_talk(layout: Layout, number: int, rank: int) -> bool:
    return number in layout.talked or number in layout.mine or (number in layout.others and rank < _COMMENTED_ROWS)


def _talk(filled: Filled, number: int, place: int, at: datetime) -> Iterator[PastEntry]:
    """Yield a thread of comments for those that are read as tickets, two comments for those that are seen in lists."""
    person = _PEOPLE[place % len(_PEOPLE)]
    yield opened(at, "", person)
    yield changed(at + timedelta(seconds=1), "", person, ("priority", "normal", "high"))
    full = number in filled.layout.talked
    for index in range(COMMENTS if full else 2):
        # Named after the ticket, so that no two comments are one to a cache.
        text = f"{_TALK[(place + index) % len(_TALK)]}\n\nAbout {filled.slug} #{number:06}, {index + 1:02}."
        kind = "note" if index % 7 == 3 else "comment"
        yield PastEntry(kind, at + timedelta(seconds=2 + index), "", _PEOPLE[index % len(_PEOPLE)], body=text)


def _made_id(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
