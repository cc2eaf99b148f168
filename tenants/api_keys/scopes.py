"""Say what an API key may be allowed to do, and which role it then has towards the rules that people's pages call."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from django.utils.translation import gettext_noop as _

from tenants.tenancy.context import Role


class Scope(StrEnum):
    """The permissions of a key, as `subject:verb`. None includes another.

    `summary` is what people choose, in English, and `role` the lowest role of a person who may do the same.
    """

    summary: str
    role: Role

    def __new__(cls, value: str, summary: str = "", role: Role = Role.ADMIN) -> Scope:
        scope = str.__new__(cls, value)
        scope._value_, scope.summary, scope.role = value, summary, role
        return scope

    TICKETS_READ = "tickets:read", _("Read tickets and their comments"), Role.VIEWER
    TICKETS_WRITE = "tickets:write", _("Create, change and assign tickets, and see those that it changes"), Role.AGENT
    COMMENTS_WRITE = "comments:write", _("Write comments"), Role.AGENT
    NOTES_READ = "notes:read", _("Read internal notes"), Role.AGENT
    NOTES_WRITE = "notes:write", _("Write internal notes"), Role.AGENT
    REQUESTERS_READ = (
        "requesters:read",
        _("Read who asks for tickets from outside, with addresses and notes"),
        Role.AGENT,
    )
    REQUESTERS_WRITE = "requesters:write", _("Add and change people outside the desk, and see them"), Role.AGENT
    LETTERS_MANAGE = "letters:manage", _("Read the mail that came in, and file or discard what waits"), Role.AGENT
    MEMBERS_READ = "members:read", _("Read who the members are")
    AUDIT_READ = "audit:read", _("Read the audit trail")
    AGGREGATES_READ = "aggregates:read", _("Read the numbers of the dashboards")
    ANSWERS_MANAGE = "answers:manage", _("Read and change the shared ready answers")
    RULES_MANAGE = "rules:manage", _("Read and change the rules, and undo their runs")
    WEBHOOKS_MANAGE = "webhooks:manage", _("Read and change webhooks")


def named(names: Collection[str]) -> frozenset[Scope]:
    """Return the scopes that have these names. Unknown scopes, for example from a newer version, are ignored."""
    return frozenset(scope for scope in Scope if scope.value in names)


def reading_role(scopes: Collection[Scope]) -> Role:
    """Return the role in which a key reads: internal notes, and what is for agents alone, need NOTES_READ."""
    return Role.AGENT if Scope.NOTES_READ in scopes else Role.VIEWER
