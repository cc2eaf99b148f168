"""Change fields of many tickets by a job: those of a list, or those that are named; watch it, cancel it, undo it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from django.http import HttpResponse
from pydantic import Field, model_validator

from api.edge import answers
from api.edge.answers import ApiInput, ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import ListedByFilter, PriorityAsked, StatusAsked, TagTexts, TicketNamed, UserId
from tenants.api_keys.scopes import Scope
from tickets.bulk_jobs import bulk_requests
from tickets.bulk_jobs.bulk_requests import Job
from tickets.desk.many import TicketEdit

router: Final = ApiRouter()

_EXAMPLE: Final[dict[str, Any]] = {
    "id": "0193b2c4d5e66f708192",
    "state": "running",
    "undoes": None,
    "total": 1240,
    "changed": 450,
    "unchanged": 12,
    "refused": 3,
    "why": None,
    "begun_at": "2026-11-20T09:30:00.000000Z",
    "outcomes": [{"number": 7, "outcome": "refused", "reason": "is no longer in this list"}],
    "next": None,
}
