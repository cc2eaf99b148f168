"""Writes the demonstration so that it can be interrupted anywhere and run again.

Each tenant holds a record of how far it is. Tickets go in blocks: first descriptions and histories, then the
summaries, without which nothing shows a ticket, then the record. All keys follow from the seed, so what a killed run
left half written is written over. The numbers are reserved before the first ticket, so that people who open
tickets meanwhile get later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

from django.conf import settings

from portal import clock
from portal.dynamo.client import Item, fan_out
from portal.dynamo.store import Store
from portal.errors import Conflict, Forbidden
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import certificates
from tenants.tenancy import context, placements, tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantStatus
from tickets.articles import article_changes, articles, sections
from tickets.articles.articles import Text
from tickets.data import stored as import_keys
from tickets.desk.history import TicketItems, collection
from tickets.outside import looks
from tickets.public_form import form_settings
from tickets.ready_answers import answer_changes, answer_reading
from tickets.ready_answers.answer_reading import Given
from tickets.requesters import requesters
from tickets.seeding import cast
from tickets.seeding.cast import Accounts, CastDesk, ensure_tenant
from tickets.seeding.content import invent
from tickets.seeding.stored import SOURCE, SeedItem
from tickets.ticket import status_dates
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import CounterItem, SummaryItem


def write(tenant: TenantContext, slug: str, *, by: Actor) -> None:
    """Publish the articles that the desk does not have yet, by title."""
    known = {row.title for row in articles.rows(tenant)}
    places = {section.name: section.id for section in sections.listed(tenant)}
    for one in cast.load("articles.toml").get(slug, ()):
        if one["title"] in known:
            continue
        if one["section"] not in places:
            places[one["section"]] = sections.add(tenant, one["section"], by=by).id
        text = Text(one["title"], one["body"], places[one["section"]], one.get("public", True))
        made = article_changes.create(tenant, text, by=by)
        article_changes.publish(tenant, int(made.number), text, edit=int(made.edit), by=by)
    shortcuts = {row.shortcut for row in answer_reading.listed(tenant, shared=True)[0]}
    for one in cast.load("answers.toml").get(slug, ()):
        if one["shortcut"] not in shortcuts:
            given = Given(**one | {"tags": tuple(one.get("tags", ()))})
            answer_changes.create(tenant, given, shared=True, by=by)


BLOCK: Final = 50  # tickets, some 500 items
# Colour and language of the public forms, by the desk's name in addresses.
_PUBLIC_FORMS: Final = {"acme": ("#b45309", "en"), "globex": ("#4338ca", "de")}
PARALLEL: Final = 4  # batches on their way at the same time


@dataclass
class SeedResult:
    """Count what a run has written; all zeros where everything was there."""

    tenants: int = 0
    tickets: int = 0
    accounts: int = 0


def refuse_in_production() -> None:
    """Raise Forbidden unless DEBUG is on: everybody knows the addresses and the password of the demonstration."""
    if not settings.DEBUG:
        raise Forbidden("The demonstration's accounts have a password that everybody knows; they need DEBUG=1.")


def is_complete(desk: CastDesk) -> bool:
    """Tell whether the demonstration that begins with this desk was finished once, of whatever size: two reads."""
    record = _read(placements.repository(desk.tenant_id))
    return record is not None and bool(record.complete)


def purged() -> set[str]:
    """Return the ids of tenants that were purged, or whose purge runs: two Queries."""
    certified = certificates.last_issued(certificates.LOOKED_THROUGH)
    closing = tenant_directory.closing_tenants(certificates.LOOKED_THROUGH)
    running = {item.tenant_id for item in closing if item.status == TenantStatus.PURGING}
    return running | {certificate.tenant_id for certificate in certified}


def run(
    desks: Iterable[CastDesk],
    *,
    seed: int,
    users: int,
    day: date,
    password: str,
    advance: Callable[[int], object] = lambda tickets: None,
) -> SeedResult:
    """Write what is missing of these desks. `advance` gets the number of tickets that are there, as they come.

    Raises Forbidden in production, Conflict where tenants or accounts of the same names were not made by this
    seed, and for a tenant that is being moved.
    """
    refuse_in_production()
    outcome, accounts = SeedResult(), Accounts(password)
    first: Store | None = None
    for desk in desks:
        repository = placements.repository(desk.tenant_id)
        first = first or repository
        record = _read(repository)
        if record and record.written >= record.planned >= desk.tickets and record.users >= users:
            advance(desk.tickets)
            continue
        accounts.ensure([cast.operator(seed), *(member.person for member in desk.members)])
        stored = ensure_tenant(desk)
        if stored.move:
            raise Conflict(f"{stored.name} is being moved to another place. Run this again when that has ended.")
        tenant = context.for_system(stored)
        advance(int(record.written) if record else 0)
        for written in _write_tickets(tenant, desk, record, seed=seed, users=users, day=day):
            outcome.tickets += written
            advance(written)
        outcome.tenants += 1
    outcome.accounts = accounts.made
    if first is not None:
        _mark_complete(first)
    return outcome


def _read(repository: Store) -> SeedItem | None:
    return repository.get(SeedItem, import_keys.import_source, SOURCE, sort=SOURCE, consistent=True)


def _write_tickets(
    tenant: TenantContext, desk: CastDesk, record: SeedItem | None, *, seed: int, users: int, day: date
) -> Iterator[int]:
    """Write the desk's missing tickets; yields how many, block by block."""
    if record is None:
        _write_contacts(tenant, desk, day)
        _open_public_form(tenant, desk)
    if record is not None and record.written < record.planned:
        # Tickets follow from the plan that they are part of, so the old one is finished first, as it was.
        former = cast.desk(desk.name, seed=seed, tickets=int(record.planned), users=int(record.users))
        yield from _fill(tenant, former, record, seed=seed, resumed=True)
    if record is None or record.planned < desk.tickets or record.users < users:
        record = _reserve(tenant.repository, record, tickets=desk.tickets, users=users, day=day)
        yield from _fill(tenant, desk, record, seed=seed)


