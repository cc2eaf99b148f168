"""Read the audit trail."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.http import HttpResponse
from ninja import Query
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.edge.sentences import TextPattern
from api.v1.ticket_schemas import Moment
from portal import clock
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailRow
from tenants.audit_trail.erased_people import ErasedPeople

router: Final = ApiRouter()

# Pydantic's own date takes a number for seconds since 1970.
DayInUtc = Annotated[
    str,
    Field(json_schema_extra={"format": "date"}),
    TextPattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "This needs a day, as 2026-11-20."),
]
_ActorId = Annotated[str, TextPattern("^[0-9a-z_-]{1,64}$", "This needs the id of a person or of an API key.")]
_EntityId = Annotated[
    str, TextPattern("^[a-z_]{1,40}:[0-9A-Za-z_.@-]{1,100}$", "This needs a type and an id with a colon between them.")
]

_EVENT: Final[dict[str, Any]] = {
    "id": "8f14e45fceea467f9a3b5d2c1e0f7a69",
    "at": "2026-11-20T09:30:00.000000Z",
    "actor": {"id": "5f0c1d2e3a4b4c5d8e6f708192a3b4c5", "name": "ana@desk.example", "origin": "192.0.2.9"},
    "action": "member.role_changed",
    "entity": {"type": "user", "id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9", "name": "ben@desk.example"},
    "before": {"role": "agent"},
    "after": {"role": "admin"},
}


class AuditActor(ApiModel):
    """The person, API key or command that did it; a person by their address, a key by its name."""

    id: str
    name: str
    origin: str = Field(description="a network address, “admin”, or the name of a command")


class AuditEntity(ApiModel):
    """The thing or person that it was done to."""

    type: str
    id: str
    name: str


class AuditEvent(ApiModel, json_schema_extra={"example": _EVENT}):
    """An event of the audit trail."""

    id: str
    at: Moment
    actor: AuditActor
    action: str = Field(description="as subject.verb; more of them may come")
    entity: AuditEntity
    before: dict[str, Any]
    after: dict[str, Any]

    @classmethod
    def of(cls, row: TrailRow) -> AuditEvent:
        return cls(
            id=row.id,
            at=clock.stamp(row.at),
            actor=AuditActor(id=row.actor_id, name=row.actor, origin=row.origin),
            action=row.action,
            entity=AuditEntity(type=row.entity_type, id=row.entity_id, name=row.entity),
            before=row.before,
            after=row.after,
        )


class AuditPage(ApiModel, json_schema_extra={"example": {"data": [_EVENT], "next": None}}):
    """A page of the audit trail, newest first."""

    data: list[AuditEvent]
    next: str | None = Field(description="the address of the next page")


class AuditQuery(ApiQuery):
    """Which events: of one actor, about one entity, or all."""

    actor: _ActorId | None = Field(None, description="the id of a person or of an API key")
    entity: _EntityId | None = Field(None, description="type and id, as user:0a1b…; not with actor")
    first: DayInUtc | None = Field(None, description="the first day, in UTC")
    last: DayInUtc | None = Field(None, description="the last day, in UTC")
    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


@router.declare("GET", "/audit-events", scope=Scope.AUDIT_READ, answers={200: AuditPage}, sends={200: ("Link",)})
@costs(query="audit row, audit rows by actor, audit rows by object", trips=1, reads=15)
def list_audit_events(request: ApiRequest, query: Query[AuditQuery]) -> HttpResponse:
    """List the events of the audit trail, newest first."""
    asked = query.model_dump(exclude_none=True, exclude={"after", "limit"}, mode="json")
    page = browsing.page(
        request.acting.repository,
        only=browsing.filter_of(**asked),
        after=query.after,
        size=query.limit,
        erased=ErasedPeople.parse(request.acting.erased),
    )
    found = AuditPage(data=[AuditEvent.of(row) for row in page.rows], next=answers.next_url(request, page.next))
    return answers.page(found)
