"""Set up webhooks, and read what came of their deliveries."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Final, Literal, Self

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import Field

from api.edge import answers, idempotency
from api.edge.answers import ApiChange, ApiInput, ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Moment
from delivery.webhooks import delivery_log, endpoints
from delivery.webhooks.endpoints import DESCRIPTION_LIMIT, ChangedEndpoint, EndpointChoice
from delivery.webhooks.safe_addresses import URL_LIMIT
from delivery.webhooks.stored import DeliveryItem, EndpointItem, log_key_parts
from portal.dynamo.client import fan_out
from portal.web.access import costs
from tenants.api_keys.scopes import Scope

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
    schema["enum"] = [kind.name for kind in endpoints.offered()]


WebhookId = Annotated[str, Path(pattern="^ep_[0-9a-f]{16}$")]
_Url = Annotated[str, Field(max_length=URL_LIMIT, description="an https address of a public host")]
_Description = Annotated[str, Field(max_length=DESCRIPTION_LIMIT)]
_EventTypes = Annotated[
    list[Annotated[str, Field(max_length=100, json_schema_extra=_name_events)]],
    Field(min_length=1, max_length=50, description="docs/events.md and the portal's page of events explain them"),
]


class WebhookOut(ApiModel, json_schema_extra={"example": _WEBHOOK}):
    """An address to which events of the desk are sent."""

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
        return cls.of_attributes(item, id=item.endpoint_id, paused_because=item.paused_because or None, **more)


class WebhookWithSecret(
    WebhookOut, json_schema_extra={"example": _WEBHOOK | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}}
):
    """An endpoint with the secret that signs what is sent to it, which is not shown again: the same request, sent again
    with its Idempotency-Key, is answered with null in its place."""

    secret: str | None = Field(description="as Standard Webhooks writes it; null in an answer that is sent again")

    @classmethod
    def told(cls, changed: ChangedEndpoint) -> Self:
        return cls.of(changed.item, secret=changed.secret)

    def kept(self) -> Self:
        """Return it as it may be kept: without the secret."""
        return self.model_copy(update={"secret": None})


class WebhookList(ApiModel, json_schema_extra={"example": {"data": [_WEBHOOK], "next": None}}):
    """All endpoints of the desk, the oldest first."""

    data: list[WebhookOut]
    next: None = Field(description="there are no more pages")


class WebhookToAdd(
    ApiInput, json_schema_extra={"example": {"url": _URL, "event_types": ["ticket.created", "ticket.commented"]}}
):
    """A new endpoint."""

    url: _Url
    event_types: _EventTypes
    description: _Description = ""

    @property
    def choice(self) -> EndpointChoice:
        """Return it as the rule takes it. Raises Invalid."""
        return EndpointChoice(url=self.url, event_types=tuple(self.event_types), description=self.description)


class WebhookToChange(
    ApiChange, json_schema_extra={"minProperties": 1, "example": {"event_types": ["ticket.created"]}}
):
    """The fields that are to change, at least one; the others stay."""

    url: _Url = _LEFT
    event_types: _EventTypes = _LEFT
    description: _Description = _LEFT

    def choice(self, item: EndpointItem) -> EndpointChoice:
        """Return what the endpoint becomes. Raises Invalid."""
        stored = {name: getattr(item, name) for name in type(self).model_fields}
        wanted = stored | {name: getattr(self, name) for name in self.model_fields_set}
        return EndpointChoice(**wanted | {"event_types": tuple(wanted["event_types"])})


class DeliveryOut(ApiModel, json_schema_extra={"example": _DELIVERY}):
    """An event and what came of sending it to one endpoint."""

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
        told: dict[str, Any] = {"id": delivery_log.name_of(row), "event_id": event_id, "at": at}
        return cls.of_attributes(row, **told, attempts=len(row.attempts), status=int(row.status) or None)


class DeliveryPage(ApiModel, json_schema_extra={"example": {"data": [_DELIVERY], "next": None}}):
    """A page of the deliveries to one endpoint, the latest event first. They are kept for 30 days."""

    data: list[DeliveryOut]
    next: str | None = Field(description="the address of the next page")


class DeliveryQuery(ApiQuery):
    """Where a page of deliveries begins."""

    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


# --- set up webhooks, and read what came of their deliveries ---


router: Final = ApiRouter()
_SCOPE: Final = Scope.WEBHOOKS_MANAGE
# What else a key needs to have events of these types sent to an address: whoever gets one reads what is in it.
_READING: Final = (("ticket.", Scope.TICKETS_READ), ("ticket.note_added", Scope.NOTES_READ))


@router.declare("GET", "/webhooks", scope=_SCOPE, answers={200: WebhookList, 304: None}, headers=answers.KNOWN)
@costs(query="webhook", trips=1, reads=2)
def list_webhooks(request: ApiRequest) -> HttpResponse:
    """List the endpoints of the desk, the oldest first."""
    found = endpoints.listed(request.acting.repository)
    return answers.tagged(request, WebhookList(data=[WebhookOut.of(item) for item in found], next=None))


@router.declare(
    "POST",
    "/webhooks",
    scope=_SCOPE,
    answers={201: WebhookWithSecret},
    headers=idempotency.ONCE,
    sends={201: ("Location",)},
)
@costs(
    query="webhook",
    write="API answer in the pool, audit row, membership, tenant, webhook, webhook secret",
    trips=6,
    reads=10,
    writes=30,
)
def add_webhook(request: ApiRequest, webhook: WebhookToAdd) -> HttpResponse:
    """Add an endpoint.

    The answer has the secret that signs what is sent to it, which is shown this once. Sent again with the same
    Idempotency-Key, the request gets the endpoint with null in its place: where the first answer was lost, replace it.
    Events of tickets need the scope tickets:read as well, and those of internal notes notes:read.
    """
    choice = webhook.choice
    _require_reading(request, choice.event_types)

    def write(companion: Any) -> None:
        endpoints.add(
            request.acting,
            choice=choice,
            request_id=uuid.uuid4().hex,
            by=request.caller.actor,
            companion=companion,
        )

    def answer(shown: WebhookWithSecret) -> HttpResponse:
        return answers.answer(shown, status=201, Location=f"{request.path}/{shown.id}")

    return _with_secret(request, write, answer)


@router.declare(
    "GET", "/webhooks/{webhook_id}", scope=_SCOPE, answers={200: WebhookOut, 304: None}, headers=answers.KNOWN
)
@costs(get="webhook", trips=1, reads=2)
def read_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Read an endpoint."""
    return answers.tagged(request, WebhookOut.of(endpoints.find(request.acting.repository, webhook_id)))


