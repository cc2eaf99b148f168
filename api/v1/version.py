"""Put version 1 of the API together."""

from __future__ import annotations

from typing import Any, Final

from api.edge.routing import RoutedApi
from api.v1 import (
    activity_routes,
    aggregate_routes,
    article_routes,
    aside_routes,
    audit_routes,
    bulk_routes,
    field_routes,
    file_routes,
    follower_routes,
    letter_routes,
    link_routes,
    member_routes,
    ready_answer_routes,
    requester_routes,
    rule_routes,
    ticket_routes,
    view_routes,
    webhook_routes,
)

# What each tag of the documents is about, and the routes below it.
_RESOURCES: Final[dict[str, tuple[Any, ...]]] = {
    "Tickets": (
        "Tickets with what was said and done about them.",
        ticket_routes,
        activity_routes,
        aside_routes,
        bulk_routes,
        follower_routes,
        link_routes,
    ),
    "Files": ("Files of tickets: sent to the bucket and had from it, never through this API.", file_routes),
    "Requesters": ("People outside the desk, for whom tickets are opened.", requester_routes),
    "Letters": ("The mail that came to the desk, and what became of each letter.", letter_routes),
    "Articles": ("Answers to read: the published articles of the help centre.", article_routes),
    "Fields": ("The custom fields and the kinds of tickets that the desk has defined.", field_routes),
    "Ready answers": ("Texts that agents insert into comments, and what they change.", ready_answer_routes),
    "Rules": (
        "When something happens to a ticket, if it is in a list, then do this; and what was done.",
        rule_routes,
    ),
    "Views": ("Lists of tickets that the desk has saved under names.", view_routes),
    "Members": ("Who belongs to the desk, and whom tickets can be assigned to.", member_routes),
    "Numbers": (
        "What the dashboard shows: counted already, at the same cost for any number of tickets.",
        aggregate_routes,
    ),
    "Audit trail": ("Who did what to members, keys, webhooks and settings of the desk.", audit_routes),
    "Webhooks": ("Addresses that the desk tells of events, and what came of telling them.", webhook_routes),
}

version_1: Final = RoutedApi(
    title="Pooldesk",
    version="1",
    description="The tickets of one desk: that of the API key which calls. HEAD gets what GET gets, without a body.",
    urls_namespace="v1",
    openapi_extra={"tags": [{"name": name, "description": text} for name, (text, *_) in _RESOURCES.items()]},
)
for name, (_, *modules) in _RESOURCES.items():
    for module in modules:
        version_1.add_router("", module.router, tags=[name])
