"""People outside the desk send a few smaller files, each bound to the form that they fill in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tests.attachments.conftest import PNG, send
from tests.support.world import World
from tickets.attachments import attachments
from tickets.desk import creating, timelines

FORM = "0f" * 16


@pytest.fixture
def guest(world: World) -> TenantContext:
    return replace(world.context("bob", "acme"), user_id="", user_name="")


def sent(guest: TenantContext, form_id: str = FORM) -> str:
    begun = attachments.guest_form(guest, form_id, "photo.png", len(PNG))
    assert send(begun.form, PNG)[0] == 204
    return begun.file.id


def test_a_file_that_came_with_a_form_is_on_its_ticket(world: World, guest: TenantContext) -> None:
    found = attachments.arrived(guest, [sent(guest)], form_id=FORM)
    assert not found.problems
    number = creating.create(world.context("bob", "acme"), title="It broke", files=found.files)
    assert [file.name for file in timelines.ticket(world.context("bob", "acme"), number).files] == ["photo.png"]


def test_a_file_belongs_to_the_form_that_it_was_sent_for(world: World, guest: TenantContext) -> None:
    file_id = sent(guest)
    elsewhere = replace(world.context("charlie", "globex"), user_id="")
    for who, form_id in ((guest, "f0" * 16), (guest, ""), (world.context("bob", "acme"), ""), (elsewhere, FORM)):
        found = attachments.arrived(who, [file_id], form_id=form_id)
        assert not found.files
        assert "is not yours" in found.problems[0]


@pytest.mark.parametrize(("size", "why"), [(10_000_001, "larger than 10 MB"), (0, "is empty")])
def test_a_guests_file_has_a_lower_limit(guest: TenantContext, size: int, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        attachments.guest_form(guest, FORM, "a.bin", size)


def test_a_form_begins_no_more_than_ten_files(guest: TenantContext) -> None:
    begun = {attachments.guest_form(guest, FORM, "a.bin", 5).file.id for _ in range(10)}
    assert len(begun) == 10
    with pytest.raises(Invalid, match="At most 5 files"):
        attachments.guest_form(guest, FORM, "a.bin", 5)
    assert attachments.guest_form(guest, "f0" * 16, "a.bin", 5).file.id not in begun
