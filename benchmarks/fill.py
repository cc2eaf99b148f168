"""Fill a tenant with tickets as the rules write them, in parallel batches.

Texts follow from a ticket's distance from the newest, not from its number, so that the same row of a list is as long
in a tenant of any size. Lists read the pending tickets, and every measured write touches open and closed ones: so each
run lists the same rows.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final

from benchmarks.stack import MOST_AT_ONCE, SMALLEST, BenchmarkError
from portal import clock
from portal.dynamo import provisioning
from portal.dynamo.client import Item, fan_out
from portal.dynamo.store import chunked
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.context import TenantContext, enter
from tickets.desk.changing import TicketState
from tickets.desk.history import History, PastEntry, changed, collection, opened
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import CounterItem, SummaryItem

SLUG: Final = "bench"
EMAIL: Final = "measured@example.com"
NAME: Final = "Mara Measured"
MINE: Final = 8
COMMENTS: Final = 20
BULK: Final = 40
# With more than 2,048 different comments no process finds them in its cache of rendered Markdown.
_TALKED: Final = 120
_ON_TOP: Final = 400  # the newest tickets are all pending, so that a small tenant too has its second page
_COMMENTED_ROWS: Final = 240
_BLOCK, _PARALLEL = 250, 4  # tickets of a block, and blocks on their way at the same time
# The newest tickets are spread over a little more than the days of a dashboard.
_APART: Final = timedelta(minutes=149)
_LONG_BEFORE: Final = timedelta(days=120)

_SUBJECTS: Final = (
    "Invoice shows the wrong address", "Printer on the second floor is offline",
    "Cannot sign in after the password change", "Export stops at row 5,000", "Webhook answers 500 since this morning",
    "Please add two seats to our plan", "Report totals differ from the dashboard",
    "Mobile app logs out every few minutes",
)  # fmt: skip
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
    """A tenant of `size` tickets that is ready to be measured.

    Its numbers, the oldest first, are mine, discussed, to be commented, in groups that are closed together, and others.
    """

    size: int
    context: TenantContext
    made_at: datetime

    @cached_property
    def mine(self) -> range:
        return range(1, 1 + MINE)

    @cached_property
    def talked(self) -> range:
        return range(self.mine.stop, self.mine.stop + min(_TALKED, self.size // 10))

    @cached_property
    def commented(self) -> range:
        return range(self.talked.stop, self.talked.stop + min(48, self.size // 10))

    @cached_property
    def groups(self) -> list[range]:
        first = self.commented.stop
        return [range(first + i * BULK, first + (i + 1) * BULK) for i in range(min(MOST_AT_ONCE, self.size // 100))]

    @cached_property
    def others(self) -> range:
        return range(self.groups[-1].stop, self.size + 1)

    def is_pending(self, number: int) -> bool:
        """Tell whether a ticket is pending: `mine`, and of `others` all near the top, every second further down."""
        if number in self.others:
            return self.size - number < _ON_TOP or number % 2 == 0
        return number in self.mine

    def seen(self, numbers: Iterable[int]) -> list[TicketState]:
        """Return these tickets as a list would show them now, consistently read."""
        repository = self.context.repository
        items = [repository.get(SummaryItem, stored.ticket, n, sort=stored.SUMMARY, consistent=True) for n in numbers]
        return [TicketState.of(item) for item in items if item is not None]


def fill(size: int, advance: Callable[[int], object]) -> tuple[Filled, str]:
    """Return a new tenant of this size, and the password of its owner, who is measured. `advance` gets numbers of
    tickets, as they come."""
    provisioning.create_all(wait=True)
    password = secrets.token_urlsafe(16)
    user = accounts.create(email=EMAIL, name=NAME, password=password, by=SYSTEM)
    item = tenant_lifecycle.create(name=f"Bench {size:,}", slug=SLUG, owner=user, by=SYSTEM)
    entered = enter(user, item.tenant_id)
    if entered is None:
        raise BenchmarkError(f"{EMAIL} is not a member of {SLUG}.")
    filled, repository = Filled(size, entered, clock.parse(item.created_at)), entered.repository

    def write(numbers: range) -> int:
        repository.put_all(list(_items(filled, user, numbers)))
        return len(numbers)

    blocks = [range(n, min(n + _BLOCK, size + 1)) for n in range(1, size + 1, _BLOCK)]
    for some in chunked(blocks, _PARALLEL):
        advance(sum(fan_out([partial(write, block) for block in some])))
    repository.put_all([CounterItem(repository.key(stored.counter), stored.COUNTER_TICKET, last=size)])
    return filled, password


def _items(filled: Filled, user: User, numbers: range) -> Iterator[Item]:
    for number in numbers:
        made = collection(filled.context, number, history(filled, user, number))
        yield from (made.summary, made.detail, *made.activity)


def history(filled: Filled, user: User, number: int) -> History:
    rank = filled.size - number
    at = filled.made_at - (rank * _APART if rank < SMALLEST else _LONG_BEFORE + timedelta(minutes=rank))
    is_mine, is_talked, is_other = (number in some for some in (filled.mine, filled.talked, filled.others))
    # The first few have a place of their own; all others follow from the top.
    place = number if is_mine or is_talked else rank
    name = NAME if is_mine else _PEOPLE[place % len(_PEOPLE)] if is_other and rank % 4 else ""
    has_talk = is_mine or is_talked or (is_other and rank < _COMMENTED_ROWS)
    entries = tuple(_talk(filled, number, place, at)) if has_talk else ()
    return History(
        identity=f"{SLUG}/{number}",
        values={
            "title": f"{_SUBJECTS[place % len(_SUBJECTS)]} {_WHERE[place // len(_SUBJECTS) % len(_WHERE)]}",
            "description": f"Since yesterday. {_TALK[place % len(_TALK)]} What else do you need from us?",
            "status": Status.PENDING if filled.is_pending(number) else Status.OPEN,
            "priority": list(Priority)[place % len(Priority)],
            "tags": _TAGS[place % len(_TAGS)],
            "resolver": user.id if is_mine else name and _made_id(name),
        },
        created_at=at,
        updated_at=max((e.at for e in entries if e.kind != "note"), default=at),
        requester="",
        requester_name=_PEOPLE[place // 2 % len(_PEOPLE)],
        resolver_name=name,
        entries=entries,
    )


def _talk(filled: Filled, number: int, place: int, at: datetime) -> Iterator[PastEntry]:
    """Yield a thread of comments for those that are read as tickets, two comments for those that are seen in lists."""
    person = _PEOPLE[place % len(_PEOPLE)]
    yield opened(at, "", person)
    yield changed(at + timedelta(seconds=1), "", person, ("priority", "normal", "high"))
    for index in range(COMMENTS if number in filled.talked else 2):
        # Named after the ticket, so that no two comments are one to a cache.
        text = f"{_TALK[(place + index) % len(_TALK)]}\n\nAbout {SLUG} #{number:06}, {index + 1:02}."
        kind = "note" if index % 7 == 3 else "comment"
        yield PastEntry(kind, at + timedelta(seconds=2 + index), "", _PEOPLE[index % len(_PEOPLE)], body=text)


def _made_id(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
