"""Sessions: their sign-ins in the audit trail, a person's list of them, and the end of one from elsewhere.

A sign-in is written when a session enters a tenant, in that tenant's trail; a refused one in the platform's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import NotFound
from portal.nosql.stored import SessionItem
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.sign_in import accounts, attempt_limits

REFUSALS_LISTED: Final = 100  # refused sign-ins of one window that get a row each
_GONE: Final = gettext_noop("This session has ended already.")
# Product tokens of a User-Agent header with the browser's name, and systems, in an order in which the first that
# occurs is right: Chrome on an iPhone says CriOS and Safari, Edge says Chrome and Safari too.
_BROWSERS: Final = {
    "EdgiOS": "Edge", "EdgA": "Edge", "Edg": "Edge", "OPT": "Opera", "OPR": "Opera",
    "SamsungBrowser": "Samsung Internet", "FxiOS": "Firefox", "Firefox": "Firefox",
    "CriOS": "Chrome", "Chrome": "Chrome", "Safari": "Safari",
}  # fmt: skip
_SYSTEMS: Final = {
    "Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac OS": "macOS",
    "CrOS": "ChromeOS", "Linux": "Linux",
}  # fmt: skip


def started(tenant_id: str, *, by: Actor) -> None:
    recording.record(AuditEntry(tenant_id, AuditAction.SESSION_STARTED, by, "user", by.id, by.email))


def refused(address: str, *, origin: str) -> None:
    """Write a row of a refused sign-in: a wrong password, or an address without an account, it does not tell which.

    Of one window there are REFUSALS_LISTED rows at most, however many networks take part in an attack; the last one
    says so.
    """
    count = attempt_limits.count_refusal()
    if count > REFUSALS_LISTED:
        return
    address = accounts.normal_address(address)
    by = Actor("anonymous", "", origin)
    after = {"note": "Further refusals of these minutes are not listed."} if count == REFUSALS_LISTED else {}
    row = AuditEntry(recording.PLATFORM, AuditAction.SESSION_REFUSED, by, "address", keys.anonymous(address), address)
    recording.record(replace(row, after=after))


def end(user_id: str, *, session_id: str, by: Actor) -> None:
    """End one session of this person, at its browser's next click. `session_id` is as `keys.session` makes it.

    Raises NotFound where there is no such session, or it is somebody else's.
    """
    is_id = keys.USER_ID.match(session_id)
    stored = PLATFORM.get(SessionItem, session_id, consistent=True) if is_id else None
    if stored is None or stored.user_id != user_id:
        raise NotFound(_(_GONE))
    person = accounts.find_by_id(user_id)
    before = {"started": stored.started_at or "", "address": stored.address or "", "browser": stored.agent or ""}
    name = person.email if person else ""
    transaction = Transaction()
    transaction.delete(SessionItem(session_id), condition=SessionItem.user_id == user_id)
    entry = AuditEntry.of_user(user_id, name, AuditAction.SESSION_ENDED, by, before=before)
    recording.commit(transaction, [entry], refused=NotFound(_(_GONE)))


def browser_of(agent: str) -> str:
    """Return what people call the browser of a User-Agent header: "Firefox on Windows"."""
    browser = next((name for token, name in _BROWSERS.items() if f"{token}/" in agent), "")
    system = next((name for token, name in _SYSTEMS.items() if token in agent), "")
    return (
        _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
        if browser and system
        else browser or system or agent[:40] or _("Unknown browser")
    )
