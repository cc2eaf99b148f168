"""Say what templates show of endpoints, deliveries and event types."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from delivery.outbox import publisher
from delivery.outbox.publisher import EventField, EventType
from delivery.outbox.stored import OutboxItem
from delivery.webhooks import (
    delivering,  # noqa: F401  # declares the stored reasons that are shown here
    delivery_log,
    endpoints,
)
from delivery.webhooks.stored import DeliveryItem, EndpointItem, log_key_parts
from portal import clock, plain_text
from portal.web import locales
from portal.web.locales import stored_text
from tenants.tenancy.context import TenantContext

LOOKS: Final = 8  # times that a page looks again for what was just sent, a second apart


@dataclass(frozen=True)
class ShownBadge:
    """A state as a word, with the kind of badge and the icon that go with it."""

    named: str
    kind: str
    icon: str

    @property
    def word(self) -> str:
        return gettext(self.named)


_ACTIVE: Final = ShownBadge(gettext_noop("Active"), "resolved", "check")
_FAILING: Final = ShownBadge(gettext_noop("Failing"), "pending", "warning")
_PAUSED: Final = ShownBadge(gettext_noop("Paused"), "closed", "close")
_RESULTS: Final = {
    delivery_log.ANSWERED: ShownBadge(gettext_noop("Delivered"), "resolved", "check"),
    delivery_log.FAILED: ShownBadge(gettext_noop("Will be tried again"), "pending", "warning"),
    delivery_log.DEAD: ShownBadge(gettext_noop("Not delivered"), "failed", "error"),
    delivery_log.SKIPPED: ShownBadge(gettext_noop("Skipped"), "closed", "close"),
}


def endpoint(item: EndpointItem) -> dict[str, Any]:
    paused, failing = item.state == endpoints.PAUSED, bool(item.failing_since)
    overlap_ends = clock.parse(item.rotated_at) + endpoints.OVERLAP
    return {
        "id": item.endpoint_id,
        "url": item.url,
        "description": item.description,
        "name": item.description or urlsplit(item.url).netloc,
        "event_types": list(item.event_types),
        "badge": _PAUSED if paused else _FAILING if failing else _ACTIVE,
        "is_paused": paused,
        "paused_because": stored_text(item.paused_because or ""),
        "failing_since": clock.parse(item.failing_since) if failing and not paused else None,
        "version": int(item.version),
        "created_at": clock.parse(item.created_at),
        "rotated_at": clock.parse(item.rotated_at),
        "overlap_ends": overlap_ends if item.rotated_at != item.created_at and overlap_ends > clock.now() else None,
    }


def delivery(row: DeliveryItem) -> dict[str, Any]:
    at, event_id = log_key_parts(row.timestamp_event_id)
    return {
        "name": delivery_log.name_of(row),
        "event_id": event_id,
        "event_type": row.event_type,
        "subject": row.subject.replace("/", " "),
        "ticket": _ticket_in(row.subject),
        "at": clock.parse(at),
        "badge": _RESULTS[row.state],
        "is_failed": row.state == delivery_log.FAILED,
        "is_answered": bool(row.status),
        "answer": _answer(int(row.status), was_sent=row.state != delivery_log.SKIPPED),
        "took": "" if row.state == delivery_log.SKIPPED else _took(int(row.ms)),
        "attempts": len(row.attempts),
        "note": stored_text(row.note),
        "next_at": clock.parse(row.next_at) if row.next_at else None,
    }


def _ticket_in(subject: str) -> int | None:
    kind, _, number = subject.partition("/")
    return plain_text.whole_number(number, digits=15) if kind == "ticket" else None


def delivery_page(row: DeliveryItem, stored: OutboxItem | None) -> dict[str, Any]:
    """Return a delivery with its request, its answer and all of its attempts."""
    _, event_id = log_key_parts(row.timestamp_event_id)
    body = ""
    if stored is not None:
        body = _pretty(publisher.envelope(stored, int(event_id.rpartition("_")[2])))
    tries = [
        {
            "note": stored_text(tried["note"]),
            "at": clock.parse(tried["at"]),
            "took": _took(int(tried["ms"])) if tried["note"] != delivery_log.WAS_PAUSED else "",
            "answer": _answer(int(tried["status"]), was_sent=tried["note"] != delivery_log.WAS_PAUSED),
        }
        for tried in row.attempts
    ]
    return {"url": row.url, "body": body, "excerpt": row.excerpt, "tries": tries[::-1], **delivery(row)}


def event_type(tenant: TenantContext, kind: EventType) -> dict[str, Any]:
    """Return an event type with an example of what is sent for it, as this tenant gets it."""
    desk = {"id": tenant.tenant_id, "name": tenant.name, "slug": tenant.slug}
    return {
        "name": kind.name,
        "version": kind.version,
        "summary": gettext(kind.summary),
        "fields": fields(kind.fields),
        "example": _pretty(kind.whole_example(tenant=desk)),
    }


def fields(declared: Iterable[EventField]) -> list[dict[str, Any]]:
    return [
        {"name": field.name, "type": gettext(field.type), "summary": _with_code(gettext(str(field.summary)))}
        for field in declared
    ]


def looks_left(text: str | None) -> int:
    """Return how often a page still looks again by itself, by what its address says."""
    return min(plain_text.whole_number(text or "", digits=2) or 0, LOOKS)


def datetime_local(moment: datetime) -> str:
    """Return a moment as an input of a form takes it, in the zone of the reader."""
    return f"{locales.current().local(moment):%Y-%m-%dT%H:%M}"


def _answer(status: int, *, was_sent: bool) -> str:
    if not was_sent:
        return gettext("Not sent")
    return f"{status}" if status else gettext("No answer")


def _took(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{locales.current().number(round(ms / 1000, 1), decimals=1)} s"


def _with_code(text: str) -> SafeString:
    """Return a sentence in which what stands between backticks is code."""
    plain, *rest = text.split("`")
    return format_html(
        "{}{}", plain, format_html_join("", "<code>{}</code>{}", zip(rest[::2], rest[1::2], strict=True))
    )


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
