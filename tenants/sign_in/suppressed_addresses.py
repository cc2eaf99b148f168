"""Know the addresses that mail does not reach: it bounced for good, or somebody there reported it as unwanted.

Nothing is mailed to such an address until an operator clears it. It stores a hash of the address, with time and reason:
an address can be looked up, but not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Invalid, NotFound
from portal.schema import keys as schema_keys
from portal.streams.worker import WORKER
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.sign_in.stored import SuppressedItem, folded, suppressed_key

WHY_LIMIT: Final = 300  # characters
_ADDRESS: Final = "address"  # names a member of a transaction


def of(addresses: Iterable[str]) -> dict[str, SuppressedItem]:
    """Return what is known of these addresses, up to 100, by address as given: one BatchGetItem."""
    return _read(list(addresses), PLATFORM.get_all)


def read_by_worker(addresses: Iterable[str]) -> dict[str, SuppressedItem]:
    """Do the same as who carries mail, consistently."""
    return _read(list(addresses), partial(WORKER.get_all, consistent=True))


def _read(addresses: Sequence[str], get_all: Callable[[list[Any]], Iterable[Any]]) -> dict[str, SuppressedItem]:
    keyed = {address: key for address in addresses if (key := _key(address))}
    wanted = list(dict.fromkeys(keyed.values()))
    if not wanted:
        return {}
    stored = dict(zip(wanted, get_all([(SuppressedItem, key, None) for key in wanted]), strict=True))
    return {address: item for address, key in keyed.items() if (item := stored[key]) is not None}


def note(address: str, *, kind: str, why: str, at: str = "") -> bool:
    """Send nothing more to an address, as who carries mail: one PutItem. False for what is no address."""
    key = _key(address)
    if key:
        WORKER.put(SuppressedItem(key, kind=kind, why=why[:WHY_LIMIT], at=at or clock.stamp()))
    return bool(key)


def clear(address: str, *, by: Actor) -> None:
    """Let mail go to an address again, which an operator does. Raises Invalid, and NotFound where it goes anyway."""
    key = _key(address)
    if not key:
        raise Invalid(_("That is not an e-mail address."), field="email")
    transaction = Transaction()
    transaction.delete(SuppressedItem(key), condition=SuppressedItem.pk.exists(), name=_ADDRESS)
    entity_id = schema_keys.anonymous(folded(address))
    entry = AuditEntry(recording.PLATFORM, AuditAction.ADDRESS_CLEARED, by, "address", entity_id, folded(address))
    recording.commit(transaction, [entry], refused=NotFound(_("Nothing keeps mail from this address.")))


def _key(address: str) -> str:
    try:
        return suppressed_key(address)
    except ValueError:
        return ""
