"""Say how webhooks look in the API."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from ninja import Path
from pydantic import ConfigDict, Field, model_validator

from api.door.answers import ApiInput, ApiModel
from api.v1.ticket_schemas import Moment
from delivery.webhooks import delivery_log, webhook_events
from delivery.webhooks.endpoint_changes import ChangedEndpoint
from delivery.webhooks.endpoints import DESCRIPTION_LIMIT, EndpointChoice
from delivery.webhooks.safe_addresses import URL_LIMIT
from delivery.webhooks.stored import DeliveryItem, EndpointItem, log_key_parts

_LEFT: Final[Any] = None  # the value of a field that a change does not name
_URL: Final = "https://hooks.example.com/pooldesk"
_WEBHOOK: Final[dict[str, Any]] = {
    "id": "ep_5f2c9a7be01d4432",
    "url": _URL,
    "description": "The nightly copy",
    "event_types": ["ticket.created", "ticket.commented"],
    "state": "active",
    "paused_because": None,
    "failing_since": None,
    "version": 1,
    "created_at": "2026-11-20T09:30:00.000000Z",
    "rotated_at": "2026-11-20T09:30:00.000000Z",
}
_DELIVERY: Final[dict[str, Any]] = {
    "id": "evt_5b1f0c2d3e4a4b5c8d9e0f1a2b3c4d5e_0.2026-11-20T09:30:00.000000Z",
    "event_id": "evt_5b1f0c2d3e4a4b5c8d9e0f1a2b3c4d5e_0",
    "event_type": "ticket.created",
    "at": "2026-11-20T09:30:00.000000Z",
    "state": "answered",
    "attempts": 1,
    "status": 204,
    "ms": 87,
    "note": "",
    "next_at": None,
}


def _name_events(schema: dict[str, Any]) -> None:
    """Name the event types when the document is made: by then every app has declared its own."""
    schema["enum"] = [kind.name for kind in webhook_events.offered()]


WebhookId = Annotated[str, Path(pattern="^ep_[0-9a-f]{16}$")]
_Url = Annotated[str, Field(max_length=URL_LIMIT, description="an https address of a public host")]
_Description = Annotated[str, Field(max_length=DESCRIPTION_LIMIT)]
_EventTypes = Annotated[
    list[Annotated[str, Field(max_length=100, json_schema_extra=_name_events)]],
    Field(min_length=1, max_length=50, description="docs/events.md and the portal's page of events explain them"),
]


class WebhookOut(ApiModel):
    """An address to which events of the desk are sent."""

    model_config = ConfigDict(json_schema_extra={"example": _WEBHOOK})

    id: str
    url: str
    description: str
    event_types: list[str]
    state: Literal["active", "paused"]
    paused_because: str | None = Field(description="null where it is active, or where somebody paused it")
    failing_since: Moment | None = Field(
        description="when the first of its deliveries failed that none succeeded after"
    )
    version: int = Field(description="grows with each change")
    created_at: Moment
    rotated_at: Moment = Field(description="when it got its present secret")

    @classmethod
    def of(cls, item: EndpointItem, **more: Any) -> Self:
        return cls(
            id=item.endpoint_id,
            url=item.url,
            description=item.description,
            event_types=list(item.event_types),
            state="paused" if item.state == "paused" else "active",
            paused_because=item.paused_because or None,
            failing_since=item.failing_since,
            version=int(item.version),
            created_at=item.created_at,
            rotated_at=item.rotated_at,
            **more,
        )


class WebhookWithSecret(WebhookOut):
    """An endpoint with the secret that signs what is sent to it, which is not shown again: the same request, sent again
    with its Idempotency-Key, is answered with null in its place."""

    model_config = ConfigDict(
        json_schema_extra={"example": _WEBHOOK | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}}
    )

    secret: str | None = Field(description="as Standard Webhooks writes it; null in an answer that is sent again")

    @classmethod
    def told(cls, changed: ChangedEndpoint) -> Self:
        return cls.of(changed.item, secret=changed.secret)

    def kept(self) -> Self:
        """Return it as it may be kept: without the secret."""
        return self.model_copy(update={"secret": None})


class WebhookList(ApiModel):
    """All endpoints of the desk, the oldest first."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [_WEBHOOK], "next": None}})

    data: list[WebhookOut]
    next: None = Field(description="there are no more pages")


class WebhookToAdd(ApiInput):
    """A new endpoint."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"url": _URL, "event_types": ["ticket.created", "ticket.commented"]}}
    )

    url: _Url
    event_types: _EventTypes
    description: _Description = ""

    @property
    def choice(self) -> EndpointChoice:
        """Return it as the rule takes it. Raises Invalid."""
        return EndpointChoice(url=self.url, event_types=tuple(self.event_types), description=self.description)


class WebhookToChange(ApiInput):
    """The fields that are to change, at least one; the others stay."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "example": {"event_types": ["ticket.created"]}})

    url: _Url = _LEFT
    event_types: _EventTypes = _LEFT
    description: _Description = _LEFT

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("Name at least one field to change.")
        return self

    def choice(self, item: EndpointItem) -> EndpointChoice:
        """Return what the endpoint becomes. Raises Invalid."""
        stored = {name: getattr(item, name) for name in type(self).model_fields}
        wanted = stored | {name: getattr(self, name) for name in self.model_fields_set}
        return EndpointChoice(**wanted | {"event_types": tuple(wanted["event_types"])})


class DeliveryOut(ApiModel):
    """An event and what came of sending it to one endpoint."""

    model_config = ConfigDict(json_schema_extra={"example": _DELIVERY})

    id: str
    event_id: str = Field(description="as in the header webhook-id of what arrives")
    event_type: str
    at: Moment
    state: Literal["answered", "failed", "dead", "skipped"] = Field(
        description="failed is tried again at `next_at`, dead is not; skipped met a paused endpoint"
    )
    attempts: int
    status: int | None = Field(description="of the last attempt; null where nothing answered")
    ms: int
    note: str
    next_at: Moment | None

    @classmethod
    def of(cls, row: DeliveryItem) -> Self:
        at, event_id = log_key_parts(row.timestamp_event_id)
        return cls(
            id=delivery_log.name_of(row),
            event_id=event_id,
            event_type=row.event_type,
            at=at,
            state=row.state,  # type: ignore[arg-type]  # one of them
            attempts=len(row.attempts),
            status=int(row.status) or None,
            ms=int(row.ms),
            note=row.note,
            next_at=row.next_at,
        )


class DeliveryPage(ApiModel):
    """A page of the deliveries to one endpoint, the latest event first. They are kept for 30 days."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [_DELIVERY], "next": None}})

    data: list[DeliveryOut]
    next: str | None = Field(description="the address of the next page")


class DeliveryQuery(ApiInput):
    """Where a page of deliveries begins."""

    model_config = ConfigDict(extra="forbid", strict=False)

    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)
