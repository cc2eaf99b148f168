"""Write docs/events.md, for whoever receives events, from the declarations."""

from __future__ import annotations

import json
from typing import Final

from delivery.events import event_types
from delivery.events.event_types import EventField, EventType

PATH: Final = "docs/events.md"

_HEAD: Final = """\
# Events

Made from the declarations: change them, then run `python manage.py event_document > docs/events.md`. A test compares.

An endpoint gets the events that it subscribed to, each as one POST with a JSON object:

| field | type | |
|---|---|---|
{envelope}

Events of one ticket may arrive in another order than they happened in. Of two changes of a ticket the later one has the
larger `sequence`; there may be gaps. A comment or note carries that of the last change before it, and those with the
same number follow each other by `timestamp`.

An event that could not be delivered is tried again over three days. It has no more than 256 KB.

A person is an object with `id` and `name`. A moment is text, in UTC: `2026-11-20T09:30:00.000000Z`.
"""


def document() -> str:
    """Return the page: what all events have, then each type with its fields and an example."""
    envelope = "\n".join(map(_row, event_types.ENVELOPE))
    return "\n".join([_HEAD.replace("{envelope}", envelope), *(_section(kind) for kind in event_types.declared())])


def _section(kind: EventType) -> str:
    rows = list(map(_row, kind.fields))
    fields = ["| field of `data` | type | |", "|---|---|---|", *rows, ""] if rows else []
    example = json.dumps(kind.whole_example(), indent=2, ensure_ascii=False)
    return "\n".join(
        [f"## `{kind.name}`, version {kind.version}", "", kind.summary, "", *fields, "```json", example, "```", ""]
    )


def _row(field: EventField) -> str:
    return f"| `{field.name}` | {field.type} | {field.summary} |"
