"""Write on a comment how the letter fared that it became: held, sent, bounced, complained.

Held: it waits in the outbox, or is tried again. Sent: a carrier has taken it. Bounced: it was refused or came back.
Complained: somebody there reported it as unwanted. The later ones stay where an earlier one comes after them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.mail.bounces import Feedback
from portal import clock, plain_text
from portal.dynamo.store import Action
from portal.errors import ConditionFailed, NotFound
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, timelines
from tickets.replies import message_ids
from tickets.replies.message_ids import Thread
from tickets.replies.reply_addresses import SentLetter
from tickets.requesters import bounced_addresses, requesters
from tickets.ticket import stored
from tickets.ticket.fields import REQUESTER
from tickets.ticket.stored import BOUNCED, COMPLAINED, HELD, SENT, ActivityItem

ABOUT: Final = "reply_"  # what the tag of a letter begins with, by which its carrier says what came of it
COPY_FAILED: Final = gettext_noop("A copy was not delivered:")
_RETURNED: Final = gettext_noop("It came back.")
NOTE_LIMIT: Final = 200  # characters
_ADDRESS: Final = re.compile(r"<?[^\s<>@]+@[^\s<>@]+>?")
_OVER: Final = {HELD: (HELD,), SENT: (HELD, SENT), BOUNCED: (HELD, SENT), COMPLAINED: (HELD, SENT, BOUNCED)}


def mark(tenant: TenantContext, number: int, sort: str, state: str, *, note: str = "") -> bool:
    """Write the state on the entry with this sort key; False where it is none that became a letter, or is further.

    `note` says why, and is stored without addresses, so that a person who is erased is not named here. Costs one
    UpdateItem.
    """
    entry = ActivityItem(tenant.repository.key(stored.ticket, number), sort)
    delivery = ActivityItem.delivery
    actions: list[Action] = [delivery.set(state), ActivityItem.delivery_at.set(clock.stamp())]
    shown = _ADDRESS.sub("(address)", note)[:NOTE_LIMIT]
    actions.append(ActivityItem.delivery_note.set(shown) if shown else ActivityItem.delivery_note.remove())
    before: Any = delivery.is_in(*_OVER[state])
    with suppress(ConditionFailed):
        tenant.repository.update(entry, actions, condition=before)
        return True
    return False


def hold_again(tenant: TenantContext, number: int, sort: str) -> None:
    """Let a letter that was given up wait once more, which an operator wishes who sends it again."""
    entry = ActivityItem(tenant.repository.key(stored.ticket, number), sort)
    again: list[Action] = [ActivityItem.delivery.set(HELD), ActivityItem.delivery_at.set(clock.stamp())]
    with suppress(ConditionFailed):
        tenant.repository.update(entry, again, condition=ActivityItem.delivery == BOUNCED)


# --- what carriers and other mail servers report later ---


def tag_of(number: int, entry: str) -> str:
    """Return what the tag of a letter says that it is about. `entry` is that of its Message-ID."""
    return f"{ABOUT}{number}_{entry}"


def take(feedback: Feedback) -> None:
    """Note what Amazon SES says of a letter: on the comment, and on the person whose address it was."""
    about, _, entry = feedback.about.removeprefix(ABOUT).partition("_")
    number = plain_text.whole_number(about, digits=15)
    if not number:
        return
    try:
        tenant = context.for_system(tenant_directory.get(feedback.tenant_id))
    except NotFound:
        return  # the desk was purged meanwhile
    thread = Thread(feedback.tenant_id, number, entry)
    for address, why in feedback.addresses.items():
        note_report(tenant, thread, address=address, why=why, complained=feedback.kind == "complained")


def note_returned(tenant: TenantContext, sent: SentLetter, *, address: str, why: str, complained: bool = False) -> None:
    """Note a report that came to the return address of a letter. Costs what `note_report` does, and the read of the
    ticket's newest entries, among which the letter is."""
    if sent.tenant_id != tenant.tenant_id:
        return
    try:
        activity = timelines.ticket(tenant, sent.number).activity
    except NotFound:
        return
    entries = (message_ids.entry_of(one.sk) for one in activity if one.delivery)
    entry = next((one for one in entries if sent.is_about(one)), "")
    later = (item for item in activity if item.sk > (message_ids.sort_of(entry) or ""))
    if any(change.field == REQUESTER for item in later for change in item.changes):
        return  # the letter went to somebody whose ticket it was before, and who has its return address
    thread = Thread(sent.tenant_id, sent.number, entry)
    note_report(tenant, thread, address=address, why=why, complained=complained)


def note_report(tenant: TenantContext, thread: Thread, *, address: str, why: str, complained: bool = False) -> None:
    """Note that a letter of this thread did not reach an address, or is unwanted there.

    `thread` is that of the letter, by Amazon SES or by the signed address that the report came to. It is
    believed about the addresses that the letter went to, and about no other. One about the acknowledgement of a ticket,
    or about a copy, leaves the state of the comment. Costs up to five GetItems and three writes.
    """
    if thread.tenant_id != tenant.tenant_id:
        return
    try:
        summary = changing.read(tenant, thread.number)
    except NotFound:
        return
    person = requesters.find(tenant, summary.requester)
    told, sort = address.strip().lower(), message_ids.sort_of(thread.entry)
    if person is not None and told in person.addresses:
        bounced_addresses.note(tenant, told, why or _RETURNED)
        if sort:
            mark(tenant, thread.number, sort, COMPLAINED if complained else BOUNCED, note=why)
        return
    entry = tenant.repository.get(ActivityItem, stored.ticket, thread.number, sort=sort) if sort else None
    if sort and entry and told in (entry.cc or ()):
        bounced_addresses.note(tenant, told, why or _RETURNED)
        mark(tenant, thread.number, sort, SENT, note=f"{COPY_FAILED} {why}")
