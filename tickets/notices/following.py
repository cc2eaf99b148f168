"""Let a member follow a ticket, or mute it. Both are kept in the ticket's summary, so that nothing else has to be read.

Somebody who mutes a ticket hears nothing of it, also as its assignee or where they are mentioned. To follow it again
ends that.
"""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.store import Action
from portal.errors import ConditionFailed, Conflict, NotFound
from tenants.membership import members
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
