"""Mail that stays in this process, and a desk whose rules a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from tenants.audit_trail.recording import SYSTEM
from tests.support import mailing
from tests.support.world import World
from tickets.rules import rule_changes

AddRule = Callable[..., str]


@pytest.fixture(autouse=True)
def by_the_outbox() -> Iterator[None]:
    with override_settings(
        EMAIL_BACKEND=mailing.OUTBOX, MAIL_TRANSPORT=mailing.AT_ONCE, PORTAL_BASE_URL="https://desk.example"
    ):
        yield


@pytest.fixture
def rule(world: World) -> AddRule:
    """Switch a rule on, of its event, its filters and its actions, and return its id."""

    def add(event: str | dict[str, str], only: dict[str, str] | None = None, *, name: str = "", **then: Any) -> str:
        when = event if isinstance(event, dict) else {"event": event}
        tenant = world.context("alice", "acme")
        given = {"when": when, "if": only or {}, "then": then}
        made = rule_changes.create(
            tenant, name or f"Rule {len(rule_changes.listed(tenant)) + 1}", given, by=SYSTEM, is_on=True
        )
        return str(made.rule_id)

    return add
