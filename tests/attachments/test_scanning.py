"""A file waits for its scanner, and is had or refused by what that has found; where there is none, that is said."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from portal.errors import Conflict
from portal.objects.object_store import ObjectStore
from tests.attachments.conftest import PNG, key_of, send
from tests.support.world import World
from tickets.attachments import attachments, downloads, stored
from tickets.attachments.attachments import FileRef
from tickets.desk import commenting, creating, timelines

TAG = "GuardDutyMalwareScanStatus"


@pytest.fixture
def scanner() -> Iterator[None]:
    with override_settings(FILE_SCANNER="guardduty"):
        yield


def tagged(world: World, file: FileRef, finding: str, number: int = 1) -> None:
    """What the scanner does: its tag comes beside those that are there."""
    tenant_id = world.tenants["acme"].tenant_id
    store, key = ObjectStore("tenant", tenant_id), key_of(world.context("bob", "acme"), number, file.id)
    store.tag(key, store.tags(key) | {TAG: finding})


def states(world: World, number: int = 1) -> list[str]:
    found = timelines.ticket(world.context("bob", "acme"), number)
    return [file.state for entry in found.activity for file in entry.files or ()] + [f.state for f in found.files]


@pytest.mark.parametrize(
    ("finding", "state", "sentence"),
    [
        ("", "waiting", "is being scanned"),
        ("NO_THREATS_FOUND", "clean", ""),
        ("THREATS_FOUND", "refused", "malware was found"),
        ("UNSUPPORTED", "unscanned", ""),
        ("FAILED", "unscanned", ""),
    ],
)
@pytest.mark.usefixtures("scanner")
def test_a_file_is_had_by_what_the_scanner_found(world: World, finding: str, state: str, sentence: str) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, f"{n}.png", PNG) for n in range(2)]
    commenting.comment(bob, 1, body="", files=files)
    assert states(world) == ["waiting", "waiting"]
    if finding:
        tagged(world, files[1], finding)
    if sentence:
        with pytest.raises(Conflict, match=sentence):
            downloads.address_of(bob, 1, files[1].id)
    else:
        assert downloads.address_of(bob, 1, files[1].id).startswith("http")
    assert states(world) == ["waiting", state]
    answer = world.browser("bob").get(f"/tickets/1/files/{files[1].id}/")
    assert answer.status_code == (400 if sentence else 302)
    assert sentence in answer.content.decode()


@pytest.mark.usefixtures("scanner")
def test_a_finding_about_an_upload_says_nothing_of_the_file_that_is_made_of_it(world: World) -> None:
    bob = world.context("bob", "acme")
    begun = attachments.begin(bob, "a.png", len(PNG))
    send(begun.form, PNG)
    store, key = ObjectStore("tenant", bob.tenant_id), stored.upload_key(bob.tenant_id, begun.file.id)
    store.tag(key, attachments.UNATTACHED | {TAG: "NO_THREATS_FOUND"})
    send(begun.form, b"x" * len(PNG))
    number = creating.create(bob, title="It broke", files=attachments.uploaded(bob, [begun.file.id]))
    with pytest.raises(Conflict, match="is being scanned"):
        downloads.address_of(bob, number, begun.file.id)
    tagged(world, begun.file, "THREATS_FOUND", number)
    with pytest.raises(Conflict, match="malware"):
        downloads.address_of(bob, number, begun.file.id)
    assert states(world, number) == ["refused"]
    page = world.browser("bob").get(f"/tickets/{number}/").content.decode()
    assert "refused: malware found" in page
    assert f"/files/{begun.file.id}/" not in page


@pytest.mark.usefixtures("scanner")
def test_a_zip_has_no_file_that_waits(world: World) -> None:
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="It broke", files=[attachments.store(bob, "a.png", PNG)])
    assert downloads.files_of(bob, number) == []


def test_without_a_scanner_no_file_is_called_clean(world: World) -> None:
    bob = world.context("bob", "acme")
    number = creating.create(bob, title="It broke", files=[attachments.store(bob, "a.png", PNG)])
    assert states(world, number) == ["unscanned"]
    assert "not scanned" in world.browser("bob").get(f"/tickets/{number}/").content.decode()