@router.declare(
    "PATCH",
    "/webhooks/{webhook_id}",
    scope=_SCOPE,
    answers={200: WebhookOut},
    problems_too=(412,),
    headers=answers.MATCH,
    sends={200: ("ETag",)},
)
@costs(get="webhook", write="audit row, membership, tenant, webhook", trips=6, reads=10, writes=20)
def change_webhook(request: ApiRequest, webhook_id: WebhookId, webhook: WebhookToChange) -> HttpResponse:
    """Change fields of an endpoint.

    Types of events that are new to its address need the scopes that an endpoint with them needs when it is added.
    """

    def choose(item: EndpointItem) -> EndpointChoice:
        shown = WebhookOut.of(item)
        answers.require_match(request, answers.tag(answers.encoded(shown)), current=shown.model_dump(mode="json"))
        choice = webhook.choice(item)
        stays = item.event_types if choice.url == item.url else ()
        _require_reading(request, set(choice.event_types).difference(stays))
        return choice

    changed = endpoints.change(
        request.acting, endpoint_id=webhook_id, choose=choose, version=None, by=request.caller.actor
    )
    shown = WebhookOut.of(changed)
    return answers.answer(shown, ETag=answers.tag(answers.encoded(shown)))


@router.declare("DELETE", "/webhooks/{webhook_id}", scope=_SCOPE, answers={204: None})
@costs(get="webhook", write="audit row, membership, tenant, webhook, webhook secret", trips=6, reads=10, writes=25)
def remove_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Remove an endpoint and its secret.

    Its pending events are not sent.
    """
    endpoints.remove(request.acting, endpoint_id=webhook_id, by=request.caller.actor)
    return HttpResponse(status=204)


_changes_webhook: Final = costs(
    get="webhook", write="API answer in the pool, audit row, tenant, webhook", trips=3, reads=5, writes=25
)


@router.declare(
    "POST", "/webhooks/{webhook_id}/pause", scope=_SCOPE, answers={200: WebhookOut}, headers=idempotency.ONCE
)
@_changes_webhook
def pause_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Pause an endpoint.

    Events that happen while it is paused are not sent to it later.
    """
    return _done(request, partial(endpoints.pause, endpoint_id=webhook_id, by=request.caller.actor))


