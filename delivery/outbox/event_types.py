"""Declare event types: name, version and payload, in one place, from which docs/events.md is made.

A package declares what it publishes (`declare_event`). The version of a type grows when a field goes or changes its
meaning; a new field leaves it as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_noop

from portal.errors import Invalid

PAYLOAD_LIMIT: Final = 256 * 1024  # bytes of one event's JSON
_NAME: Final = re.compile(r"[a-z]+\.[a-z]+(?:_[a-z]+)*\Z")


@dataclass(frozen=True)
class EventField:
    """One field of a payload. `type` is a word for people; `example` is JSON-ready and stands in the documentation."""

    name: str
    type: str
    summary: str
    example: Any


@dataclass(frozen=True)
class EventType:
    """Something that can be told: "ticket.created". `summary` is a sentence that says when it is."""

    name: str
    version: int
    summary: str
    fields: tuple[EventField, ...]

    def example(self) -> dict[str, Any]:
        """Return a payload as the declaration describes it."""
        return {field.name: field.example for field in self.fields}

    def whole_example(self, **values: Any) -> dict[str, Any]:
        """Return an event of this type as receivers get it, with these values in place of the declared examples."""
        around = {field.name: field.example for field in ENVELOPE}
        return around | {"type": self.name, "version": self.version, "data": self.example()} | values


# What every event has around its payload. It is made in delivery/outbox/publisher.py.
ENVELOPE: Final = (
    EventField(
        "id",
        gettext_noop("text"),
        gettext_noop(
            "the same however often the event arrives, and what to know it by; also in the header `webhook-id`"
        ),
        "evt_5b1f0c2d3e4a4b5c8d9e0f1a2b3c4d5e_0",
    ),
    EventField("type", gettext_noop("text"), gettext_noop("one of those below"), ""),
    EventField(
        "version",
        gettext_noop("number"),
        gettext_noop("of the type; it grows if a field is removed or changes its meaning, not if one is added"),
        1,
    ),
    EventField("timestamp", gettext_noop("moment"), gettext_noop("when it happened"), "2026-11-20T09:30:00.000000Z"),
    EventField(
        "tenant",
        gettext_noop("object"),
        gettext_noop("`id`, `name` and `slug` of the desk"),
        {"id": "9c8b7a6f5e4d4c3b8a291807f6e5d4c3", "name": "Acme", "slug": "acme"},
    ),
    EventField(
        "sequence",
        gettext_noop("number"),
        gettext_noop("the version of the ticket after the change; a later change has a larger one"),
        3,
    ),
    EventField(
        "data", gettext_noop("object"), gettext_noop("the fields below; the receiver needs no further request"), {}
    ),
)


@dataclass(frozen=True)
class Event:
    """Something that has happened. `data` has exactly the fields of its type.

    `sequence` grows with each change of what it happened to, so that a receiver can tell older from newer. `to` names
    destinations of our own, which get the event beside those that subscribed to its type.
    """

    type: EventType
    data: Mapping[str, Any]
    sequence: int
    to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        declared = {field.name for field in self.type.fields}
        if self.data.keys() != declared:
            raise ValueError(f"{self.type.name} has the fields {sorted(declared)}, not {sorted(self.data)}")


_declared: Final[dict[str, EventType]] = {}


def declare_event(kind: EventType) -> EventType:
    """Add a type to those that can be subscribed to. Raises ValueError for a bad name, and for one that is taken."""
    if not _NAME.match(kind.name):
        raise ValueError(f"{kind.name} is no name of an event type")
    if _declared.setdefault(kind.name, kind) != kind:
        raise ValueError(f"{kind.name} is declared twice")
    return kind


def declared() -> tuple[EventType, ...]:
    return tuple(_declared[name] for name in sorted(_declared))


def find(name: str) -> EventType:
    """Return the type of this name. Raises Invalid where there is none."""
    try:
        return _declared[name]
    except KeyError:
        raise Invalid(f"There is no event type “{name}”.", field="event_types") from None


def encoded(event: Event) -> str:
    """Return an event as the outbox stores it: JSON of type, version, sequence and data.

    Raises Invalid above PAYLOAD_LIMIT.
    """
    content = {
        "type": event.type.name,
        "version": event.type.version,
        "sequence": event.sequence,
        "data": dict(event.data),
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if (size := len(text.encode())) > PAYLOAD_LIMIT:
        raise Invalid(
            f"The event “{event.type.name}” would have {size:,} bytes, and those who subscribed to it take at most "
            f"{PAYLOAD_LIMIT:,}. Nothing was changed. Shorten the text."
        )
    return text


# --- their documentation ---

PATH: Final = "docs/events.md"

_HEAD: Final = """\
# Events

Generated from the declarations: after a change run `python manage.py event_document > docs/events.md`. A test compares.

An endpoint receives the events it subscribed to, each as one POST with a JSON object:

| field | type | |
|---|---|---|
{envelope}

Events of one ticket may arrive out of order. Of two changes of a ticket the later one has the
larger `sequence`; there may be gaps. A comment or note has the `sequence` of the last change before it; sort
those with the same number by `timestamp`.

An event that could not be delivered is tried again for three days. An event has up to 256 KB.

A person is an object with `id` and `name`. A moment is a text, in UTC: `2026-11-20T09:30:00.000000Z`.
"""


def document() -> str:
    """Return the page: what all events have, then each type with its fields and an example."""
    envelope = "\n".join(map(_row, ENVELOPE))
    return "\n".join([_HEAD.replace("{envelope}", envelope), *(_section(kind) for kind in declared())])


def _section(kind: EventType) -> str:
    rows = list(map(_row, kind.fields))
    fields = ["| field of `data` | type | |", "|---|---|---|", *rows, ""] if rows else []
    example = json.dumps(kind.whole_example(), indent=2, ensure_ascii=False)
    return "\n".join(
        [f"## `{kind.name}`, version {kind.version}", "", kind.summary, "", *fields, "```json", example, "```", ""]
    )


def _row(field: EventField) -> str:
    return f"| `{field.name}` | {field.type} | {field.summary} |"
