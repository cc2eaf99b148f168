"""Let a member follow a ticket, or mute it. Both are kept in the ticket's summary, so that nothing else has to be read.

Somebody who mutes a ticket hears nothing of it, also as its assignee or where they are mentioned. To follow it again
ends that.

A link by which somebody stops mail without signing in holds desk, person, and what it mutes. It does not expire: mail
is kept for years. Its page changes nothing until its button is pressed, since mail scanners open links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from django.core import signing
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.store import Action
from portal.errors import ConditionFailed, Conflict, NotFound
from portal.schema import keys
from tenants.membership import members
from tenants.membership.mail_choices import MailedReport, MailKind
from tenants.tenancy.context import TenantContext
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem

MOST_FOLLOWERS: Final = 50  # of a ticket: each adds 32 bytes to its summary
MOST_MUTES: Final = 200
TOO_MANY_FOLLOW: Final = gettext_noop("At most %(most)s people can follow a ticket.")
TOO_MANY_MUTE: Final = gettext_noop(
    "At most %(most)s people can mute a ticket. Turn off this kind of mail on your account page."
)


def follow(tenant: TenantContext, number: int, user_id: str) -> None:
    """Let a member hear of each comment. Raises NotFound, and Conflict above MOST_FOLLOWERS. One write."""
    actions = [SummaryItem.followers.add({user_id}), SummaryItem.muted_by.delete({user_id})]
    room = stored.may_join(SummaryItem.followers, user_id, most=MOST_FOLLOWERS)
    _write(tenant, number, actions, room, _(TOO_MANY_FOLLOW) % {"most": MOST_FOLLOWERS})


def unfollow(tenant: TenantContext, number: int, user_id: str) -> None:
    """End that somebody follows a ticket, or mutes it. Raises NotFound. One write."""
    _write(tenant, number, [SummaryItem.followers.delete({user_id}), SummaryItem.muted_by.delete({user_id})])


def mute(tenant: TenantContext, number: int, user_id: str) -> None:
    """Let somebody hear nothing of a ticket. Raises NotFound, and Conflict above MOST_MUTES. One write."""
    actions = [SummaryItem.muted_by.add({user_id}), SummaryItem.followers.delete({user_id})]
    room = stored.may_join(SummaryItem.muted_by, user_id, most=MOST_MUTES)
    _write(tenant, number, actions, room, _(TOO_MANY_MUTE) % {"most": MOST_MUTES})


def follow_as(tenant: TenantContext, number: int, user_id: str) -> None:
    """Let a system of the desk make a member follow a ticket. A mute stays: that is the member's own.

    Raises NotFound for who is no member, and what `follow` does. One read and one write.
    """
    if members.member(tenant.repository, user_id) is None:
        raise NotFound(_("There is no such member."))
    room = stored.may_join(SummaryItem.followers, user_id, most=MOST_FOLLOWERS)
    _write(tenant, number, [SummaryItem.followers.add({user_id})], room, _(TOO_MANY_FOLLOW) % {"most": MOST_FOLLOWERS})


def unfollow_as(tenant: TenantContext, number: int, user_id: str) -> None:
    """Let a system of the desk end that a person follows a ticket; a mute stays. Raises NotFound. One write."""
    _write(tenant, number, [SummaryItem.followers.delete({user_id})])


def _write(tenant: TenantContext, number: int, actions: list[Action], room: Any = None, full: str = "") -> None:
    condition = SummaryItem.pk.exists()
    try:
        tenant.repository.update(
            SummaryItem(tenant.repository.key(stored.ticket, number), stored.SUMMARY),
            actions,
            condition=condition if room is None else condition & room,
        )
    except ConditionFailed as refused:
        if refused.stored(SummaryItem) is None:
            raise NotFound(_("There is no ticket %(number)s.") % {"number": number}) from refused
        raise Conflict(full) from refused


_SALT: Final = "tickets.notices.mute"
# No MailKind has these values, and mails that were sent have them.
_REPORTS: Final = {report.value.replace("_", " "): report for report in MailedReport}


@dataclass(frozen=True)
class MuteLink:
    """Say what a link mutes for a person: the ticket of this `number`, this `kind` of mail, or a report."""

    tenant_id: str
    user_id: str
    number: int = 0
    kind: MailKind | None = None
    report: MailedReport | None = None

    @property
    def token(self) -> str:
        """Return it signed, for an address."""
        report = next((text for text, report in _REPORTS.items() if report is self.report), None)
        what = report or (self.kind.value if self.kind else self.number)
        return signing.dumps([self.tenant_id, self.user_id, what], salt=_SALT)

    @classmethod
    def read(cls, token: str) -> Self | None:
        """Return what `token` gave; None for anything else, such as a link that a mail program has cut."""
        try:
            tenant_id, user_id, what = signing.loads(token, salt=_SALT)
            if isinstance(what, int):
                return cls(keys.tenant(tenant_id), user_id, number=what)
            if what in _REPORTS:
                return cls(keys.tenant(tenant_id), user_id, report=_REPORTS[what])
            return cls(keys.tenant(tenant_id), user_id, kind=MailKind(what))
        except (signing.BadSignature, ValueError):
            return None