@router.declare(
    "POST", "/webhooks/{webhook_id}/resume", scope=_SCOPE, answers={200: WebhookOut}, headers=idempotency.ONCE
)
@_changes_webhook
def resume_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Resume an endpoint that is paused."""
    return _done(request, partial(endpoints.resume, endpoint_id=webhook_id, by=request.caller.actor))


@router.declare(
    "POST", "/webhooks/{webhook_id}/test", scope=_SCOPE, answers={202: WebhookOut}, headers=idempotency.ONCE
)
@costs(get="webhook", write="API answer, outbox row", trips=3, reads=2, writes=12)
def test_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Send an endpoint a test event, whatever it subscribed to."""
    return _done(request, partial(delivery_log.send_test, endpoint_id=webhook_id), status=202, is_content=True)


def _done(
    request: ApiRequest, act: Callable[..., object], *, status: int = 200, is_content: bool = False
) -> HttpResponse:
    def render(changed: ChangedEndpoint) -> HttpResponse:
        return answers.answer(WebhookOut.of(changed.item), status=status)

    return idempotency.post(
        request, lambda companion: act(request.acting, companion=companion), render, is_content=is_content
    )


@router.declare(
    "POST", "/webhooks/{webhook_id}/secret", scope=_SCOPE, answers={200: WebhookWithSecret}, headers=idempotency.ONCE
)
@costs(
    get="webhook, webhook secret",
    write="API answer in the pool, audit row, webhook, webhook secret",
    trips=3,
    reads=6,
    writes=25,
)
def replace_webhook_secret(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Replace the secret of an endpoint.

    Each old secret signs beside the new one for 24 hours, so that nothing is refused meanwhile. Up to three old
    secrets sign; a fourth replacement within 24 hours is a 409. Sent again with the same Idempotency-Key, the request
    gets the endpoint with null in the place of the secret.
    """

    def write(companion: Any) -> None:
        endpoints.rotate(
            request.acting, endpoint_id=webhook_id, version=None, by=request.caller.actor, companion=companion
        )

    return _with_secret(request, write, answers.answer)


def _require_reading(request: ApiRequest, event_types: Iterable[str]) -> None:
    """Raise KeyRefused where the key may not read what events of these types tell."""
    for name in sorted(event_types):
        for beginning, scope in _READING:
            if name.startswith(beginning):
                request.caller.tenant_for(scope)


def _with_secret(
    request: ApiRequest, write: Callable[[Any], None], answer: Callable[[WebhookWithSecret], HttpResponse]
) -> HttpResponse:
    """Answer with the secret, and keep the answer without it."""

    def render(made: ChangedEndpoint) -> HttpResponse:
        response = answer(WebhookWithSecret.told(made))
        response["Cache-Control"] = "private, no-store"
        return response

    def keep(made: ChangedEndpoint) -> HttpResponse:
        return answer(WebhookWithSecret.told(made).kept())

    return idempotency.post(request, write, render, keep=keep, is_content=False)


@router.declare(
    "GET", "/webhooks/{webhook_id}/deliveries", scope=_SCOPE, answers={200: DeliveryPage}, sends={200: ("Link",)}
)
@costs(get="webhook", query="delivery", trips=1, reads=10)
def list_deliveries(request: ApiRequest, webhook_id: WebhookId, query: Query[DeliveryQuery]) -> HttpResponse:
    """List what was sent to an endpoint, the latest event first."""
    repository = request.acting.repository
    reads: list[Callable[[], Any]] = [
        partial(endpoints.find, repository, webhook_id),
        partial(delivery_log.page, repository, webhook_id, after=query.after, size=query.limit),
    ]
    _, log = fan_out(reads)
    found = DeliveryPage(data=[DeliveryOut.of(row) for row in log.rows], next=answers.next_url(request, log.next))
    return answers.page(found)
