"""Set up endpoints: add, change, pause, resume and remove them, and replace their secrets. Admins of a tenant do this.

An endpoint's subscriptions are also stored in the tenant's own item, which every request has read already: so a change
of a ticket knows its subscribers without a read. Both are written in one transaction, with the row of the audit trail.
All that a change depends on is read at once, so it costs two round trips. An endpoint that is paused is subscribed to
nothing, so what happens meanwhile is not kept for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from django.conf import settings
from django.utils.translation import gettext, gettext_noop

from delivery.outbox.publisher import EventField, EventType, declare_event, declared_types
from delivery.webhooks import safe_addresses, signatures
from delivery.webhooks.stored import EndpointItem, SecretItem, endpoint_id, is_endpoint_id
from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.store import Store, Transaction
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Conflict, Invalid, NotFound, Overtaken, TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.schema import keys
from portal.web import locales
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.membership import member_changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tenants.tenancy.stored import TenantItem

_T = TypeVar("_T")

MOST: Final = 10  # endpoints of one tenant
DESCRIPTION_LIMIT: Final = 200  # characters
ACTIVE, PAUSED = "active", "paused"
OVERLAP: Final = timedelta(hours=24)  # for which a replaced secret signs beside the new one
MOST_OLD: Final = 3  # replaced secrets that sign beside the current one
_CHANGED: Final = gettext_noop("Somebody else has just changed this endpoint. Please check and try again.")
_ENDPOINT, _SUBSCRIPTIONS = "endpoint", "subscriptions"  # names of members of a transaction

TEST: Final = declare_event(
    EventType(
        "webhook.test",
        1,
        gettext_noop("Somebody pressed “Send a test” for an endpoint. No other endpoint is told of it."),
        (
            EventField("endpoint", gettext_noop("text"), gettext_noop("the id of the endpoint"), "ep_5f2c9a7be01d4432"),
            EventField(
                "sent_by",
                gettext_noop("text"),
                gettext_noop("the name of the person who asked for it"),
                "Alice Example",
            ),
        ),
    )
)


def offered() -> tuple[EventType, ...]:
    """Return the types that an endpoint can subscribe to: all but the test, which each endpoint gets when asked for."""
    return tuple(kind for kind in declared_types() if kind != TEST)


@dataclass(frozen=True)
class EndpointChoice:
    """Hold what an admin chooses for an endpoint. Raises Invalid, with the field, for what cannot be."""

    url: str
    event_types: tuple[str, ...]
    description: str = ""

    def __post_init__(self) -> None:
        read_target(self.url)
        known = {kind.name for kind in offered()}
        if unknown := [name for name in self.event_types if name not in known]:
            raise Invalid(
                gettext("There is no event type “%(name)s”.") % {"name": unknown[0][:80]}, field="event_types"
            )
        if not self.event_types:
            raise Invalid(gettext("Choose at least one event type."), field="event_types")
        locales.within(self.description, DESCRIPTION_LIMIT, "description")
        if plain_text.has_controls(self.description):
            raise Invalid(gettext("Use characters that can be seen."), field="description")


def read_target(url: str) -> safe_addresses.WebhookAddress:
    """Read the address of an endpoint by the rules of this installation. Raises Invalid."""
    return safe_addresses.target(url, ports=settings.WEBHOOK_PORTS, receiver=settings.WEBHOOK_RECEIVER)


# --- reading ---


def listed(repository: Store, *, consistent: bool = False) -> list[EndpointItem]:
    """Return a tenant's endpoints, the oldest first: one Query."""
    found = repository.query(EndpointItem, keys.tenant, consistent=consistent).items
    return sorted(found, key=lambda e: (e.created_at, e.endpoint_id))


def find(repository: Store, endpoint_id: str) -> EndpointItem:
    """Return one endpoint: one consistent GetItem. Raises NotFound."""
    found = None
    if is_endpoint_id(endpoint_id):
        found = repository.get(EndpointItem, keys.tenant, sort=endpoint_id, consistent=True)
    if found is None:
        raise NotFound(gettext("There is no such endpoint."))
    return found


def signing(stored: SecretItem) -> list[str]:
    """Return the secrets that sign now: the current one, and those that it replaced within OVERLAP."""
    return [stored.current, *(secret for _, secret in _old(stored))]


def _old(stored: SecretItem) -> list[tuple[str, str]]:
    """Return the replaced secrets that still sign, the latest first, each after the moment until which it does."""
    known = [(stored.previous_until or "", stored.previous or "")]
    known += [(until, secret) for until, _, secret in (text.partition(" ") for text in stored.earlier)]
    return [(until, secret) for until, secret in known if secret and clock.stamp() < until]


