"""Keep which kinds of mail a member does not want from a desk. Without a choice, all are sent."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, NotFound
from portal.schema import keys
from tenants.membership.stored import MemberItem


class MailKind(StrEnum):
    """The kinds of mail about tickets that a desk sends to its members."""

    ASSIGNED = "assigned"
    MENTIONED = "mentioned"
    ENTERED = "entered"
    RATED = "rated"

    @property
    def label(self) -> str:
        """Name the occasion, for a checkbox."""
        return _LABELS[self]


_LABELS = {
    MailKind.ASSIGNED: "A ticket is assigned to me",
    MailKind.MENTIONED: "Somebody mentions me with @ and my name",
    MailKind.ENTERED: "Somebody comments on a ticket that is assigned to me or that I follow",
    MailKind.RATED: "A requester rates such a ticket as bad",
}


def unwanted(repository: Store, user_id: str) -> frozenset[MailKind]:
    """Return which kinds a member does not want: one read."""
    item = repository.get(MemberItem, keys.tenant, sort=user_id, consistent=True)
    return of_item(item) if item else frozenset()


def of_item(item: MemberItem) -> frozenset[MailKind]:
    """Return which kinds a member does not want. Kinds that this version does not know are left out."""
    return frozenset(MailKind(kind) for kind in item.unwanted_mail or () if kind in list(MailKind))


def choose(repository: Store, user_id: str, wanted: Collection[MailKind]) -> None:
    """Let a member get these kinds of mail, and no others. Raises NotFound for who is no member. One write."""
    refused = {kind.value for kind in MailKind if kind not in wanted}
    action = MemberItem.unwanted_mail.set(refused) if refused else MemberItem.unwanted_mail.remove()
    _update(repository, user_id, action)


def refuse(repository: Store, user_id: str, kind: MailKind) -> None:
    """Let a member not get this kind of mail any more. Raises NotFound for who is no member. One write."""
    _update(repository, user_id, MemberItem.unwanted_mail.add({kind.value}))


def allow(repository: Store, user_id: str, kind: MailKind) -> None:
    """Let a member get this kind of mail again. Raises NotFound for who is no member. One write."""
    _update(repository, user_id, MemberItem.unwanted_mail.delete({kind.value}))


def _update(repository: Store, user_id: str, action: object) -> None:
    try:
        # A member's own item holds the role, too: only the platform changes it.
        PLATFORM.update(
            MemberItem(repository.tenant_id, user_id),
            [action],  # type: ignore[list-item]  # PynamoDB leaves its actions untyped
            condition=MemberItem.user_id.exists(),
        )
    except ConditionFailed as error:
        raise NotFound("There is no such member.") from error
