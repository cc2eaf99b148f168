"""Deliver one event to one endpoint: sign it, send it once, write down what came of it, and say how it goes on.

When a delivery is given up after some three days and none was answered meanwhile, or when the endpoint answers 410
Gone, it is paused and its owners are told. For that pause alone the delivery role has rights beside a tenant's: it
changes what the tenant subscribed to, and adds a row to the audit trail.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.outbox import destinations, publisher
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.webhooks import delivery_log, endpoints, safe_addresses, signatures
from delivery.webhooks.delivery_log import ANSWERED, DEAD, FAILED, SKIPPED, WAS_PAUSED, Attempt
from delivery.webhooks.safe_client import DEADLINE, AddressRefused, HttpAnswer, NoAnswer, SafeClient
from delivery.webhooks.stored import EndpointItem, SecretItem
from portal import clock, logs
from portal.dynamo.client import fan_out
from portal.errors import ConditionFailed, Conflict, Invalid, NotFound
from portal.load import spending
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.schema import keys
from portal.web.locales import declare_stored
from tenants.audit_trail.recording import Actor
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext

log = logging.getLogger("pooldesk.webhooks")

GONE: Final = 410
_ASK_FOR_TIME: Final = (429, 503)
_USER_AGENT: Final = "Pooldesk-Webhooks/1"
_WORKER: Final = Actor(origin="webhooks")

# Writes the mails that tell of an endpoint that is paused, and why.
# These are stored, in English; pages translate them.
REDIRECTED: Final = declare_stored(gettext_noop("Answered %(status)s. Redirects are not followed."))
ANSWERED_WITH: Final = declare_stored(gettext_noop("Answered %(status)s."))
IS_GONE: Final = gettext_noop("It answered 410 Gone.")
NEVER_ANSWERED: Final = declare_stored(gettext_noop("No delivery was answered since %(day)s. The last: %(note)s"))

Write = Callable[[TenantContext, EndpointItem, str], list[OutgoingMail]]


def deliver(work: Work, *, write: Write) -> Outcome:
    """Send an event to an endpoint. Raises what the database raises; the delivery is then made again.

    Costs two GetItems at the same time and one UpdateItem, and one more where the endpoint begins or ceases to fail.
    """
    endpoint, secret = _stored(work)
    if endpoint is None or secret is None:
        return Outcome("answered", note="The endpoint was removed; nobody waits for this any more.")
    if endpoint.state == endpoints.PAUSED:
        delivery_log.note(work, endpoint, Attempt(clock.stamp(), note=WAS_PAUSED), state=SKIPPED)
        return Outcome("answered", note="The endpoint is paused; its log has this, to be sent again from there.")
    attempt, asked = _attempt(work, endpoint, endpoints.signing(secret))
    if 200 <= attempt.status < 300:
        delivery_log.note(work, endpoint, attempt, state=ANSWERED)
        _note_health(work, endpoint, is_well=True)
        return Outcome("answered", note=ANSWERED_WITH % {"status": attempt.status})
    note = attempt.note or ANSWERED_WITH % {"status": attempt.status}
    pause = destinations.retry_pause(work.attempt)
    if attempt.status == GONE or pause is None:
        delivery_log.note(work, endpoint, attempt, state=DEAD)
        _note_health(work, endpoint, is_well=False)
        if attempt.status == GONE:
            _pause(work, endpoint, IS_GONE, write)
        elif _failed_throughout(work, endpoint):
            because = NEVER_ANSWERED % {"day": endpoint.failing_since[:10], "note": note}
            _pause(work, endpoint, because, write)
        return Outcome("dead", note=note)
    seconds = max(pause.total_seconds(), asked)
    next_at = clock.stamp(clock.now() + timedelta(seconds=seconds))
    delivery_log.note(work, endpoint, attempt, state=FAILED, next_at=next_at)
    _note_health(work, endpoint, is_well=False)
    return Outcome("failed", seconds, note)


def _stored(work: Work) -> tuple[EndpointItem | None, SecretItem | None]:
    def read(model: type[Any]) -> Any:
        return work.repository.get(model, keys.tenant, sort=work.destination, consistent=True)

    endpoint, secret = fan_out([partial(read, EndpointItem), partial(read, SecretItem)])
    return endpoint, secret


def body_of(work: Work) -> bytes:
    """Return the bytes of a delivery: its event in the envelope, as JSON."""
    return json.dumps(publisher.envelope(work.row, work.index), ensure_ascii=False, separators=(",", ":")).encode()


def _attempt(work: Work, endpoint: EndpointItem, secrets: Sequence[str]) -> tuple[Attempt, float]:
    """Send once. Return what came of it, and how many seconds the receiver asked us to wait."""
    at, begun = clock.stamp(), time.monotonic()
    body = body_of(work)
    headers = {"content-type": "application/json", "user-agent": _USER_AGENT}
    if work.row.request:
        headers[logs.HEADER.lower()] = work.row.request
    event_id = publisher.delivery_id(work.row, work.index)
    headers |= signatures.headers(secrets, event_id=event_id, timestamp=int(time.time()), body=body)
    note, answer = "", None
    spending.count(work.tenant_id, deliveries=1)
    try:
        target = endpoints.read_target(endpoint.url)
        answer = _client(target, work.deadline - begun).post(target, body=body, headers=headers)
    except (AddressRefused, Invalid, NoAnswer) as error:
        note = error.message
    ms = round((time.monotonic() - begun) * 1000)
    if answer is None:
        return Attempt(at, ms=ms, note=note), 0
    if 300 <= answer.status < 400:
        note = REDIRECTED % {"status": answer.status}
    excerpt = answer.body.decode(errors="replace")[: delivery_log.EXCERPT_LIMIT]
    return Attempt(at, answer.status, ms, note, excerpt), _asked(answer)


def _client(target: safe_addresses.WebhookAddress, left: float) -> SafeClient:
    is_receiver = target.scheme == "http"  # the development receiver, which alone may be without TLS
    allowed = safe_addresses.is_loopback if is_receiver else safe_addresses.is_public
    return SafeClient(is_allowed=allowed, deadline=min(DEADLINE, max(left, 0.1)))


def _asked(answer: HttpAnswer) -> float:
    if answer.status not in _ASK_FOR_TIME:
        return 0
    return destinations.asked_wait(answer.header("retry-after"), date=answer.header("date"))


def _note_health(work: Work, endpoint: EndpointItem, *, is_well: bool) -> None:
    """Write down that an endpoint begins or ceases to fail; nothing where it goes on as before."""
    key = EndpointItem(endpoint.tenant_id, endpoint.endpoint_id)
    since = EndpointItem.failing_since
    with suppress(ConditionFailed):  # another delivery was first, or the endpoint was removed
        if is_well and endpoint.failing_since:
            work.repository.update(key, [since.remove()], condition=since == endpoint.failing_since)
        elif not is_well and not endpoint.failing_since:
            fresh = EndpointItem.endpoint_id.exists() & since.does_not_exist()
            work.repository.update(key, [since.set(clock.stamp())], condition=fresh)


def _failed_throughout(work: Work, endpoint: EndpointItem) -> bool:
    """Tell whether nothing was answered from the first attempt of this delivery to the last."""
    first = work.tried.first_at
    return bool(endpoint.failing_since and first and endpoint.failing_since <= first)


def _pause(work: Work, endpoint: EndpointItem, because: str, write: Write) -> None:
    try:
        tenant = context.for_system(tenant_directory.get(work.tenant_id), name="Pooldesk")
        mails = write(tenant, endpoint, because)
        endpoints.pause(tenant, endpoint_id=work.destination, by=_WORKER, because=because, mails=mails)
    except (Conflict, NotFound) as error:
        log.info("An endpoint was not paused: tenant %s, %s: %s", work.tenant_id, work.destination, error.message)
        return
    log.warning("An endpoint was paused: tenant %s, %s", work.tenant_id, work.destination)
    if outgoing.leaves_at_once():
        outgoing.send_all(mails)