# --- changes ---


@dataclass(frozen=True)
class ChangedEndpoint:
    """Hold an endpoint as a change leaves it, with a new secret where the change made one."""

    item: EndpointItem
    secret: str = ""


_Companion = Companion[ChangedEndpoint] | None


@dataclass(frozen=True)
class _Planned:
    """Hold a change before it is written, None where there is nothing to write.

    `subscribe` are the types of events from then on, None to leave them.
    """

    told: ChangedEndpoint
    change: tuple[Transaction, AuditEntry] | None = None
    subscribe: Sequence[str] | None = None


def add(
    tenant: TenantContext, *, choice: EndpointChoice, request_id: str, by: Actor, companion: _Companion = None
) -> tuple[EndpointItem, str]:
    """Add an endpoint and return it with its secret, which is not shown again.

    Raises Conflict where there are MOST already, and for a form that has made its endpoint before.
    """
    secret, now = signatures.new_secret(), clock.stamp()
    item = EndpointItem(
        tenant.tenant_id,
        endpoint_id(request_id),
        url=choice.url,
        description=choice.description,
        event_types=sorted(choice.event_types),
        created_at=now,
        rotated_at=now,
    )

    def plan(others: list[EndpointItem]) -> _Planned:
        if any(other.endpoint_id == item.endpoint_id for other in others):
            raise Conflict(
                gettext("This endpoint has been added already. Its secret was shown then; you can replace it.")
            )
        if len(others) >= MOST:
            raise Conflict(
                gettext("A desk can have up to %(most)s endpoints. Remove one that is not used.") % {"most": MOST}
            )
        transaction = Transaction()
        transaction.put(item, condition=EndpointItem.endpoint_id.does_not_exist(), name=_ENDPOINT)
        transaction.put(SecretItem(tenant.tenant_id, item.endpoint_id, current=secret))
        row = _entry(item, AuditAction.WEBHOOK_ADDED, by, after=_shown(item))
        return _Planned(ChangedEndpoint(item, secret), (transaction, row), choice.event_types)

    _commit(
        tenant,
        partial(listed, tenant.repository, consistent=True),
        plan,
        companion,
        lacks=lambda others, subscribed: not subscribed <= {other.endpoint_id for other in others},
    )
    return item, secret


def change(
    tenant: TenantContext,
    *,
    endpoint_id: str,
    choose: Callable[[EndpointItem], EndpointChoice],
    version: int | None,
    by: Actor,
) -> EndpointItem:
    """Store what an admin chose anew, made of what is stored, and return the endpoint as it is then.

    `version` is the one that the form showed, None where `choose` has judged what is stored. Where nothing changes,
    nothing is written. Raises NotFound and Conflict.
    """

    def plan(item: EndpointItem) -> _Planned:
        if version is not None and item.version != version:
            raise Conflict(gettext(_CHANGED))
        choice, before = choose(item), _shown(item)
        item.url, item.description, item.event_types = choice.url, choice.description, sorted(choice.event_types)
        after = _shown(item)
        names = {name for name in after if before[name] != after[name]}
        if not names:
            return _Planned(ChangedEndpoint(item))
        actions = [
            EndpointItem.url.set(item.url),
            EndpointItem.description.set(item.description),
            EndpointItem.event_types.set(item.event_types),
        ]
        was, now = ({name: values[name] for name in names} for values in (before, after))
        row = _entry(item, AuditAction.WEBHOOK_CHANGED, by, before=was, after=now)
        subscribe = choice.event_types if item.state == ACTIVE else ()
        return _Planned(ChangedEndpoint(item), (_updated(item, actions), row), subscribe)

    return _commit(tenant, partial(find, tenant.repository, endpoint_id), plan).item


def pause(
    tenant: TenantContext,
    *,
    endpoint_id: str,
    by: Actor,
    because: str = "",
    mails: Sequence[OutgoingMail] = (),
    companion: _Companion = None,
) -> None:
    """Send an endpoint nothing more, until it is resumed. The mails leave with that, where they leave by the outbox.

    Raises NotFound and Conflict.
    """

    def plan(item: EndpointItem) -> _Planned:
        if item.state == PAUSED:
            raise Conflict(gettext("This endpoint is paused already."))
        item.state, item.paused_because = PAUSED, because
        transaction = _updated(item, [EndpointItem.state.set(PAUSED), EndpointItem.paused_because.set(because)])
        outgoing.join(transaction, mails)
        row = _entry(item, AuditAction.WEBHOOK_PAUSED, by, after={"because": because} if because else {})
        return _Planned(ChangedEndpoint(item), (transaction, row), ())

    _commit(tenant, partial(find, tenant.repository, endpoint_id), plan, companion)


