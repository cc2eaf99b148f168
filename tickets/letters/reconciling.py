"""Compare the bucket with the ledger: each letter that came is filed, refused, automatic or waiting, and none is lost.

Letters are left behind where a message was lost or a worker died at a bad moment. They are handed on again as if they
had just come, which changes nothing for those that were filed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from portal import clock
from portal.objects.object_store import ListedObject, ObjectStore
from tenants.tenancy import context, tenant_directory
from tickets.letters import arrival, ledger, posting, stored
from tickets.letters.envelope import Envelope
from tickets.letters.stored import INCOMING, UNCLAIMED

GRACE: Final = timedelta(minutes=5)  # in which a letter is on its way and not left behind
HAND_ON_GRACE: Final = timedelta(hours=1)  # the same of one that no desk has yet: those of a flood are put off
LOOKED_BACK: Final = timedelta(days=7)
_SLACK: Final = timedelta(days=1)  # by which a letter's arrival may be before its object was written


@dataclass
class LettersFound:
    """Count the letters that were looked at, and those that are handed on again. `recounted` is by how much the number
    of those that wait was wrong."""

    letters: int = 0
    asked: int = 0
    recounted: int = 0


def desk(tenant_id: str, *, grace: timedelta = GRACE, looked_back: timedelta = LOOKED_BACK) -> LettersFound:
    """Find the letters of a desk that are in the bucket and not in the ledger, and let them be filed. Count those that
    wait anew.

    Costs a list of the bucket for each 1,000 letters of the desk, a Query for each megabyte of the ledger's rows of the
    last days and for those that wait, and a message for each letter that was left behind.
    """
    tenant, now, found = tenant_directory.get(tenant_id), clock.now(), LettersFound()
    repository = context.for_system(tenant).repository
    known = ledger.objects_since(repository, clock.stamp(now - looked_back - _SLACK))
    for one in ObjectStore("tenant", tenant_id).list(stored.raw_prefix(tenant_id)):
        if now - looked_back <= one.changed_at:
            found.letters += 1
            name = one.key.rpartition("/")[2]
            if name not in known and one.changed_at <= now - grace:
                arrival.ask(tenant, name)
                found.asked += 1
    found.recounted = ledger.recount(repository)
    return found


def arrived(*, grace: timedelta = HAND_ON_GRACE) -> LettersFound:
    """Find the letters that nobody has handed to a desk, and tell of them again.

    The notification had the envelope, so of a letter whose notification is lost only that recipient is known whom the
    receiving server has written into its first line, and its sender is not confirmed.
    """
    store, found = ObjectStore("delivery"), LettersFound()
    for one in _old(store, grace):
        found.letters += 1
        raw = store.get(one.key, most=arrival.MOST_BYTES)
        name, at = one.key.removeprefix(INCOMING), clock.stamp(one.changed_at)
        posting.tell(Envelope(name, "", arrival.recipients_in(raw), at), one.key)
        found.asked += 1
    return found


def _old(store: ObjectStore, grace: timedelta) -> Iterator[ListedObject]:
    before = clock.now() - grace
    return (one for one in store.list(INCOMING) if one.changed_at <= before)


def unclaimed() -> list[ListedObject]:
    """Return the letters to addresses that no desk has."""
    return [*ObjectStore("delivery").list(UNCLAIMED)]
