"""The four roles, each including the ones below: owner > admin > agent > viewer."""

from __future__ import annotations

from enum import StrEnum

from django.utils.translation import gettext, gettext_noop

_ORDER = ("viewer", "agent", "admin", "owner")
_LABELS = {
    "viewer": gettext_noop("Viewer"),
    "agent": gettext_noop("Agent"),
    "admin": gettext_noop("Admin"),
    "owner": gettext_noop("Owner"),
}
_NOUNS = {
    "viewer": gettext_noop("a viewer"),
    "agent": gettext_noop("an agent"),
    "admin": gettext_noop("an admin"),
    "owner": gettext_noop("an owner"),
}
_ABILITIES = {
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

    def at_least(self, other: Role) -> bool:
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