def resume(tenant: TenantContext, *, endpoint_id: str, by: Actor, companion: _Companion = None) -> None:
    """Send an endpoint again what it subscribed to, from now on. Raises NotFound and Conflict."""

    def plan(item: EndpointItem) -> _Planned:
        if item.state == ACTIVE:
            raise Conflict(gettext("This endpoint is active already."))
        item.state, item.paused_because, item.failing_since = ACTIVE, None, None
        gone = [EndpointItem.paused_because.remove(), EndpointItem.failing_since.remove()]
        transaction = _updated(item, [EndpointItem.state.set(ACTIVE), *gone])
        row = _entry(item, AuditAction.WEBHOOK_RESUMED, by)
        return _Planned(ChangedEndpoint(item), (transaction, row), tuple(item.event_types))

    _commit(tenant, partial(find, tenant.repository, endpoint_id), plan, companion)


def remove(tenant: TenantContext, *, endpoint_id: str, by: Actor) -> None:
    """Remove an endpoint and its secrets. Its pending events are not sent. Raises NotFound and Conflict."""

    def plan(item: EndpointItem) -> _Planned:
        transaction = Transaction()
        key = EndpointItem(item.tenant_id, item.endpoint_id)
        transaction.delete(key, condition=EndpointItem.endpoint_id.exists(), name=_ENDPOINT)
        transaction.delete(SecretItem(item.tenant_id, item.endpoint_id))
        row = _entry(item, AuditAction.WEBHOOK_REMOVED, by, before=_shown(item))
        return _Planned(ChangedEndpoint(item), (transaction, row), ())

    _commit(tenant, partial(find, tenant.repository, endpoint_id), plan)


def rotate(
    tenant: TenantContext, *, endpoint_id: str, version: int | None, by: Actor, companion: _Companion = None
) -> tuple[EndpointItem, str]:
    """Make a new secret and return it with the endpoint; it is not shown again. Each old one signs for OVERLAP, so that
    no delivery is refused meanwhile.

    `version` is that of the endpoint on the form: a form that is sent twice replaces the secret once. Raises NotFound,
    and Conflict where MOST_OLD sign already: one more would end the signatures that a receiver may still rely on.
    """
    secret, now = signatures.new_secret(), clock.now()
    partition = partial(tenant.repository.get, SecretItem, keys.tenant)
    reads: list[Callable[[], Any]] = [
        partial(find, tenant.repository, endpoint_id),
        lambda: partition(sort=endpoint_id, consistent=True) if is_endpoint_id(endpoint_id) else None,
    ]

    def plan(found: list[Any]) -> _Planned:
        item, stored = found
        if stored is None:
            raise NotFound(gettext("There is no such endpoint."))
        if version is not None and item.version != version:
            raise Conflict(
                gettext("This secret has just been replaced, or the endpoint was changed. Please check and try again.")
            )
        old = _old(stored)
        if len(old) >= MOST_OLD:
            ends = clock.parse(min(until for until, _ in old))
            raise Conflict(
                gettext(
                    "This secret was replaced %(most)s times within 24 hours, and deliveries are still signed with "
                    "each old one. You can replace it again after %(when)s."
                )
                % {"most": MOST_OLD, "when": locales.current().exact(ends, seconds=True)}
            )
        item.rotated_at = clock.stamp(now)
        transaction = _updated(item, [EndpointItem.rotated_at.set(item.rotated_at)])
        transaction.put(
            SecretItem(
                tenant.tenant_id,
                endpoint_id,
                current=secret,
                previous=stored.current,
                previous_until=clock.stamp(now + OVERLAP),
                earlier=[" ".join(one) for one in old],
            ).with_unknown_of(stored)
        )
        return _Planned(ChangedEndpoint(item, secret), (transaction, _entry(item, AuditAction.WEBHOOK_ROTATED, by)))

    return _commit(tenant, partial(fan_out, reads), plan, companion).item, secret


