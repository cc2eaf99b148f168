"""Let operators decide about letters to addresses that no desk has: hand one to a desk, or discard it.

An operator sees when a letter came, its size and the addresses that it was sent to, and no word of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Invalid, NotFound
from portal.objects.object_store import ListedObject, ObjectStore
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy.stored import TenantItem
from tickets.letters import arrival, desk_addresses, envelope
from tickets.letters.stored import UNCLAIMED

SHOWN: Final = 50
LOOKED_AT: Final = 1000  # objects of the bucket: one request
_LETTERS: Final = "letters to no desk"


@dataclass(frozen=True)
class UnclaimedLetter:
    """A letter to no desk. `size` is in bytes, `at` a stamp."""

    name: str
    at: str
    size: int
    recipients: tuple[str, ...]


def newest() -> tuple[list[UnclaimedLetter], bool]:
    """Return the newest letters to no desk, and whether there are more: a list, and a request for each that is shown.

    The bucket lists them by their names, so of more than LOOKED_AT the newest of those are returned.
    """
    found = list(islice(ObjectStore("delivery").list(UNCLAIMED), LOOKED_AT + 1))
    found.sort(key=lambda one: one.changed_at, reverse=True)
    letters = fan_out([partial(_read, one) for one in found[:SHOWN]])
    return [one for one in letters if one is not None], len(found) > SHOWN


def _read(found: ListedObject) -> UnclaimedLetter | None:
    name = found.key.removeprefix(UNCLAIMED)
    try:
        about = envelope.read_about(name, ObjectStore("delivery").about(found.key))
    except (NotFound, ValueError):  # somebody has just decided about it, or it was put there by hand
        return None
    return UnclaimedLetter(name, clock.stamp(found.changed_at), found.size, about.recipients)


def desk_named(name: str) -> TenantItem:
    """Return the desk that takes letters under this name. Raises Invalid."""
    tenant = desk_addresses.desk_named(name.strip().lower()) if name.strip() else None
    if tenant is None:
        raise Invalid(_("No desk has this name, or it is closing and takes no letters."), field="desk")
    return tenant


def deliver(names: Sequence[str], tenant: TenantItem, *, reason: str, by: Actor) -> int:
    """Hand letters to a desk, whose audit trail tells why, and return how many there were still.

    The letter goes from here last: one whose way was cut short can be handed on again, and is filed once.
    """
    store, handed = ObjectStore("delivery"), 0
    for name in names:
        with suppress(NotFound, ValueError):
            raw, about = store.get_with_about(UNCLAIMED + name, most=arrival.MOST_BYTES)
            found = envelope.read_about(name, about)
            told = {"to": ", ".join(found.recipients), "reason": reason}
            recording.record(
                AuditEntry(tenant.tenant_id, AuditAction.LETTER_DELIVERED, by, "letter", name, name, {}, told)
            )
            arrival.give(tenant, found, raw)
            store.delete(UNCLAIMED + name)
            handed += 1
    return handed


def discard(names: Sequence[str], *, reason: str, by: Actor) -> int:
    """Delete letters, with one row in the platform's audit trail, and return how many there were still."""
    store = ObjectStore("delivery")
    there = [name for name in names if _is_there(store, name)]
    if there:
        told = {"letters": len(there), "reason": reason}
        recording.record(
            AuditEntry(
                recording.PLATFORM, AuditAction.LETTERS_DISCARDED, by, "letters", "unclaimed", _LETTERS, {}, told
            )
        )
    for name in there:
        store.delete(UNCLAIMED + name)
    return len(there)


def _is_there(store: ObjectStore, name: str) -> bool:
    return "/" not in name and bool(name) and store.size(UNCLAIMED + name) is not None
