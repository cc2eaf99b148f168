"""Put version 1 of the API together."""

from __future__ import annotations

from typing import Final

from api.edge.routing import RoutedApi
from api.v1 import (
    activity_routes,
    aggregate_routes,
    article_routes,
    audit_routes,
    file_routes,
    follower_routes,
    member_routes,
    requester_routes,
    ticket_routes,
    webhook_routes,
)

_RESOURCES: Final = {
    "Tickets": "Tickets with what was said and done about them.",
    "Files": "Files of tickets: sent to the bucket and had from it, never through this API.",
    "Requesters": "People outside the desk, for whom tickets are opened.",
    "Articles": "Answers to read: the published articles of the help centre.",
    "Members": "Who belongs to the desk, and whom tickets can be assigned to.",
    "Numbers": "What the dashboard shows: counted already, at the same cost for any number of tickets.",
    "Audit trail": "Who did what to members, keys, webhooks and settings of the desk.",
    "Webhooks": "Addresses that the desk tells of events, and what came of telling them.",
}

version_1: Final = RoutedApi(
    title="Pooldesk",
    version="1",
    description="The tickets of one desk: that of the API key which calls.",
    urls_namespace="v1",
    openapi_extra={"tags": [{"name": name, "description": text} for name, text in _RESOURCES.items()]},
)
version_1.add_router("", ticket_routes.router, tags=["Tickets"])
version_1.add_router("", activity_routes.router, tags=["Tickets"])
version_1.add_router("", follower_routes.router, tags=["Tickets"])
version_1.add_router("", file_routes.router, tags=["Files"])
version_1.add_router("", article_routes.router, tags=["Articles"])
version_1.add_router("", member_routes.router, tags=["Members"])
version_1.add_router("", requester_routes.router, tags=["Requesters"])
version_1.add_router("", aggregate_routes.router, tags=["Numbers"])
version_1.add_router("", audit_routes.router, tags=["Audit trail"])
version_1.add_router("", webhook_routes.router, tags=["Webhooks"])