def _entry(item: EndpointItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    return AuditEntry(item.tenant_id, action, by, "webhook", item.endpoint_id, item.url, **values)


def _shown(item: EndpointItem) -> dict[str, str]:
    return {"address": item.url, "description": item.description, "events": ", ".join(item.event_types)}


def _updated(item: EndpointItem, actions: Sequence[Any]) -> Transaction:
    """Return the transaction that updates an endpoint if it is still the one that was read.

    The item gets the version that it has then.
    """
    transaction = Transaction()
    unchanged, item.version = EndpointItem.version == int(item.version), int(item.version) + 1
    key, grown = EndpointItem(item.tenant_id, item.endpoint_id), EndpointItem.version.set(item.version)
    transaction.update(key, [*actions, grown], condition=unchanged, name=_ENDPOINT)
    return transaction


def _commit(
    tenant: TenantContext,
    read: Callable[[], _T],
    plan: Callable[[_T], _Planned],
    companion: _Companion = None,
    *,
    lacks: Callable[[_T, frozenset[str]], bool] = lambda found, subscribed: False,
) -> ChangedEndpoint:
    """Read, write what `plan` makes of it, and return the endpoint. Raises Conflict, and what both raise.

    `lacks` tells that what was read is older than the tenant's item, by the ids of the endpoints subscribed there: then
    it is read again.
    """
    waiting = [companion]  # for the first attempt, beside whose reads it does its part
    told = list[ChangedEndpoint]()

    def build() -> ReadChange | None:
        reads: list[Callable[[], Any]] = [read, partial(tenant_directory.get, tenant.tenant_id)]
        found, stored = with_companion(waiting.pop() if waiting else None, lambda: fan_out(reads))
        subscribers = chain.from_iterable(json.loads(stored.subscriptions or "{}").values())
        if lacks(found, frozenset(subscribers)):  # what is read at once need not be of one moment
            found = read()
        planned = plan(found)
        told[:] = [planned.told]
        if planned.change is None:
            return None
        transaction, row = planned.change
        if planned.subscribe is not None:
            _subscribe(transaction, stored, planned.told.item.endpoint_id, planned.subscribe)
        if tenant.user_id:  # a worker that pauses an endpoint is nobody's
            member_changes.require_role(transaction, tenant)
        if companion is not None:
            companion.join(transaction, planned.told)
        return transaction, [row]

    try:
        recording.commit_read(tenant.tenant_id, build, depending=(_SUBSCRIPTIONS,))
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        member_changes.blame_standing(tenant, refused)
        raise Overtaken(gettext(_CHANGED)) from refused
    return told[0]


def _subscribe(transaction: Transaction, stored: TenantItem, endpoint_id: str, types: Sequence[str]) -> None:
    text = _subscribed(stored.subscriptions, endpoint_id, types)
    now = TenantItem.subscriptions.set(text) if text else TenantItem.subscriptions.remove()
    seen = TenantItem.subscriptions
    unmoved = seen == stored.subscriptions if stored.subscriptions else seen.does_not_exist()
    condition = unmoved & TenantItem.tenant_id.exists()
    transaction.update(TenantItem(stored.tenant_id), [now], condition=condition, name=_SUBSCRIPTIONS)


def _subscribed(text: str | None, endpoint_id: str, types: Sequence[str]) -> str:
    """Return the tenant's subscriptions as JSON, "" for none, with those of one endpoint replaced by these types."""
    subscriptions: dict[str, list[str]] = json.loads(text) if text else {}
    for name in {*subscriptions, *types}:
        others = [other for other in subscriptions.get(name, ()) if other != endpoint_id]
        subscriptions[name] = sorted([*others, endpoint_id]) if name in types else others
    kept = {name: ids for name, ids in sorted(subscriptions.items()) if ids}
    return json.dumps(kept, separators=(",", ":")) if kept else ""


def _places(person: DeskPerson, names: Collection[str], endpoint: EndpointItem) -> Iterator[PersonalPlace]:
    if person.mail.is_in(endpoint.description):
        yield PersonalPlace(gettext_noop("endpoint, its description"), is_text=True, excerpt=endpoint.description)
    if person.mail.is_in(endpoint.url):
        yield PersonalPlace(gettext_noop("endpoint, its address"), is_text=True, excerpt=endpoint.url, stays=True)


def _replace(tenant: TenantContext, new: NewName, endpoint: EndpointItem) -> None:
    shown = EndpointItem.description.set(new.person.mail.replaced(endpoint.description, new.name)[:DESCRIPTION_LIMIT])
    tenant.repository.update(endpoint, [shown], condition=EndpointItem.version == endpoint.version)


PEOPLE: Final = PersonalData(lambda tenant, person: listed(tenant.repository), _places, _replace)
