"""Whom the proof attacks: tenants, and what each of them really has, read in the tenant's own name and by no Scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from delivery.webhooks import delivery_log, endpoints
from delivery.webhooks.stored import SecretItem
from portal.errors import NotFound
from portal.schema import keys, tables
from tenants.api_keys import key_changes
from tenants.audit_trail.stored import AuditByActor, audit_actor_key, audit_entity_key
from tenants.membership import members
from tenants.membership.members import Member
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import MEMBER_ROLES
from tenants.tenancy.stored import TenantItem, TenantStatus
from tickets.articles import articles
from tickets.attachments import stored as file_keys
from tickets.desk import lists, timelines
from tickets.letters import ledger
from tickets.letters import stored as letter_keys
from tickets.requesters import requester_list
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import CounterItem, SummaryItem

# The people of the demonstration: their memberships lead to its tenants.
DEMONSTRATION: Final = ("alice@example.com", "bob@example.com", "charlie@example.com", "vera@example.com")
# A member for a moment during a run, and after a killed one until the next. The domain never exists; RFC 2606.
SCRATCH_ADDRESS: Final = "isolation-proof@proof.invalid"
_PAGES: Final = 6  # pages of a list that are read for its titles and cursors
_COLLECTIONS: Final = 12  # tickets that are read whole
_CANDIDATES: Final = 12  # members whose memberships are looked at


@dataclass(frozen=True)
class Cursor:
    """A real cursor and the list that it was made for: a status with a resolver, or a ticket's timeline."""

    text: str
    status: str = ""
    resolver: str | None = None
    number: int = 0


@dataclass
class Target:
    """One tenant: its context as the system has it, and samples of what it owns."""

    tenant: TenantContext
    members: list[Member]
    summaries: list[SummaryItem] = field(default_factory=list)
    items: list[dict[str, str]] = field(default_factory=list)  # keys of real items of Support.Tickets
    cursors: list[Cursor] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)  # ids of webhook endpoints
    deliveries: list[dict[str, str]] = field(default_factory=list)  # names and sort keys of real ones
    requesters: list[str] = field(default_factory=list)  # ids of people outside the desk
    requester_texts: set[str] = field(default_factory=set)  # their ids and addresses
    letters: list[str] = field(default_factory=list)  # digests of letters that came in
    letter_texts: set[str] = field(default_factory=set)  # those, and the names of their objects
    articles: list[int] = field(default_factory=list)  # drafts, and those that members alone read
    article_texts: set[str] = field(default_factory=set)  # their titles
    files: list[str] = field(default_factory=list)  # ids of files of tickets
    api_keys: list[str] = field(default_factory=list)  # prefixes
    api_key_texts: set[str] = field(default_factory=set)  # ids and digests of keys
    webhook_texts: set[str] = field(default_factory=set)  # addresses and secrets of endpoints

    @property
    def id(self) -> str:
        return self.tenant.tenant_id

    @cached_property
    def last_number(self) -> int:
        counter = self.tenant.repository.get(
            CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True
        )
        return int(counter.last) if counter else 0

    @cached_property
    def partitions(self) -> list[str]:
        """Return every partition that this tenant has in the ticket indexes."""
        key = self.tenant.repository.key
        shards = range(self.tenant.shards)
        return [key(ticket_keys.tenant_status, status.value.upper(), shard) for status in Status for shard in shards]

    def trails(self, index: tables.Index) -> list[str]:
        """Return the partitions of an index of the audit trail: of what the tenant's people did, and what was done."""
        people = [m.id for m in self.members] or ["system"]
        if index == AuditByActor.gsi:
            return [audit_actor_key(self.id, person) for person in people]
        return [
            audit_entity_key(self.id, "tenant", self.id),
            *(audit_entity_key(self.id, "user", p) for p in people),
        ]

    def state(self) -> list[Any]:
        """Return what must be the same after the run as before: counter, members, settings, and the sampled tickets."""
        repository = self.tenant.repository
        tickets = [
            repository.get(SummaryItem, ticket_keys.ticket, int(s.number), sort=ticket_keys.SUMMARY, consistent=True)
            for s in self.summaries[:40]
        ]
        counter = repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
        found = [counter, tenant_directory.find(self.tenant.slug), *tickets]
        return [*(i.serialize() if i else None for i in found), _people(self.tenant)]


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


