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
    def abilities(self) -> str:
        """Return what people of this role can do, as the rest of a sentence that begins with "can"."""
        return {
            Role.VIEWER: "read tickets",
            Role.AGENT: "work on tickets",
            Role.ADMIN: "work on tickets and manage members",
            Role.OWNER: "do everything, including changing the desk's settings",
        }[self]

    @property
    def label(self) -> str:
        return self.value.capitalize()

    @property
    def with_article(self) -> str:
        """Return the role as a noun in a sentence: "an agent", "a viewer"."""
        return f"{'an' if self.value[0] in 'aeiou' else 'a'} {self.value}"
