"""Write docs/events.md, for whoever receives events, from the declarations."""

from __future__ import annotations

import json
from typing import Any, Final

from delivery.events import event_types
from delivery.events.event_types import EventType

PATH: Final = "docs/events.md"

_HEAD: Final = """\
# Events

Made from the declarations: change them, then run `python manage.py event_document > docs/events.md`. A test compares.

An endpoint gets the events that it subscribed to, each as one POST with a JSON object:

| field | type | |
|---|---|---|
| `id` | text | the same however often the event arrives, and what to know it by; also in the header `webhook-id` |
| `type` | text | one of those below |
| `version` | number | of the type; it grows when a field goes or changes its meaning, not when one is added |
| `timestamp` | moment | when it happened |
| `tenant` | object | `id`, `name` and `slug` of the desk |
| `sequence` | number | the version that the change made of the ticket, see below |
| `data` | object | the fields below; all that there is to know, so that nobody has to ask back |

Events of one ticket may arrive in another order than they happened in. Of two changes of a ticket the later one has the
larger `sequence`; there may be gaps. A comment or note carries that of the last change before it, and those with the
same number follow each other by `timestamp`.

An event that could not be delivered is tried again over three days. It has no more than 256 KB.

A person is an object with `id` and `name`. A moment is text, in UTC: `2026-11-20T09:30:00.000000Z`.
"""


def document() -> str:
    """Return the page: what all events have, then each type with its fields and an example."""
    return "\n".join([_HEAD, *(_section(kind) for kind in event_types.declared())])


def _section(kind: EventType) -> str:
    rows = [f"| `{field.name}` | {field.type} | {field.summary} |" for field in kind.fields]
    fields = ["| field of `data` | type | |", "|---|---|---|", *rows, ""] if rows else []
    example = json.dumps(_example(kind), indent=2, ensure_ascii=False)
    return "\n".join(
        [f"## `{kind.name}`, version {kind.version}", "", kind.summary, "", *fields, "```json", example, "```", ""]
    )


def _example(kind: EventType) -> dict[str, Any]:
    return {
        "id": "evt_5b1f0c2d3e4a4b5c8d9e0f1a2b3c4d5e_0",
        "type": kind.name,
        "version": kind.version,
        "timestamp": "2026-11-20T09:30:00.000000Z",
        "tenant": {"id": "9c8b7a6f5e4d4c3b8a291807f6e5d4c3", "name": "Acme", "slug": "acme"},
        "sequence": 3,
        "data": kind.example(),
    }
