"""The four roles of members, each including the ones below: owner > admin > agent > viewer; and the auditor.

An auditor is no member: a named outsider who sees, for a time, the pages that are marked for auditors, and nothing
else. The role has no place in the order, so that no page that asks for any role of members lets one in.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from django.utils.translation import gettext, gettext_noop

_ORDER = ("viewer", "agent", "admin", "owner")
_LABELS = {
    "auditor": gettext_noop("Auditor"),
    "viewer": gettext_noop("Viewer"),
    "agent": gettext_noop("Agent"),
    "admin": gettext_noop("Admin"),
    "owner": gettext_noop("Owner"),
}
_NOUNS = {
    "auditor": gettext_noop("an auditor"),
    "viewer": gettext_noop("a viewer"),
    "agent": gettext_noop("an agent"),
    "admin": gettext_noop("an admin"),
    "owner": gettext_noop("an owner"),
}
_ABILITIES = {
    "auditor": gettext_noop("read the audit trail and its proofs, and no tickets"),
    "viewer": gettext_noop("read tickets"),
    "agent": gettext_noop("work on tickets"),
    "admin": gettext_noop("work on tickets and manage members"),
    "owner": gettext_noop("do everything, including changing the desk's settings"),
}


class Role(StrEnum):
    VIEWER = "viewer"  # reads tickets, not internal notes
    AGENT = "agent"  # works tickets
    ADMIN = "admin"  # runs the tenant
    OWNER = "owner"  # the last one cannot leave
    AUDITOR = "auditor"  # reads the audit pages, for a time

    def at_least(self, other: Role) -> bool:
        """Tell whether this role includes the other one. Only owners include the auditor, and an auditor no member."""
        if Role.AUDITOR in (self, other):
            return other is Role.AUDITOR and self in (Role.AUDITOR, Role.OWNER)
        return _ORDER.index(self) >= _ORDER.index(other)

    @property
    def abilities(self) -> str:
        """Return what people of this role can do, as the rest of a sentence that begins with "can"."""
        return gettext(_ABILITIES[self.value])

    @property
    def label(self) -> str:
        return gettext(_LABELS[self.value])

    @property
    def with_article(self) -> str:
        """Return the role as a noun in a sentence: "an agent", "a viewer"."""
        return gettext(_NOUNS[self.value])


MEMBER_ROLES: Final = tuple(role for role in Role if role is not Role.AUDITOR)
