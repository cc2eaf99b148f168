"""Import tickets: a public issue archive, whose conversations become comments, or an export of ours, as it was.

Idempotent: each row that became a ticket has a marker, found by the archive's name and the row's number. A row
that is known is left as it is, also where the archive says something else about it now. So a run that was
interrupted anywhere, even killed, is finished by running it again.

Each row becomes one ticket that appears whole or not at all, whatever interrupts it.

A row is marker, summary, description, history. One transaction writes as many rows as fit, and a few transactions are
under way at once; where one is refused, each of its rows is written alone. A row that fits in none claims its
number first, with a marker that says it is not done; then come the parts of its history; the last transaction
holds the summary, without which nothing shows the ticket, and the marker that says it is done. A rerun finds
the claim and goes on under the same number; the keys of the entries follow from the row, so they are written
again, not twice.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from portal import clock
from portal.dynamo.store import TRANSACTION_LIMIT, Condition, Store, Transaction
from portal.errors import Invalid, TransactionRefused, Unavailable
from portal.plain_text import amount
from tenants.membership import members
from tenants.tenancy.context import Role, TenantContext
from tickets.custom_fields import definitions
from tickets.custom_fields.definitions import Definitions
from tickets.data import archive_reader, import_rows
from tickets.data import stored as import_keys
from tickets.data.archive_reader import RawRow
from tickets.data.import_rows import ArchivedTicket, ExportedTicket, Refused, tag, tag_list
from tickets.data.imported_fields import OutsidePeople, Translation
from tickets.data.stored import ImportItem, ImportSourceItem
from tickets.desk.history import History, PastEntry, TicketItems, changed, collection, opened
from tickets.ticket import status_dates
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import ASSIGNEE, NUMBER_GAP, TAGS, Status
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, CounterItem, RequestItem, SummaryItem
from tickets.verification.recount import last_number

STRANGERS_KEPT: Final = 1000  # names; a file may hold one for each of its tickets


class TicketPeople:
    """The members whom a ticket can be assigned to, by what a file may call them. Read at first use.

    `strangers` counts the tickets of those names that are nobody's here, or several people's, for the report.
    """

    def __init__(self, tenant: TenantContext, *, dry_run: bool = False) -> None:
        self._tenant = tenant
        self.outside = OutsidePeople(tenant, dry_run=dry_run)
        self.strangers: Counter[str] = Counter()

    def tag_for(self, stranger: str) -> str:
        """Return the tag that a ticket gets instead of somebody whom `find` did not find, and count the ticket."""
        if stranger in self.strangers or len(self.strangers) < STRANGERS_KEPT:
            self.strangers[stranger] += 1
        return assignee_tag(stranger)

    def has(self, user_id: str) -> bool:
        """Tell whether this id is one of theirs."""
        return any(member.id == user_id for member in self._agents)

    def find(self, name: str) -> members.Member | None:
        """Return the one member with this name, or this name before the @ of the address. None where two have it."""
        return self._by_name.get(name.casefold())

    @property
    def defined(self) -> Definitions:
        return definitions.of(self._tenant)

    @cached_property
    def _agents(self) -> list[members.Member]:
        return [m for m in members.members_of(self._tenant.repository) if m.role.at_least(Role.AGENT)]

    @cached_property
    def _by_name(self) -> dict[str, members.Member | None]:
        known: dict[str, members.Member | None] = {}
        for member in self._agents:
            for key in {member.name.casefold(), member.email.split("@")[0].casefold()}:
                known[key] = None if key in known else member
        return known


def assignee_tag(name: str) -> str:
    return tag(f"assignee:{name}")


# --- what was taken before ---


BLOCK: Final = 100  # ticket numbers reserved by one write; a killed run loses at most as many
WINDOW: Final = 500  # markers read by one Query, some 80 KB
_END = "~"  # sorts after every row id


def list_source(repository: Store, source: str) -> None:
    """Note that something is imported from this archive, before anything is: by that its rows are found again."""
    item = ImportSourceItem(repository.key(import_keys.import_sources), import_keys.listed_source(source))
    repository.update(item, [ImportSourceItem.source.set(source)])


class Markers:
    """The rows of one archive that are tickets already, read in windows of their sort order.

    An archive in order, up or down, reads each marker once: rows / WINDOW Queries. Any other order costs up to
    one Query per row and is right all the same. Rows taken in this run are not in here.
    """

    def __init__(self, repository: Store, source: str) -> None:
        self._repository, self._source = repository, source
        self._known: dict[str, ImportItem] = {}
        self._low = self._high = ""

    def find(self, row_id: str) -> ImportItem | None:
        if not self._low <= row_id <= self._high:
            self._load(row_id, downwards=row_id < self._low)
        return self._known.get(row_id)

    def _load(self, row_id: str, *, downwards: bool) -> None:
        page = self._repository.query(
            ImportItem,
            import_keys.import_source,
            self._source,
            between=("!", row_id) if downwards else (row_id, _END),
            descending=downwards,
            limit=WINDOW,
            consistent=True,
        )
        markers = page.items
        self._known = {m.sk: m for m in markers}
        edge = markers[-1].sk if page.last_key else ("" if downwards else _END)
        self._low, self._high = (edge, row_id) if downwards else (row_id, edge)


class NumberBlocks:
    """Ticket numbers, reserved in blocks. At the end, what is left of the last block is given back if nobody
    took a number since; otherwise, and after a kill, those numbers stay unused."""

    def __init__(self, repository: Store) -> None:
        self._repository = repository
        # The last number handed out and the last one reserved: one value, so that Ctrl-C finds them in step.
        self._block = (0, 0)
        self.counter: CounterItem | None = None  # as it was when the last block was reserved

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, Unavailable):
            self._give_back()

    def next(self, wanted: int = 0) -> int:
        """Return the next number, or the wanted one where nobody has been given it yet and it is near enough."""
        last, end = self._block
        if last == end or end < wanted <= end + NUMBER_GAP:
            last, end = self._reserve(wanted)
        number = wanted if last < wanted <= end else last + 1
        self._block = (number, end)
        return number

    def _reserve(self, wanted: int) -> tuple[int, int]:
        """Return a new block, which holds the wanted number if it can: the number before it, and its last one."""
        given = last_number(self._repository) if wanted else 0
        by = wanted - given - 1 + BLOCK if given < wanted <= given + NUMBER_GAP else BLOCK
        counter = self._repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=by)
        self.counter = counter
        return int(counter.last) - by, int(counter.last)

    def _give_back(self) -> None:
        last, end = self._block
        if last == end:
            return
        counter = CounterItem(self._repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET)
        transaction = Transaction()
        transaction.update(counter, [CounterItem.last.set(last)], condition=CounterItem.last == end)
        with suppress(TransactionRefused):
            self._repository.transact(transaction)


# --- one ticket ---


TRANSACTION_BYTES: Final = 4_000_000  # of all items of one TransactWriteItems; AWS, "Quotas in Amazon DynamoDB"
ITEM_BYTES: Final = 4096  # more than an item holds beside its long text: keys, names, title, tags
PART: Final = 100  # entries written and held at a time
AT_ONCE: Final = 5  # groups of rows in memory: one is read while the others are written
_MARKER: Final = "marker"


def exported_history(row: ExportedTicket, *, identity: str, people: TicketPeople) -> tuple[History, list[str]]:
    """Return the ticket for this desk, and what could not be kept of it, each as the end of a sentence."""
    told, values = row.told, row.told.values
    assignee, name = values[ASSIGNEE.name], told.resolver_name
    left: list[str] = []
    if assignee and not people.has(assignee):
        found = people.find(name)
        values = {**values, ASSIGNEE.name: found.id if found else ""}
        if found is None:
            values[TAGS.name], left = tag_list([*values[TAGS.name], people.tag_for(name)])
        name = found.name if found else ""
    made = replace(told, identity=identity, values=values, resolver_name=name)
    made, foreign = Translation(people.defined, row.names).ticket(made)
    remarks = [*(f"has no room for the tag “{one}”" for one in left), *foreign]
    return people.outside.of_export(made, row.addresses), remarks


def history(row: ArchivedTicket, *, identity: str, people: TicketPeople) -> tuple[History, list[str]]:
    """Return the row as a ticket's history, and what could not be kept of it, each as the end of a sentence.

    The first assignee who is a member gets the ticket; the names of the others stay as tags. The archive names the
    person who closed a ticket only for merged pull requests; otherwise it is CLOSER.
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
    author = people.outside.written(row.author)
    entries = [opened(row.created_at, *author)]
    said = ((c, people.outside.written(c.author)) for c in row.comments)
    entries += sorted((PastEntry("comment", c.at, *by, body=c.body) for c, by in said), key=_at)
    if row.closed_at:
        closing = changed(row.closed_at, "", row.closed_by or CLOSER, ("status", "open", "closed"))
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
        requester=author[0],
        requester_name=author[1],
        resolver_name=resolver.name if resolver else "",
        entries=tuple(entries),
    )
    return made, remarks


