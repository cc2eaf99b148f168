"""The four roles, each including the ones below: owner > admin > agent > viewer."""

from __future__ import annotations

from enum import StrEnum

_ORDER = ("viewer", "agent", "admin", "owner")


class Role(StrEnum):
    VIEWER = "viewer"  # reads tickets, not internal notes
    AGENT = "agent"  # works tickets
    ADMIN = "admin"  # runs the tenant
    OWNER = "owner"  # the last one cannot leave

    def at_least(self, other: Role) -> bool:
        return _ORDER.index(self) >= _ORDER.index(other)

    @property
    def may(self) -> str:
        """What it is for, in a few words."""
        return {
            Role.VIEWER: "reads tickets",
            Role.AGENT: "works tickets",
            Role.ADMIN: "works tickets, invites and manages people",
            Role.OWNER: "all of it, and the desk's settings",
        }[self]

    @property
    def label(self) -> str:
        return self.value.capitalize()

    @property
    def with_article(self) -> str:
        """The role in a sentence: "an agent", "a viewer"."""
        return f"{'an' if self.value[0] in 'aeiou' else 'a'} {self.value}"
