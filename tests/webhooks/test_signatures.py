"""Signatures as receivers check them: with the library of the standard, and by hand."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from delivery.outbox import destinations
from delivery.webhooks import signatures

BODY = '{"type": "ticket.created", "data": {"title": "Grüße"}}'.encode()


def signed(*secrets: str, body: bytes = BODY, at: int | None = None) -> dict[str, str]:
    return signatures.headers(secrets, event_id="evt_1", timestamp=at or int(time.time()), body=body)


def test_the_library_of_the_standard_accepts_a_signature() -> None:
    secret = signatures.new_secret()
    assert Webhook(secret).verify(BODY, signed(secret))["type"] == "ticket.created"


def test_while_a_secret_is_replaced_both_verify() -> None:
    new, old = signatures.new_secret(), signatures.new_secret()
    headers = signed(new, old)
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (new, old):
        assert Webhook(secret).verify(BODY, headers)


def test_another_secret_body_id_or_time_does_not_verify() -> None:
    secret = signatures.new_secret()
    headers = signed(secret)
    altered = [
        (signatures.new_secret(), BODY, headers),
        (secret, BODY + b" ", headers),
        (secret, BODY, headers | {"webhook-id": "evt_2"}),
        (secret, BODY, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
        (secret, BODY, signed(secret, at=int(time.time()) - 600)),
    ]
    for one, body, sent in altered:
        with pytest.raises(WebhookVerificationError):
            Webhook(one).verify(body, sent)


@given(st.binary(), st.text("abcdef0123456789_", min_size=1), st.integers(0, 2**40))
def test_our_own_check_agrees_with_our_signature(body: bytes, event_id: str, timestamp: int) -> None:
    new, old = signatures.new_secret(), signatures.new_secret()
    headers = signatures.headers([new, old], event_id=event_id, timestamp=timestamp, body=body)

    def verifies(secret: str, **other: object) -> bool:
        given_values = {"event_id": event_id, "timestamp": str(timestamp), "body": body}
        signature = headers["webhook-signature"]
        return signatures.verifies(secret, **{**given_values, "signature": signature, **other})  # type: ignore[arg-type]

    assert verifies(new)
    assert verifies(old)
    assert not verifies(signatures.new_secret())
    assert not verifies(new, body=body + b"x")
    assert not verifies(new, signature="v1,")


@given(st.text(), st.text(), st.text())
def test_what_is_no_signature_does_not_verify(secret: str, timestamp: str, signature: str) -> None:
    assert not signatures.verifies(secret, event_id="e", timestamp=timestamp, body=b"", signature=signature)


def test_secrets_differ_and_are_as_long_as_the_standard_says() -> None:
    made = {signatures.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(secret) for secret in made} == {len("whsec_") + 44}


# --- the page for a receiver's engineer ---

PAGE = (Path(settings.BASE_DIR) / "docs" / "webhooks.md").read_text()


def test_the_check_by_hand_on_the_page_is_right() -> None:
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def is_ours" in block]
    names: dict[str, Any] = {}
    exec(compile(code, "docs/webhooks.md", "exec"), names)  # noqa: S102  # our own page
    is_ours = names["is_ours"]
    new, old = signatures.new_secret(), signatures.new_secret()
    headers = signed(new, old)
    assert is_ours(new, headers, BODY)
    assert is_ours(old, headers, BODY)
    assert not is_ours(signatures.new_secret(), headers, BODY)
    assert not is_ours(new, headers, BODY + b" ")
    assert not is_ours(new, signed(new, at=int(time.time()) - 600), BODY)


def test_the_page_says_when_a_delivery_is_tried_again() -> None:
    words = {5: "5 seconds", 300: "5 minutes", 1800: "30 minutes", 7200: "2, 5, 10, 14, 20 and 20 hours"}
    said = " ".join(PAGE.split())
    assert ", ".join(words.values()) in said
    assert [*words, *(hours * 3600 for hours in (5, 10, 14, 20, 20))] == [*destinations.PAUSES]
    assert destinations.JITTER == 0.2
    assert destinations.ATTEMPTS == 10
