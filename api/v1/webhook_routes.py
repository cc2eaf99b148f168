"""Set up webhooks, and read what came of their deliveries."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from django.http import HttpResponse
from ninja import Query

from api.door import answers, idempotency
from api.door.routing import ApiRequest, ApiRouter
from api.v1.webhook_schemas import (
    DeliveryOut,
    DeliveryPage,
    DeliveryQuery,
    WebhookId,
    WebhookList,
    WebhookOut,
    WebhookToAdd,
    WebhookToChange,
    WebhookWithSecret,
)
from delivery.webhooks import delivery_log, endpoints, redelivering, rotation
from delivery.webhooks.endpoint_changes import ChangedEndpoint
from delivery.webhooks.endpoints import EndpointChoice
from delivery.webhooks.stored import EndpointItem
from portal.dynamo.client import fan_out
from tenants.api_keys.scopes import Scope

router: Final = ApiRouter()
_SCOPE: Final = Scope.WEBHOOKS_MANAGE
# What else a key needs to have events of these types sent to an address: whoever gets one reads what is in it.
_READING: Final = (("ticket.", Scope.TICKETS_READ), ("ticket.note_added", Scope.NOTES_READ))


@router.declare("GET", "/webhooks", scope=_SCOPE, answers={200: WebhookList, 304: None}, headers=answers.KNOWN)
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
def remove_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Remove an endpoint and its secret.

    What it still has to get is not sent.
    """
    endpoints.remove(request.acting, endpoint_id=webhook_id, by=request.caller.actor)
    return HttpResponse(status=204)


@router.declare(
    "POST", "/webhooks/{webhook_id}/pause", scope=_SCOPE, answers={200: WebhookOut}, headers=idempotency.ONCE
)
def pause_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Pause an endpoint.

    What happens while it is paused is not sent to it later.
    """
    return _done(request, partial(endpoints.pause, endpoint_id=webhook_id, by=request.caller.actor))


@router.declare(
    "POST", "/webhooks/{webhook_id}/resume", scope=_SCOPE, answers={200: WebhookOut}, headers=idempotency.ONCE
)
def resume_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Resume an endpoint that is paused."""
    return _done(request, partial(endpoints.resume, endpoint_id=webhook_id, by=request.caller.actor))


@router.declare(
    "POST", "/webhooks/{webhook_id}/test", scope=_SCOPE, answers={202: WebhookOut}, headers=idempotency.ONCE
)
def test_webhook(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Send an endpoint a test event, whatever it subscribed to."""
    return _done(request, partial(redelivering.send_test, endpoint_id=webhook_id), status=202, is_content=True)


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
def replace_webhook_secret(request: ApiRequest, webhook_id: WebhookId) -> HttpResponse:
    """Replace the secret of an endpoint.

    Each old secret signs beside the new one for 24 hours, so that nothing is refused meanwhile. Up to three old
    secrets sign; a fourth replacement within 24 hours is a 409. Sent again with the same Idempotency-Key, the request
    gets the endpoint with null in the place of the secret.
    """

    def write(companion: Any) -> None:
        rotation.rotate(
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
def list_deliveries(request: ApiRequest, webhook_id: WebhookId, query: Query[DeliveryQuery]) -> HttpResponse:
    """List what was sent to an endpoint, the latest event first."""
    repository = request.acting.repository
    reads: list[Callable[[], Any]] = [
        partial(endpoints.find, repository, webhook_id),
        partial(delivery_log.page, repository, webhook_id, after=query.after, size=query.limit),
    ]
    _, log = fan_out(reads)
    found = DeliveryPage(data=[DeliveryOut.of(row) for row in log.rows], next=answers.next_url(request, log.next))
    return answers.page(request, found, after=log.next)
