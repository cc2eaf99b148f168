"""Whom the proof attacks: tenants, and samples of what each of them really has, found as packages declare it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

from delivery.webhooks.stored import DELIVERIES, ENDPOINTS, SECRETS
from portal.dynamo.tenant_reader import TenantReader
from portal.errors import NotFound
from portal.schema.holdings import StoredItem, holdings
from portal.schema.registry import Index, Table
from tenants.api_keys.stored import API_KEYS
from tenants.membership import members
from tenants.membership.members import Member
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import MEMBER_ROLES, TenantContext
from tenants.tenancy.stored import TenantItem, TenantStatus
from tickets.articles import articles
from tickets.attachments.stored import FILE_PREFIX
from tickets.desk import lists, timelines
from tickets.letters.stored import LETTERS
from tickets.requesters.stored import REQUESTERS
from tickets.ticket.fields import Status
from tickets.ticket.stored import TICKETS, SummaryItem
from tickets.verification import recount

# The people of the demonstration: their memberships lead to its tenants.
DEMONSTRATION: Final = ("alice@example.com", "bob@example.com", "charlie@example.com", "vera@example.com")
# A member for a moment during a run, and after a killed one until the next. The domain never exists; RFC 2606.
SCRATCH_ADDRESS: Final = "isolation-proof@proof.invalid"
_PAGES: Final = 6  # pages of a list that are read for its titles and cursors
_CANDIDATES: Final = 12  # members whose memberships are looked at, and tickets that are read for their cursors
_READ, _KEPT = 400, 40  # rows of a holding that are read, and that are kept of these
# Where an id of each kind stands that an address may name: in which table and attribute, and in which form.
_IDS: Final = {
    "endpoint": (ENDPOINTS, "endpoint_id", "(.+)"),
    "requester": (REQUESTERS, "pk", r"(rq_\w+)"),
    "letter": (LETTERS, "pk", r"([0-9a-f]{48})"),
    "file": (TICKETS, "sk", rf"^{FILE_PREFIX}(.+)"),
    "api_key": (API_KEYS, "api_key_prefix", "(.+)"),
    "delivery": (DELIVERIES, "timestamp_event_id", "(.+)#(.+)"),
}
# The attributes of a table with texts that only this tenant's pages should ever show.
_SECRET: Final = {
    REQUESTERS: ("addresses",), LETTERS: ("object",), ENDPOINTS: ("url",), SECRETS: ("current",),
    API_KEYS: ("key_id", "digest"),
}  # fmt: skip


@dataclass(frozen=True)
class Cursor:
    """A real cursor and the list that it was made for: a status with a resolver, or a ticket's timeline."""

    text: str
    status: str = ""
    resolver: str | None = None
    number: int = 0


@dataclass
class Target:
    """One tenant: its context as the system has it, and samples of what it owns.

    `rows` are items by table, `steady` those that nobody but people changes. `articles` are the numbers and titles of
    drafts, and of those that members alone read.
    """

    tenant: TenantContext
    members: list[Member]
    summaries: list[SummaryItem]
    cursors: list[Cursor]
    rows: dict[Table, list[StoredItem]]
    steady: list[StoredItem]
    articles: dict[int, str]
    last_number: int

    @property
    def id(self) -> str:
        return self.tenant.tenant_id

    def partitions(self, table: Table, index: Index | None = None) -> list[str]:
        """Return the keys of the sampled rows in a table or one of its indexes; without any, one of the right form."""
        name = index.hash if index else table.hash
        if found := [row.item[name]["S"] for row in self.rows.get(table, ()) if name in row.item]:
            return found
        pattern = (index and index.leading_keys) or table.leading_keys
        return [pattern.replace("{tenant}", self.id).replace("*", "PROOF")]

    def keys(self, table: Table) -> list[dict[str, Any]]:
        return [row.key for row in self.rows.get(table, ())]

    def ids(self, kind: str) -> list[str]:
        """Return the ids of a kind, as addresses have them."""
        table, name, form = _IDS[kind]
        found = (re.search(form, key[name]["S"]) for key in self.keys(table))
        return sorted({".".join(reversed(one.groups())) for one in found if one})

    @cached_property
    def texts(self) -> set[str]:
        """Return titles, names, addresses, ids and secrets that only this tenant's pages should ever show."""
        values = [
            row.item.get(n) for table, names in _SECRET.items() for row in self.rows.get(table, ()) for n in names
        ]
        secret = {text for value in values for text in re.findall(r"'S': '([^']+)'", repr(value))}
        ids = {one for kind in ("requester", "letter", "file") for one in self.ids(kind)}
        people = {text for m in self.members for text in (m.email, m.id)}
        return {s.title for s in self.summaries} | {*self.articles.values()} | people | secret | ids

    def state(self) -> list[str]:
        """Return what must be the same after the run as before: the steady rows, as they are now."""
        wanted: dict[Table, list[tuple[str, str | None]]] = defaultdict(list)
        for row in self.steady:
            table = row.table
            wanted[table].append((row.item[table.hash]["S"], row.item[table.range]["S"] if table.range else None))
        read = (_reader(self.tenant).get(table, *keys) for table, keys in wanted.items())
        return sorted(repr(sorted(row.item.items())) for rows in read for row in rows)