def _write_contacts(tenant: TenantContext, desk: CastDesk, day: date) -> None:
    """Write the desk's customers as requesters. Later runs leave them as people have changed them."""
    items: list[Item] = []
    for contact in desk.contacts:
        profile = requesters.new_profile(
            tenant, contact.id, addresses=[contact.address], name=contact.name, organisation=contact.company
        )
        profile.created_at = clock.stamp(datetime(day.year, day.month, day.day, tzinfo=UTC))
        items += [profile, requesters.address_item(tenant, contact.address, profile)]
    tenant.repository.put_all(items)


def _open_public_form(tenant: TenantContext, desk: CastDesk) -> None:
    """Open the desk's public form and write its articles, if it has some. Leaves what people have set up."""
    chosen = _PUBLIC_FORMS.get(desk.slug)
    if chosen is None:
        return
    (colour, language), owner = chosen, desk.owner
    person, by = replace(tenant, user_id=owner.id, user_name=owner.name), Actor(owner.id, owner.email)
    if not looks.looks_of(person).version:
        looks.change(person, values={"name": "", "colour": colour, "language": language}, version=0, by=by)
    now = form_settings.read(person)
    if not now.version:
        form_settings.change(person, values={**asdict(now), "is_on": True}, version=0, by=by)
    write(person, desk.slug, by=by)


def _reserve(repository: Store, record: SeedItem | None, *, tickets: int, users: int, day: date) -> SeedItem:
    """Raise the counter to the last number, never lower it, and note what is planned."""
    if record is None:
        pk = repository.key(import_keys.import_source, SOURCE)
        record = SeedItem(pk, SOURCE, day=day.isoformat(), users=users, planned=0)
    counter = repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    missing = tickets - (int(counter.last) if counter else 0)
    if missing > 0:
        given = repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=missing)
        record.taken = int(given.last) - missing
    elif tickets > record.planned:
        # Somebody has used these numbers, or reserved them here and was killed before noting it.
        record.taken = tickets
    record.planned, record.users = max(tickets, int(record.planned)), max(users, int(record.users))
    repository.put_all([record])
    return record


def _fill(
    tenant: TenantContext, desk: CastDesk, record: SeedItem, *, seed: int, resumed: bool = False
) -> Iterator[int]:
    planned, day = int(record.planned), date.fromisoformat(record.day)
    counter = tenant.repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    counting = status_dates.counting_of(tenant, counter)
    for start in range(int(record.written) + 1, planned + 1, BLOCK):
        numbers = list(range(start, min(start + BLOCK, planned + 1)))
        last = numbers[-1]
        # What a killed run wrote, people may have changed since; and low numbers may be tickets of theirs.
        numbers = [n for n in numbers if not (resumed or n <= record.taken) or not _exists(tenant, n)]
        _write(
            tenant.repository,
            [
                collection(tenant, n, invent(desk, n, planned=planned, seed=seed, day=day), counting=counting)
                for n in numbers
            ],
        )
        record.written = last
        tenant.repository.put_all([record])
        resumed = False
        yield len(numbers)


def _exists(tenant: TenantContext, number: int) -> bool:
    return (
        tenant.repository.get(SummaryItem, ticket_keys.ticket, number, sort=ticket_keys.SUMMARY, consistent=True)
        is not None
    )


def _write(repository: Store, tickets: Sequence[TicketItems]) -> None:
    parts: list[Item] = [item for t in tickets for item in (t.detail, *t.activity)]
    batches = [parts[start::PARALLEL] for start in range(min(PARALLEL, len(parts)))]
    if batches:
        fan_out([partial(repository.put_all, batch) for batch in batches])
        repository.put_all([t.summary for t in tickets])


def _mark_complete(repository: Store) -> None:
    record = _read(repository)
    if record is not None and not record.complete:
        record.complete = 1
        repository.put_all([record])
