"""Files come to the bucket by a signed form or through the portal, and belong to a ticket in one transaction."""

from __future__ import annotations

import pytest

from portal.errors import Conflict
from portal.objects.object_store import ObjectStore
from tests.attachments.conftest import PNG, send
from tests.support.world import World
from tickets.attachments import attachments, stored
from tickets.desk import commenting, creating, timelines


def test_a_stored_file_belongs_to_the_comment_that_it_is_given_to(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "../photo.png", PNG)
    assert (file.name, file.type, file.size, file.state) == ("photo.png", "image/png", len(PNG), "unscanned")
    commenting.comment(bob, 1, body="See the picture.", files=[file])
    entry = timelines.ticket(bob, 1).activity[-1]
    assert [(listed.id, listed.name) for listed in entry.files] == [(file.id, "photo.png")]
    used = attachments.usage(bob)
    assert (used.count, used.size) == (1, len(PNG))


def test_a_new_ticket_has_the_files_of_its_description(world: World) -> None:
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "log.txt", b"a line")
    number = creating.create(bob, title="It broke", files=[file])
    assert timelines.ticket(bob, number).files[0].name == "log.txt"


def test_a_browser_sends_a_file_by_the_form_that_the_portal_signed(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    upload = attachments.begin(bob, "a.pdf", 9)
    assert send(upload.form, b"%PDF-1.7\n") == (204, "")
    (file,) = attachments.uploaded(bob, [upload.file.id])
    assert (file.type, file.size) == ("application/pdf", 9)
    commenting.comment(bob, 1, body="", files=[file])
    key = stored.object_key(bob.tenant_id, file.id)
    assert ObjectStore("tenant", bob.tenant_id).tags(key) == attachments.ATTACHED


@pytest.mark.parametrize(
    ("content", "changed", "why"),
    [
        (b"%PDF-1.7\n more", {}, "EntityTooLarge"),
        (b"%PDF", {}, "EntityTooSmall"),
        (b"%PDF-1.7\n", {"Content-Type": "text/html"}, "Content-Type"),
        (b"%PDF-1.7\n", {"Content-Disposition": "inline"}, "Content-Disposition"),
        (b"%PDF-1.7\n", {"x-ignore-me": "no", "acl": "public-read"}, "acl"),
        (b"%PDF-1.7\n", {"policy": None}, ""),
    ],
)
def test_a_form_that_was_tampered_with_is_refused(world: World, content: bytes, changed, why: str) -> None:
    """Amazon S3 refuses a wrong signature as well, which ministack looks at in signed addresses alone."""
    upload = attachments.begin(world.context("bob", "acme"), "a.pdf", 9)
    status, answer = send(upload.form, content, **changed)
    assert status >= 400
    assert why.lower() in answer.lower()
    with pytest.raises(Conflict, match="has not arrived"):
        attachments.uploaded(world.context("bob", "acme"), [upload.file.id])