def _sample(tenant: TenantContext) -> Target:
    target = Target(tenant, _people(tenant))
    for status in Status:
        after: str | None = None
        for _ in range(_PAGES):
            page = lists.page(tenant, status=status, after=after)
            target.summaries += page.rows
            target.cursors += [Cursor(text, status.value) for text in (page.next, page.previous) if text]
            after = page.next
            if after is None:
                break
    # Pages of one row, so that a tenant with few tickets has cursors as well.
    for status in Status:
        for resolver in (None, "", *(s.resolver for s in target.summaries[:2] if s.resolver)):
            text = lists.page(tenant, status=status, resolver=resolver, size=1).next
            target.cursors += [Cursor(text, status.value, resolver)] if text else []
    target.summaries.sort(key=lambda s: int(s.number))
    _read_collections(target)
    _read_webhooks(target)
    hidden = [row for row in articles.rows(tenant) if not (row.is_public and row.published)]
    target.articles, target.article_texts = [int(row.number) for row in hidden], {row.title for row in hidden}
    for person in requester_list.page(tenant, typed="", after="", limit=_CANDIDATES).people:
        target.requesters.append(person.id)
        target.requester_texts |= {person.id, *person.addresses}
    for row in ledger.letters(tenant.repository, limit=_CANDIDATES)[0]:
        target.letters.append(letter_keys.digest_of(row.pk))
        target.letter_texts |= {target.letters[-1], row.object} - {""}
    for key in key_changes.listed(tenant.repository):
        target.api_keys.append(key.api_key_prefix)
        target.api_key_texts |= {key.key_id, key.digest}
    return target


def _people(tenant: TenantContext) -> list[Member]:
    return [m for m in members.members_of(tenant.repository) if m.email != SCRATCH_ADDRESS]


def _read_collections(target: Target) -> None:
    key = target.tenant.repository.key
    step = max(1, len(target.summaries) // _COLLECTIONS)
    for summary in target.summaries[::step]:
        number = int(summary.number)
        ticket = timelines.ticket(target.tenant, number)
        pk = key(ticket_keys.ticket, number)
        sorts = [ticket_keys.SUMMARY, ticket_keys.DETAIL, *(a.sk for a in ticket.activity[:3])]
        target.items += [{"pk": pk, "sk": sort} for sort in sorts]
        for file in (*ticket.files, *(file for a in ticket.activity for file in a.files or ())):
            target.files.append(file.id)
            bucket = file_keys.bucket_of(file.id)
            target.items.append({"pk": key(file_keys.files, bucket), "sk": file_keys.file(file.id)})
        if ticket.earlier:
            target.cursors.append(Cursor(ticket.earlier, number=number))
    if target.last_number:
        target.items.append({"pk": key(ticket_keys.counter), "sk": ticket_keys.COUNTER_TICKET})


def _read_webhooks(target: Target) -> None:
    repository = target.tenant.repository
    for endpoint in endpoints.listed(repository):
        secret = repository.get(SecretItem, keys.tenant, sort=endpoint.endpoint_id)
        target.endpoints.append(endpoint.endpoint_id)
        target.webhook_texts |= {endpoint.url, secret.current if secret else ""} - {""}
        log = delivery_log.page(repository, endpoint.endpoint_id).rows
        target.deliveries += [{"name": delivery_log.name_of(row), "sort": row.timestamp_event_id} for row in log]


def texts_of(target: Target) -> set[str]:
    """Return titles, names, addresses, ids and secrets that only this tenant's pages should ever show."""
    people = {m.email for m in target.members} | {m.id for m in target.members}
    return (
        {s.title for s in target.summaries}
        | people
        | target.requester_texts
        | target.letter_texts
        | target.article_texts
        | target.webhook_texts
        | target.api_key_texts
        | {*target.files}
    )


def person_of(target: Target) -> User | None:
    """Return who visits the portal for this tenant: somebody of the highest role who is in no other tenant."""
    by_role = sorted(target.members, key=lambda m: sum(m.role.at_least(role) for role in MEMBER_ROLES), reverse=True)
    fewest = sorted(by_role[:_CANDIDATES], key=lambda m: len(members.memberships_of(m.id)))
    return next((user for m in fewest if (user := accounts.find_by_id(m.id)) and user.is_active), None)