def _at(entry: PastEntry) -> datetime:
    return entry.at


@dataclass(frozen=True)
class Ready:
    """A row that is to be written: its ticket, and what could not be kept of it. `claim` is the marker of a run that
    did not finish it."""

    row: ArchivedTicket | ExportedTicket
    made: History
    remarks: list[str]
    marker: ImportItem
    items: TicketItems
    claim: ImportItem | None

    @property
    def number(self) -> int:
        return int(self.marker.number)

    @property
    def is_large(self) -> bool:
        """Tell whether no transaction takes all of it."""
        return self.members > TRANSACTION_LIMIT or self.size > TRANSACTION_BYTES

    @cached_property
    def members(self) -> int:
        return len(self.items.activity) + 3

    @cached_property
    def size(self) -> int:
        """Return the bytes of its items, or some more."""
        texts = [self.made.values["description"], *(entry.body for entry in self.made.entries)]
        return sum(len(text.encode()) for text in texts) + len(texts) * ITEM_BYTES


@dataclass
class Group:
    """Rows that are written together. One that is large or claimed is alone."""

    rows: list[Ready] = field(default_factory=list)
    members: int = 0
    size: int = 0

    def takes(self, row: Ready) -> bool:
        """Add the row, or tell that it does not fit."""
        fits = self.members + row.members <= TRANSACTION_LIMIT and self.size + row.size <= TRANSACTION_BYTES
        if self.rows and (row.claim or self.rows[0].claim or not fits):
            return False
        self.rows.append(row)
        self.members += row.members
        self.size += row.size
        return True


