"""Say which feature each table belongs to, so that a statement can tell what each feature costs a desk."""

from __future__ import annotations

from typing import Final, NamedTuple

from django.utils.translation import gettext_lazy


class Feature(NamedTuple):
    """One feature: its name in files, its title, a sentence that says what it is, and its tables as declared."""

    name: str
    title: str
    sentence: str
    tables: tuple[str, ...]


def _feature(name: str, title: object, sentence: object, *tables: str) -> Feature:
    return Feature(name, title, sentence, tables)  # type: ignore[arg-type]  # lazy texts


FEATURES: Final = (
    _feature(
        "tickets", gettext_lazy("Tickets"),
        gettext_lazy("Tickets with their comments and history, their lists, and the counts of dashboards and reports."),
        "Support.Tickets",
    ),
    _feature(
        "search", gettext_lazy("Search"), gettext_lazy("The index of all words, its upkeep, and each search."),
        "Support.Search",
    ),
    _feature(
        "letters", gettext_lazy("Mail with requesters"),
        gettext_lazy("Letters that came in, and what is known of those that went out."),
        "Support.Letters", "Support.Mail",
    ),
    _feature(
        "deliveries", gettext_lazy("Deliveries"),
        gettext_lazy("Mail and webhooks on their way out, and the log of deliveries."),
        "Events.Outbox", "Events.Deliveries", "Events.DeadLetters", "Events.Endpoints", "Events.Secrets",
        "Events.Queues",
    ),
    _feature(
        "due", gettext_lazy("Scheduled work"),
        gettext_lazy("Snoozed tickets, targets, reminders and mail at set times."), "Events.Due",
    ),
    _feature(
        "inbox", gettext_lazy("Notifications"), gettext_lazy("The inbox of each member."), "Support.Inboxes",
    ),
    _feature(
        "requesters", gettext_lazy("Requesters"), gettext_lazy("People outside the desk, and finding them."),
        "Support.Requesters",
    ),
    _feature(
        "outside", gettext_lazy("Public pages"),
        gettext_lazy("The public form and the pages of requesters, and their limits."), "Support.Outside",
    ),
    _feature(
        "live", gettext_lazy("Open pages"),
        gettext_lazy("Who else is on a ticket, and whether something has changed, while pages are open."),
        "Support.Presence",
    ),
    _feature("articles", gettext_lazy("Help centre"), gettext_lazy("Articles and their versions."), "Support.Articles"),
    _feature(
        "setup", gettext_lazy("How the desk is set up"),
        gettext_lazy("Settings, fields, groups, views, rules and ready answers, which most pages read."),
        "Support.Setups", "Support.Groups", "Support.Views", "Support.Rules", "Support.ReadyAnswers",
    ),
    _feature(
        "exports", gettext_lazy("Exports"), gettext_lazy("Files of the whole desk, in parts."), "Support.ExportParts",
    ),
    _feature(
        "api", gettext_lazy("API"), gettext_lazy("API keys, and answers that are kept so that a repetition gets them."),
        "Api.Answers", "Tenants.ApiKeys",
    ),
    _feature(
        "members", gettext_lazy("Members and sessions"),
        gettext_lazy("Knowing who asks, in each request: the session, the membership and the desk; and invitations."),
        "Admin.Users", "Tenants.Auditors", "Tenants.Config", "Tenants.Invites", "Tenants.Unreached",
        "Platform.Directory", "Platform.Factors", "Platform.Memberships", "Platform.Sessions", "Platform.Throttles",
        "Platform.Users",
    ),
    _feature(
        "audit", gettext_lazy("Audit trail"), gettext_lazy("Who did what, in hash chains."),
        "Audit.AdminActions", "Audit.Chains",
    ),
    _feature(
        "operation", gettext_lazy("Operation"),
        gettext_lazy("Limits, usage, errors and these costs, and how far work in the background has come."),
        "Limits.Shares", "Platform.Costs", "Platform.Faults", "Platform.Noise", "Streams.DeadLetters",
        "Streams.Leases", "Tenants.Costs", "Tenants.Usage",
    ),
)  # fmt: skip
OTHER: Final = _feature(
    "other", gettext_lazy("Other"), gettext_lazy("Tables of a newer release that runs beside this one.")
)
_BY_TABLE: Final = {table: feature for feature in FEATURES for table in feature.tables}


def of_table(table: str) -> Feature:
    """Return the feature of a table by its declared name."""
    return _BY_TABLE.get(table, OTHER)
