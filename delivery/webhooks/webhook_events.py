"""Declare the one event that webhooks have of their own."""

from __future__ import annotations

from typing import Final

from delivery.outbox.event_types import EventField, EventType, declare_event, declared

TEST: Final = declare_event(
    EventType(
        "webhook.test",
        1,
        "Somebody pressed “Send a test” for an endpoint. No other endpoint is told of it.",
        (
            EventField("endpoint", "text", "the id of the endpoint", "ep_5f2c9a7be01d4432"),
            EventField("sent_by", "text", "the name of the person who asked for it", "Alice Example"),
        ),
    )
)


def offered() -> tuple[EventType, ...]:
    """Return the types that an endpoint can subscribe to: all but the test, which each endpoint gets when asked for."""
    return tuple(kind for kind in declared() if kind != TEST)
