"""Files come to the bucket by a signed form or through the portal, and belong to a ticket in one transaction."""

from __future__ import annotations

from typing import Any

import pytest
import urllib3

from portal.dynamo.store import Store
from portal.errors import Conflict, Invalid
from portal.objects.object_store import ObjectStore
from tenants.tenancy.context import TenantContext
from tests.attachments.conftest import PNG, key_of, objects_of, send
from tests.support.world import World
from tickets.attachments import attachments, downloads, stored
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
    assert ObjectStore("tenant", bob.tenant_id).tags(key_of(bob, 1, file.id)) == attachments.ATTACHED


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


def arrived(world: World) -> tuple[TenantContext, attachments.Upload, list[attachments.FileRef]]:
    """Bob, who has sent a file for the one ticket of Acme."""
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    upload = attachments.begin(bob, "a.pdf", 9)
    send(upload.form, b"%PDF-1.7\n")
    files = attachments.uploaded(bob, [upload.file.id])
    return bob, upload, files


def test_sending_the_form_again_changes_nothing_of_a_file_that_is_on_a_ticket(world: World) -> None:
    bob, upload, files = arrived(world)
    commenting.comment(bob, 1, body="", files=files)
    assert send(upload.form, b"malicious") == (204, "")
    assert urllib3.request("GET", downloads.address_of(bob, 1, upload.file.id)).data == b"%PDF-1.7\n"
    with pytest.raises(Invalid, match="used already"):
        commenting.comment(bob, 1, body="Once more.", files=files)
    assert urllib3.request("GET", downloads.address_of(bob, 1, upload.file.id)).data == b"%PDF-1.7\n"
    assert objects_of(bob.tenant_id) == [key_of(bob, 1, upload.file.id)], "a refused copy is deleted"


def test_a_file_that_was_replaced_before_the_comment_is_the_one_that_is_looked_at(world: World) -> None:
    bob, upload, files = arrived(world)
    send(upload.form, b"<script> ")
    commenting.comment(bob, 1, body="", files=files)
    assert [file.type for file in timelines.ticket(bob, 1).activity[-1].files] == ["text/html"]


def test_a_file_of_another_size_than_its_form_said_is_attached_to_nothing(world: World) -> None:
    """Amazon S3 lets no form bring another size; here the object is written past it."""
    bob, upload, files = arrived(world)
    ObjectStore("tenant", bob.tenant_id).put(stored.upload_key(bob.tenant_id, upload.file.id), b"longer than that")
    with pytest.raises(Invalid, match="has not arrived whole"):
        commenting.comment(bob, 1, body="", files=files)
    assert objects_of(bob.tenant_id) == []
    assert [one for one in timelines.ticket(bob, 1).activity if one.kind != "event"] == []


def test_the_same_comment_again_leaves_no_second_copy(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, "a.png", PNG)]
    for _ in range(2):
        commenting.comment(bob, 1, body="", files=files, request_id="0" * 32)
    assert len([one for one in timelines.ticket(bob, 1).activity if one.kind != "event"]) == 1
    assert len(objects_of(bob.tenant_id)) == 1


def test_a_transaction_that_was_written_at_its_first_try_keeps_its_copy_after_the_second(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    transact = Store.transact

    def twice(*args: Any, **how: Any) -> None:  # the first answer got lost
        transact(*args, **how)
        transact(*args, **how)

    monkeypatch.setattr(Store, "transact", twice)
    file = attachments.store(bob, "a.png", PNG)
    commenting.comment(bob, 1, body="", files=[file])
    assert urllib3.request("GET", downloads.address_of(bob, 1, file.id)).data == PNG
