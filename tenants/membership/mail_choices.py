"""Keep of which kinds of events a desk tells a member, in the inbox and by mail. Without a choice, of all, and at once.

MailKind is the one registry of these kinds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action, Store
from portal.errors import ConditionFailed, NotFound
from portal.schema import keys
from tenants.membership.stored import MemberItem


class MailKind(StrEnum):
    """The kinds of events of tickets that a desk tells its members of."""

    ASSIGNED = "assigned"
    MENTIONED = "mentioned"
    ENTERED = "entered"
    RATED = "rated"
    DUE = "due"
    BREACHED = "breached"

    @property
    def label(self) -> str:
        """Name the occasion, for a checkbox."""
        return _(_LABELS[self])

    @property
    def word(self) -> str:
        """Name the kind in a list of events."""
        return _(_WORDS[self])


_LABELS = {
    MailKind.ASSIGNED: gettext_noop("A ticket is assigned to me"),
    MailKind.MENTIONED: gettext_noop("Somebody mentions me with @ and my name"),
    MailKind.ENTERED: gettext_noop("Somebody comments on a ticket that is assigned to me or that I follow"),
    MailKind.RATED: gettext_noop("A requester rates such a ticket as bad"),
    MailKind.DUE: gettext_noop("A ticket comes back that waited for a time that I chose"),
    MailKind.BREACHED: gettext_noop("A target of a ticket that is assigned to me is missed, or soon will be"),
}
_WORDS = {
    MailKind.ASSIGNED: gettext_noop("Assigned to you"),
    MailKind.MENTIONED: gettext_noop("You were mentioned"),
    MailKind.ENTERED: gettext_noop("New comment"),
    MailKind.RATED: gettext_noop("Rated as bad"),
    MailKind.DUE: gettext_noop("Due now"),
    MailKind.BREACHED: gettext_noop("Target missed or due soon"),
}


class MailedReport(StrEnum):
    """The reports that a desk mails to members who ask for them. A value is the attribute of the choice."""

    WEEKLY = "weekly_report"
    MONTHLY = "monthly_letter"

    @property
    def label(self) -> str:
        """Name the occasion, as a MailKind does."""
        return _("A week is over: its numbers") if self is MailedReport.WEEKLY else _("A month is over: its letter")


@dataclass(frozen=True)
class Choices:
    """Hold of what a member does not want to be told. `digest_hour` is when one mail a day is sent, None for mail at
    once. `reports` are those that they want."""

    unwanted_mail: frozenset[MailKind] = frozenset()
    unwanted_notices: frozenset[MailKind] = frozenset()
    digest_hour: int | None = None
    reports: frozenset[MailedReport] = frozenset()


def chosen(repository: Store, user_id: str) -> Choices:
    """Return the choices of a member: one read."""
    item = repository.get(MemberItem, keys.tenant, sort=user_id, consistent=True)
    return of_item(item) if item else Choices()


def of_item(item: MemberItem) -> Choices:
    """Return the choices of a member. Kinds that this version does not know are left out."""
    hour = item.digest_hour
    return Choices(
        _known(item.unwanted_mail),
        _known(item.unwanted_notices),
        None if hour is None else int(hour),
        frozenset(report for report in MailedReport if getattr(item, report.value)),
    )


def _known(kinds: Collection[str] | None) -> frozenset[MailKind]:
    return frozenset(MailKind(kind) for kind in kinds or () if kind in list(MailKind))


def choose(
    repository: Store,
    user_id: str,
    mail: Collection[MailKind],
    notices: Collection[MailKind] = tuple(MailKind),
    digest_hour: int | None = None,
) -> None:
    """Let a member get these kinds of mail and notices, and no others. Raises NotFound for who is no member. One
    write."""
    actions = []
    for attribute, wanted in ((MemberItem.unwanted_mail, mail), (MemberItem.unwanted_notices, notices)):
        refused = {kind.value for kind in MailKind if kind not in wanted}
        actions.append(attribute.set(refused) if refused else attribute.remove())
    hour = MemberItem.digest_hour
    _update(repository, user_id, *actions, hour.remove() if digest_hour is None else hour.set(digest_hour))


def refuse(repository: Store, user_id: str, kind: MailKind) -> None:
    """Let a member not get this kind of mail any more. Raises NotFound for who is no member. One write."""
    _update(repository, user_id, MemberItem.unwanted_mail.add({kind.value}))


def allow(repository: Store, user_id: str, kind: MailKind) -> None:
    """Let a member get this kind of mail again. Raises NotFound for who is no member. One write."""
    _update(repository, user_id, MemberItem.unwanted_mail.delete({kind.value}))


def want_report(repository: Store, user_id: str, report: MailedReport, *, wanted: bool) -> None:
    """Let a member get a report by mail, or not. Raises NotFound for who is no member. One write."""
    attribute = getattr(MemberItem, report.value)
    _update(repository, user_id, attribute.set(1) if wanted else attribute.remove())


def _update(repository: Store, user_id: str, *actions: Action) -> None:
    try:
        # A member's own item holds the role, too: only the platform changes it.
        PLATFORM.update(
            MemberItem(repository.tenant_id, user_id),
            [*actions],
            condition=MemberItem.user_id.exists(),
        )
    except ConditionFailed as error:
        raise NotFound(_("There is no such member.")) from error
