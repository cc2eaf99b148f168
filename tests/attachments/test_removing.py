"""An administrator removes a file: its content goes, its name and an entry of the history stay."""

from __future__ import annotations

import pytest

from tests.attachments.conftest import PNG, objects_of
from tests.support.world import World
from tickets.attachments import attachments
from tickets.attachments.attachments import FileRef
from tickets.desk import changing, commenting, timelines


@pytest.fixture
def file(world: World) -> FileRef:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "secret.png", PNG)
    commenting.comment(bob, 1, body="Oh.", files=[file])
    return file


def test_a_file_that_is_removed_is_gone_and_its_ticket_says_who_did_it(world: World, file: FileRef) -> None:
    alice = world.browser("alice", "acme")
    page = f"/tickets/1/files/{file.id}/remove/"
    assert page in alice.get("/tickets/1/").content.decode()
    assert "Download all files" in alice.get("/tickets/1/").content.decode()
    assert "cannot be restored" in alice.get(page).content.decode()
    assert alice.send(page, {}).status_code == 302
    tenant = world.context("alice", "acme")
    found = timelines.ticket(tenant, 1)
    assert [one.state for entry in found.activity for one in entry.files or ()] == ["removed"]
    assert found.activity[-1].verb == "removed the file secret.png"
    assert objects_of(tenant.tenant_id) == []
    used = attachments.usage(tenant)
    assert (used.count, used.size) == (0, 0)
    summary = changing.read(tenant, 1)
    assert (summary.file_count, summary.file_bytes) == (0, 0)
    assert "was removed" in alice.get(f"/tickets/1/files/{file.id}/").content.decode()
    assert "Download all files" not in alice.get("/tickets/1/").content.decode(), "none is left"


def test_a_file_is_removed_once(world: World, file: FileRef) -> None:
    alice = world.browser("alice", "acme")
    for _ in range(2):
        assert alice.send(f"/tickets/1/files/{file.id}/remove/", {}).status_code == 302
    assert attachments.usage(world.context("alice", "acme")).count == 0


def test_agents_remove_no_file(world: World, file: FileRef) -> None:
    bob = world.browser("bob")
    assert "/remove/" not in bob.get("/tickets/1/").content.decode()
    assert bob.send(f"/tickets/1/files/{file.id}/remove/", {}).status_code == 403


def test_the_history_tells_nobody_of_a_file_of_a_note(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "internal.png", PNG)
    commenting.comment(bob, 1, body="Between us.", internal=True, files=[file])
    assert world.browser("alice", "acme").send(f"/tickets/1/files/{file.id}/remove/", {}).status_code == 302
    assert "internal.png" not in world.browser("vera").get("/tickets/1/").content.decode()