def find(slugs: Sequence[str], limit: int | None) -> list[Target]:
    """Return the named tenants, else those of the people of the demonstration. Raises NotFound for a bad slug."""
    found: dict[str, TenantItem] = {}
    for slug in slugs or _demonstration():
        try:
            tenant = tenant_directory.find(slug)
        except NotFound:
            if slugs:
                raise
            continue
        if tenant.status == TenantStatus.ACTIVE:
            found[tenant.tenant_id] = tenant
    return [_sample(context.for_system(tenant)) for tenant in [*found.values()][:limit]]


def _demonstration() -> Iterable[str]:
    people = [user for address in DEMONSTRATION if (user := accounts.find_by_email(address))]
    return sorted({m.slug for user in people for m in members.memberships_of(user.id)})


def _reader(tenant: TenantContext) -> TenantReader:
    return TenantReader(tenant.tenant_id, tenant.placement)


def _sample(tenant: TenantContext) -> Target:
    rows, steady = defaultdict[Table, list[StoredItem]](list), list[StoredItem]()
    for holding in holdings():
        if all(table.scope == "tenant" for table in holding.tables):
            found = list(islice(holding.find(_reader(tenant)), _READ))
            for row in found[:: len(found) // _KEPT + 1]:
                rows[row.table].append(row)
                steady += [row] if not holding.left_out else []
    summaries, cursors = _listed(tenant)
    people = [m for m in members.members_of(tenant.repository) if m.email != SCRATCH_ADDRESS]
    hidden = {int(row.number): row.title for row in articles.rows(tenant) if not (row.is_public and row.published)}
    last = recount.last_number(tenant.repository)
    return Target(tenant, people, summaries, cursors, rows, steady, hidden, last)


def _listed(tenant: TenantContext) -> tuple[list[SummaryItem], list[Cursor]]:
    """Return tickets of all statuses, and cursors: of their lists, of lists of one row, and of some timelines."""
    summaries, cursors = list[SummaryItem](), list[Cursor]()
    for status in Status:
        after: str | None = None
        for _ in range(_PAGES):
            page = lists.page(tenant, status=status, after=after)
            summaries += page.rows
            cursors += [Cursor(text, status.value) for text in (page.next, page.previous) if text]
            if (after := page.next) is None:
                break
    # Pages of one row, so that a tenant with few tickets has cursors as well.
    for status in Status:
        for resolver in (None, "", *(s.resolver for s in summaries[:2] if s.resolver)):
            text = lists.page(tenant, status=status, resolver=resolver, size=1).next
            cursors += [Cursor(text, status.value, resolver)] if text else []
    summaries.sort(key=lambda s: int(s.number))
    for summary in summaries[:: len(summaries) // _CANDIDATES + 1]:
        number = int(summary.number)
        if earlier := timelines.ticket(tenant, number).earlier:
            cursors.append(Cursor(earlier, number=number))
    return summaries, cursors


def person_of(target: Target) -> User | None:
    """Return who visits the portal for this tenant: somebody of the highest role who is in no other tenant."""
    by_role = sorted(target.members, key=lambda m: sum(m.role.at_least(role) for role in MEMBER_ROLES), reverse=True)
    fewest = sorted(by_role[:_CANDIDATES], key=lambda m: len(members.memberships_of(m.id)))
    return next((user for m in fewest if (user := accounts.find_by_id(m.id)) and user.is_active), None)
