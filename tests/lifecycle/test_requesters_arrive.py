"""Requesters are in the file of a desk, and are the same people where it is brought in under another id."""

from __future__ import annotations

from pathlib import Path

from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import context, tenant_directory
from tests.support.commands import run
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.requesters import bounced_addresses, requester_changes, requester_tickets, requesters


def test_requesters_arrive_with_their_addresses_tickets_and_merges(world: World, tmp_path: Path) -> None:
    alice = world.context("alice", "acme")
    ada = requesters.ensure(alice, "ada@example.org", name="Ada Lovelace")
    countess = requesters.ensure(alice, "countess@example.org", name="The Countess")
    for person in (ada, countess):
        creating.create(alice, title=f"Of {person.name}", requester=person)
    bounced_addresses.note(alice, "ada@example.org", "The mailbox is full.")
    before = requester_changes.merge(alice, ada.id, countess.id, by=SYSTEM)
    path = tmp_path / "acme.zip"
    ended = run("export_tenant", "acme", path)
    assert ended.status == 0, ended.err
    ended = run("import_tenant", path, "--as", "again", "--new-id")
    assert ended.status == 0, ended.err

    again = context.for_system(tenant_directory.find("again"))
    assert again.tenant_id != alice.tenant_id
    assert requesters.by_address(again, "countess@example.org") == before
    assert [one.name for one in requesters.complete(again, "ada")] == ["Ada Lovelace"]
    rows = requester_tickets.newest(again, before.ids, limit=10)
    assert [row.title for row in rows] == ["Of The Countess", "Of Ada Lovelace"]
    assert changing.read(again, 1).requester == ada.id
    assert requester_changes.undo_merge(again, countess.id, by=SYSTEM).addresses == ("countess@example.org",)
    assert requesters.by_address(alice, "countess@example.org") == before, "nothing of the other desk has changed"
