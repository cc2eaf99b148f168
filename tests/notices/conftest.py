"""A worker at hand, mail that stays in this process, and a clock that stands still within its minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.test import override_settings

from portal import clock
from tests.support import mailing
from tests.support.world import World
from tickets.desk import changing


class Minute:
    """A clock that stays within one minute until it is told to go on to the next."""

    def __init__(self) -> None:
        self._at = clock.now().replace(second=1, microsecond=0)

    def now(self) -> datetime:
        self._at += timedelta(microseconds=50)
        return self._at

    def ends(self) -> None:
        self._at = self._at.replace(second=1, microsecond=0) + timedelta(minutes=1)


@pytest.fixture(autouse=True)
def minute(monkeypatch: pytest.MonkeyPatch) -> Minute:
    found = Minute()
    monkeypatch.setattr(clock, "now", found.now)
    return found


@pytest.fixture(autouse=True)
def by_the_outbox() -> Iterator[None]:
    with override_settings(
        EMAIL_BACKEND=mailing.OUTBOX, MAIL_TRANSPORT=mailing.AT_ONCE, PORTAL_BASE_URL="https://desk.example"
    ):
        yield


@pytest.fixture
def desk(world: World) -> World:
    """One ticket of Alice's that is assigned to Bob."""
    world.tickets("acme", 1)
    changing.assign(world.context("bob", "acme"), 1, to=world.users["bob"].id, version=1)
    return world
