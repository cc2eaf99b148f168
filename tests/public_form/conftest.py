"""A desk whose public form is open, and somebody outside with a browser that proves its work."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from tenants.audit_trail.recording import Actor
from tests.support.world import World
from tickets.public_form import challenges, form_settings

FORM = "/forms/acme/"
WORDS = {"email": "ada@example.org", "name": "Ada", "subject": "The engine", "body": "It <b>stands</b> still."}


def open_form(world: World, desk: str = "acme", *, by: str = "alice", **values: Any) -> None:
    """Open the form of a desk."""
    person = world.context(by, desk)
    now = form_settings.read(person)
    stored = {name: getattr(now, name) for name in form_settings.FormSettings.__dataclass_fields__ if name != "version"}
    form_settings.change(
        person, values={**stored, "is_on": True, **values}, version=now.version, by=Actor(person.user_id)
    )


def solved(challenge: str, bits: int) -> str:
    """The proof of a challenge."""
    counter = 0
    while int.from_bytes(hashlib.sha256(f"{challenge}.{counter}".encode()).digest(), "big") >> (256 - bits):
        counter += 1
    return str(counter)


@dataclass
class Guest:
    """Somebody outside, at a network address of their own."""

    address: str = "198.51.100.7"
    path: str = FORM

    def __post_init__(self) -> None:
        self.client = Client(REMOTE_ADDR=self.address)

    def challenge(self) -> tuple[str, int]:
        page = self.client.get(self.path).content.decode()
        found = re.search(r'name="challenge" value="([^"]+)" data-bits="(\d+)"', page)
        assert found is not None
        return found[1], int(found[2])

    def form(self, **values: Any) -> dict[str, Any]:
        """The fields of a page that is open, with its proof."""
        challenge, bits = self.challenge()
        return {**WORDS, "challenge": challenge, "proof": solved(challenge, bits), "website": "", **values}

    def post(self, fields: Mapping[str, Any], **headers: Any) -> Any:
        return self.client.post(self.path, fields, **headers)

    def send(self, **values: Any) -> Any:
        return self.post(self.form(**values))


@pytest.fixture(autouse=True)
def quick_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenges, "LEAST_BITS", 4)


@pytest.fixture
def open_desk(world: World) -> World:
    open_form(world)
    return world
