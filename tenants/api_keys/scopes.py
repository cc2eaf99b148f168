"""Say what an API key may be allowed to do, and which role it then has towards the rules that people's pages call."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from tenants.tenancy.roles import Role


class Scope(StrEnum):
    """The permissions of a key, as `subject:verb`. None includes another."""

    TICKETS_READ = "tickets:read"
    TICKETS_WRITE = "tickets:write"
    COMMENTS_WRITE = "comments:write"
    NOTES_READ = "notes:read"
    NOTES_WRITE = "notes:write"
    MEMBERS_READ = "members:read"
    AUDIT_READ = "audit:read"
    AGGREGATES_READ = "aggregates:read"
    WEBHOOKS_MANAGE = "webhooks:manage"

    @property
    def summary(self) -> str:
        """Return what it allows, as people choose it."""
        return {
            Scope.TICKETS_READ: "Read tickets and their comments",
            Scope.TICKETS_WRITE: "Create, change and assign tickets, and see those that it changes",
            Scope.COMMENTS_WRITE: "Write comments",
            Scope.NOTES_READ: "Read internal notes",
            Scope.NOTES_WRITE: "Write internal notes",
            Scope.MEMBERS_READ: "Read who the members are",
            Scope.AUDIT_READ: "Read the audit trail",
            Scope.AGGREGATES_READ: "Read the numbers of the dashboards",
            Scope.WEBHOOKS_MANAGE: "Read and change webhooks",
        }[self]

    @property
    def role(self) -> Role:
        """Return the lowest role of a person who may do the same."""
        if self is Scope.TICKETS_READ:
            return Role.VIEWER
        agents = (Scope.TICKETS_WRITE, Scope.COMMENTS_WRITE, Scope.NOTES_READ, Scope.NOTES_WRITE)
        return Role.AGENT if self in agents else Role.ADMIN


def named(names: Collection[str]) -> frozenset[Scope]:
    """Return the scopes that have these names. Unknown scopes, for example from a newer version, are ignored."""
    return frozenset(scope for scope in Scope if scope.value in names)


def reading_role(scopes: Collection[Scope]) -> Role:
    """Return the role in which a key reads: internal notes, and what is for agents alone, need NOTES_READ."""
    return Role.AGENT if Scope.NOTES_READ in scopes else Role.VIEWER