def write(tenant: TenantContext, rows: Sequence[Ready]) -> list[Refused | None]:
    """Write the rows of a group, and say of each why it was refused: another import writes it at this moment, say."""
    if len(rows) > 1:
        transaction = Transaction()
        for row in rows:
            _add(transaction, row.marker, row.items, row.items.activity, ImportItem.pk.does_not_exist())
        if len(transaction) + tenant.repository.extra_members <= TRANSACTION_LIMIT:
            with suppress(TransactionRefused):
                tenant.repository.transact(transaction)
                return [None] * len(rows)
    return [_write_alone(tenant, row) for row in rows]


def _write_alone(tenant: TenantContext, ready: Ready) -> Refused | None:
    marker, items, claim = ready.marker, ready.items, ready.claim
    try:
        if claim is None and not ready.is_large:
            _finish(tenant, marker, items, items.activity, ImportItem.pk.does_not_exist())
            return None
        if claim is None:
            _claim(tenant, marker, ImportItem.pk.does_not_exist())
        elif claim.digest != marker.digest:
            _expire(tenant, int(claim.number))
            _claim(tenant, marker, (ImportItem.done == 0) & (ImportItem.digest == claim.digest))
        for start in range(0, len(items.activity), PART):
            tenant.repository.put_all(items.activity[start : start + PART])
        _finish(tenant, marker, items, [], (ImportItem.done == 0) & (ImportItem.digest == marker.digest))
    except TransactionRefused as error:
        return Refused(_why(error))
    return None


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
    _add(transaction, marker, items, activity, condition)
    tenant.repository.transact(transaction)


