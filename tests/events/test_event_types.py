"""Types of events are declared once, and what is written of them is made from that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from delivery.management.commands import event_document
from delivery.outbox import publisher
from delivery.outbox.publisher import PAYLOAD_LIMIT, Event, EventField, EventType
from portal.errors import Invalid

TEXT = EventField("text", "text", "anything", "x")
KIND = EventType("trial.made", 1, "Somebody tried something.", (TEXT,))


def test_the_page_of_events_is_made_from_the_declarations() -> None:
    # In a process of its own: other tests declare types that the product does not have.
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "event_document"]
    wanted = subprocess.run(
        command, env={**os.environ, "DEBUG": "1"}, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    assert (settings.BASE_DIR / event_document.PATH).read_text() == wanted, (
        f"run: manage.py event_document > {event_document.PATH}"
    )


@pytest.mark.parametrize("kind", publisher.declared_types(), ids=lambda kind: kind.name)
def test_each_type_is_on_the_page_with_its_version_and_fields(kind: EventType) -> None:
    page = event_document.document()
    section = page.partition(f"## `{kind.name}`, version {kind.version}\n")[2].partition("\n## ")[0]
    assert kind.summary in section
    assert all(f"| `{field.name}` | {field.type} |" in section for field in kind.fields)
    example = json.loads(section.partition("```json\n")[2].partition("\n```")[0])
    Event(kind, example["data"], 1)  # raises where the example is not as declared


@pytest.mark.parametrize("data", [{}, {"other": "x"}, {"text": "x", "other": "x"}])
def test_a_payload_has_the_declared_fields_and_no_others(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has the fields"):
        Event(KIND, data, 1)


def test_an_unknown_type_is_a_sentence() -> None:
    with pytest.raises(Invalid, match=r"There is no event type “ticket\.exploded”"):
        publisher.event_type("ticket.exploded")


def test_a_type_cannot_be_declared_in_two_ways() -> None:
    taken = publisher.declared_types()[0]
    assert publisher.declare_event(taken) is taken
    with pytest.raises(ValueError, match="declared twice"):
        publisher.declare_event(EventType(taken.name, taken.version + 1, taken.summary, taken.fields))


@pytest.mark.parametrize("name", ["", "ticket", "Ticket.created", "ticket.created.twice", "ticket created", "#.#"])
def test_a_name_is_two_words_with_a_dot(name: str) -> None:
    with pytest.raises(ValueError, match="no name of an event type"):
        publisher.declare_event(EventType(name, 1, "", ()))


def test_a_payload_may_have_256_kb_and_no_byte_more() -> None:
    frame = len(publisher.encoded(Event(KIND, {"text": ""}, 1)).encode())
    publisher.encoded(Event(KIND, {"text": "x" * (PAYLOAD_LIMIT - frame)}, 1))
    with pytest.raises(Invalid, match="at most 262,144"):
        publisher.encoded(Event(KIND, {"text": "x" * (PAYLOAD_LIMIT - frame + 1)}, 1))
    with pytest.raises(Invalid):
        publisher.encoded(Event(KIND, {"text": "\u00e4" * (PAYLOAD_LIMIT // 2)}, 1))  # bytes, not characters
