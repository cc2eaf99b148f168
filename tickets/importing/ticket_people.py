"""Find the members whom an imported ticket can be assigned to."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Final

from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.importing.archive_texts import tag

STRANGERS_KEPT: Final = 1000  # names; a file may hold one for each of its tickets


class TicketPeople:
    """The members whom a ticket can be assigned to, by what a file may call them. Read at first use.

    `strangers` counts the tickets of those names that are nobody's here, or several people's, for the report.
    """

    def __init__(self, tenant: TenantContext) -> None:
        self._tenant = tenant
        self.strangers: Counter[str] = Counter()

    def tag_for(self, stranger: str) -> str:
        """Return the tag that a ticket gets instead of somebody whom `find` did not find, and count the ticket."""
        if stranger in self.strangers or len(self.strangers) < STRANGERS_KEPT:
            self.strangers[stranger] += 1
        return assignee_tag(stranger)

    def has(self, user_id: str) -> bool:
        """Tell whether this id is one of theirs."""
        return any(member.id == user_id for member in self._agents)

    def find(self, name: str) -> members.Member | None:
        """Return the one member with this name, or this name before the @ of the address. None where two have it."""
        return self._by_name.get(name.casefold())

    @cached_property
    def _agents(self) -> list[members.Member]:
        return [m for m in members.members_of(self._tenant.repository) if m.role.at_least(Role.AGENT)]

    @cached_property
    def _by_name(self) -> dict[str, members.Member | None]:
        known: dict[str, members.Member | None] = {}
        for member in self._agents:
            for key in {member.name.casefold(), member.email.split("@")[0].casefold()}:
                known[key] = None if key in known else member
        return known


def assignee_tag(name: str) -> str:
    """Return the tag that says who a ticket was assigned to in the file."""
    return tag(f"assignee:{name}")