def _add(
    transaction: Transaction,
    marker: ImportItem,
    items: TicketItems,
    activity: list[ActivityItem],
    condition: Condition,
) -> None:
    transaction.put(marker, name=_MARKER, condition=condition)
    transaction.put(items.summary, condition=SummaryItem.pk.does_not_exist())
    transaction.put(items.detail)
    for entry in activity:
        transaction.put(entry)


def _expire(tenant: TenantContext, number: int) -> None:
    """Leave to TTL what an unfinished run wrote of a row that has changed since: the tenant's role cannot delete.

    The ticket gets another number, so nobody sees these items meanwhile.
    """
    for page in tenant.repository.query_pages(TICKET_ITEMS, ticket_keys.ticket, number, limit=TRANSACTION_LIMIT):
        transaction = Transaction()
        for item in page.items:
            transaction.update(RequestItem(item.pk, item.sk), [RequestItem.expires_at.set(int(time.time()))])
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


# --- the import ---


CLOSER = "Archive import"  # in the timeline, where the archive does not say who closed something
SOURCE_LIMIT = 200  # characters


@dataclass
class ImportResult:
    """Count what an import has done so far, in rows; `comments` are those of the new tickets."""

    rows: int = 0
    new: int = 0
    unchanged: int = 0
    changed: int = 0  # in the archive, since they were imported
    refused: int = 0
    renumbered: int = 0  # of those of an export: its numbers were not free here
    comments: int = 0
    reviews: int = 0
    strangers: Counter[str] = field(default_factory=Counter)  # new tickets of a name that is no one agent's here

    @property
    def complete(self) -> bool:
        """True when everything that was read is in the tenant now, as the archive has it."""
        return not self.refused and not self.changed


