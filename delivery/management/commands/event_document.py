"""`manage.py event_document`: the page that tells receivers of the types of events."""

from __future__ import annotations

import json
from typing import Any, Final

from delivery.outbox.publisher import ENVELOPE, EventField, EventType, declared_types
from delivery.webhooks import endpoints  # noqa: F401  # declares a type of its own
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost

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


class Command(PortalCommand):
    costs = cost()
    help = f"Print the types of events and their fields, as declared: event_document > {PATH}"

    def work(self, options: dict[str, Any]) -> None:
        self.stdout.write(document(), ending="")


def document() -> str:
    """Return the page: what all events have, then each type with its fields and an example."""
    envelope = "\n".join(map(_row, ENVELOPE))
    return "\n".join([_HEAD.replace("{envelope}", envelope), *(_section(kind) for kind in declared_types())])


def _section(kind: EventType) -> str:
    rows = list(map(_row, kind.fields))
    fields = ["| field of `data` | type | |", "|---|---|---|", *rows, ""] if rows else []
    example = json.dumps(kind.whole_example(), indent=2, ensure_ascii=False)
    return "\n".join(
        [f"## `{kind.name}`, version {kind.version}", "", kind.summary, "", *fields, "```json", example, "```", ""]
    )


def _row(field: EventField) -> str:
    return f"| `{field.name}` | {field.type} | {field.summary} |"
