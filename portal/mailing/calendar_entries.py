"""Show an invitation of a calendar (RFC 5545) as text."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from portal import plain_text

_SIZE_LIMIT: Final = 256 * 1024  # bytes
_TEXT_LIMIT: Final = 500  # characters of a line
_DESCRIPTION_LIMIT: Final = 10_000
_KINDS: Final = {
    "REQUEST": "Invitation",
    "PUBLISH": "Calendar entry",
    "CANCEL": "Cancelled",
    "REPLY": "Answer to an invitation",
    "COUNTER": "Proposal of another time",
}


def read(content: bytes) -> str:
    """Return the first event of a calendar file as text, "" where it cannot be read."""
    if len(content) > _SIZE_LIMIT:
        return ""
    from icalendar import Calendar  # eighty modules, for the few letters that have a calendar

    try:
        calendar = Calendar.from_ical(content.decode("utf-8", "replace"))
        event = next((one for one in calendar.walk() if one.name in ("VEVENT", "VTODO")), None)
        return _text(str(calendar.get("method", "PUBLISH")).upper(), event) if event else ""
    except Exception:  # of any kind: the library raises KeyError and TypeError for broken entries
        return ""


def _text(method: str, event: Any) -> str:
    lines = [
        f"{_KINDS.get(method, 'Calendar entry')}: {_line(event.get('summary')) or '(no title)'}",
        f"Begins: {_moment(event.get('dtstart'))}",
        f"Ends: {_moment(event.get('dtend'))}",
        f"Place: {_line(event.get('location'))}",
        f"Organiser: {_person(event.get('organizer'))}",
        f"Answer: {_answers(event.get('attendee'))}" if method == "REPLY" else "",
        f"Repeats: {_repeats(event.get('rrule'))}",
    ]
    description = str(event.get("description") or "").strip()[:_DESCRIPTION_LIMIT]
    told = "\n".join(line for line in lines if line and not line.endswith(": "))
    return f"{told}\n\n{description}".strip()


def _line(value: Any) -> str:
    return plain_text.without_controls(str(value), limit=_TEXT_LIMIT) if value else ""


def _moment(value: Any) -> str:
    if value is None:
        return ""
    at = value.dt
    if not isinstance(at, datetime):
        return f"{at:%Y-%m-%d}"
    zone = _line(value.params.get("TZID")) or ("UTC" if at.tzinfo else "")
    return f"{at:%Y-%m-%d %H:%M} {zone}".strip()


def _person(value: Any) -> str:
    if not value:
        return ""
    address = _line(value).removeprefix("mailto:").removeprefix("MAILTO:")
    name = _line(value.params.get("CN"))
    return f"{name} <{address}>" if name and name != address else address


def _answers(value: Any) -> str:
    people = value if isinstance(value, list) else [value] if value else []
    return ", ".join(f"{_person(one)} {_line(one.params.get('PARTSTAT')).lower()}".strip() for one in people[:10])


def _repeats(value: Any) -> str:
    return _line(value.to_ical().decode("utf-8", "replace")) if value else ""