@dataclass
class Import:
    """One run. `say` gets a sentence per row that is not taken as it is, `advance` the bytes read since the last call.

    `placed` gets the kind and the number of each row that is a ticket, and the number of that ticket.

    `source` names the archive among all that a tenant imports; by default it is what the archive calls its
    repository, the desk whose export it is, or else the name of the file.
    """

    tenant: TenantContext
    path: Path
    source: str = ""
    dry_run: bool = False
    say: Callable[[str], object] = lambda line: None
    advance: Callable[[int], object] = lambda steps: None
    placed: Callable[[str, int, int], object] = lambda kind, number, ticket: None
    outcome: ImportResult = field(default_factory=ImportResult)

    def run(self) -> ImportResult:
        """Read the archive to its end. Raises ArchiveFault, Invalid, Unavailable; `outcome` says how far it came."""
        if len(self.source) > SOURCE_LIMIT:
            raise Invalid(f"A source has at most {SOURCE_LIMIT} characters.")
        archive = archive_reader.archive_of(self.path)
        self._people, self._seen, self._now = TicketPeople(self.tenant, dry_run=self.dry_run), set[str](), clock.now()
        self.outcome.strangers = self._people.strangers
        self._group, self._under_way = Group(), deque[tuple[Group, Future[list[Refused | None]]]]()
        self._is_listed = False
        with NumberBlocks(self.tenant.repository) as self._numbers, ThreadPoolExecutor(AT_ONCE) as self._pool:
            try:
                self._read(archive)
            except Invalid:
                self._settle()  # what was read before the fault is done
                raise
            self._settle()
        if archive.lone_surrogates:
            halves = amount(archive.lone_surrogates, "half of a character", "halves of characters")
            self.say(f"The archive holds {halves}; each became a question mark.")
        return self.outcome

    def _read(self, archive: archive_reader.Archive | archive_reader.ExportedLines) -> None:
        """Take all rows; the last ones wait in groups then."""
        markers: Markers | None = None
        reported = 0
        for raw in archive.rows():
            if markers is None:
                self.source = self.source or archive.name[:SOURCE_LIMIT] or self._file_name()
                markers = Markers(self.tenant.repository, self.source)
            self.outcome.rows += 1
            try:
                self._take(raw, markers)
            except Refused as reason:
                self._settle()  # so that rows are reported in their order
                self._leave_out(import_rows.name_of(raw), reason)
            self.advance(archive.consumed - reported)
            reported = archive.consumed

    def _leave_out(self, name: str, reason: Refused) -> None:
        self.outcome.refused += 1
        self.say(f"{name} {reason}. It was left out.")

    def _file_name(self) -> str:
        name = self.path.name
        self.say(f"The archive does not name itself before its rows; it is known as “{name}” now. See --source.")
        return name

    def _take(self, raw: RawRow, markers: Markers) -> None:
        read = import_rows.read_exported if raw.kind == archive_reader.KIND else import_rows.read_archived
        row = read(raw, self._now)
        if row.id in self._seen:
            raise Refused("comes twice in the archive; only the first counts")
        self._seen.add(row.id)
        self.outcome.reviews += row.reviews
        marker = markers.find(row.id)
        if marker is not None and marker.done:
            self.placed(row.kind, row.number, int(marker.number))
            self._compare(row, marker.digest, int(marker.number))
            return
        told: dict[str, Any] = {"identity": f"{self.source}/{row.id}", "people": self._people}
        made, remarks = exported_history(row, **told) if isinstance(row, ExportedTicket) else history(row, **told)
        remarks = [*row.remarks, *remarks]
        if self.dry_run:
            self._count(row, made, remarks)
        else:
            self._wait(row, made, remarks, marker)

    def _wait(
        self, row: ArchivedTicket | ExportedTicket, made: History, remarks: list[str], claim: ImportItem | None
    ) -> None:
        """Put the row into the group, and write that first where it has no room."""
        known = claim is not None and claim.digest == row.digest
        number = int(claim.number) if claim and known else self._numbers.next(row.own_number)
        marker = ImportItem(
            self.tenant.repository.key(import_keys.import_source, self.source),
            row.id,
            number=number,
            digest=row.digest,
            comments=made.comment_count,
            done=1,
        )
        made = made if number == row.own_number else replace(made, links=())  # links of others name the other number
        items = collection(
            self.tenant, number, made, counting=status_dates.counting_of(self.tenant, self._numbers.counter)
        )
        ready = Ready(row, made, remarks, marker, items, claim)
        if not self._group.takes(ready):
            self._begin_group()
            self._group.takes(ready)
        if ready.is_large:
            self._settle()  # not two of them in memory

    def _begin_group(self) -> None:
        """Let the group be written while the next one is read; wait for the oldest where AT_ONCE are in memory."""
        if not self._is_listed:
            list_source(self.tenant.repository, self.source)
            self._is_listed = True
        written = self._pool.submit(copy_context().run, write, self.tenant, self._group.rows)
        self._under_way.append((self._group, written))
        self._group = Group()
        self._settle(but=AT_ONCE - 1)

    def _settle(self, *, but: int = 0) -> None:
        """Report the groups that are written, until no more than `but` are under way: by default, all rows so far."""
        if self._group.rows:
            self._begin_group()
        while len(self._under_way) > but:
            group, written = self._under_way.popleft()
            for ready, refused in zip(group.rows, written.result(), strict=True):
                if refused:
                    self._leave_out(ready.row.name, refused)
                else:
                    self.placed(ready.row.kind, ready.row.number, ready.number)
                    self._count(ready.row, ready.made, ready.remarks, number=ready.number)

    def _count(
        self, row: ArchivedTicket | ExportedTicket, made: History, remarks: list[str], *, number: int = 0
    ) -> None:
        self.outcome.new += 1
        self.outcome.comments += made.comment_count
        self.outcome.renumbered += bool(row.own_number and number and number != row.own_number)
        for remark in remarks:
            self.say(f"{row.name} {remark}." + (f" It is ticket {number}." if number else ""))

    def _compare(self, row: ArchivedTicket | ExportedTicket, digest: str, number: int) -> None:
        if row.digest == digest:
            self.outcome.unchanged += 1
        else:
            self.outcome.changed += 1
            self._settle()
            self.say(f"{row.name} has changed in the archive since its import; ticket {number} was left as it is.")
