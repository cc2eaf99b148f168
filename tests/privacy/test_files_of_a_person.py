"""Files that a person sent are found, and an erasure replaces their address in names of files wherever those stand."""

from __future__ import annotations

import urllib3

from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tests.support.commands import run
from tests.support.world import World
from tickets.attachments import attachments, downloads, removing
from tickets.desk import commenting, creating, timelines

BOB = "bob@example.com"


def test_the_address_is_replaced_in_names_of_files_and_their_files_are_listed(world: World) -> None:
    world.tickets("acme", 1)
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    kept = attachments.store(alice, f"cv of {BOB} 1.txt", b"The content.")
    gone = attachments.store(alice, f"photo of {BOB} 2.txt", b"Another.")
    commenting.comment(alice, 1, body="Look.", files=[kept, gone])
    removing.remove(alice, 1, gone.id)
    number = creating.create(bob, title="Mine", files=[attachments.store(bob, "mine.txt", b"Mine.")])
    found = run("find_person", "acme", BOB)
    assert f"ticket 1: text: names of files: cv of {BOB} 1.txt" in found.out
    assert f"ticket {number}: requester" in found.out
    assert f"ticket {number}: a file of theirs: mine.txt" in found.out
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    erased = run("erase_person", "acme", BOB, "--texts")
    assert erased.status == 0, erased
    entries = timelines.ticket(alice, 1).activity
    listed = [file.name for entry in entries for file in entry.files or ()]
    assert len(listed) == 2
    assert not any(BOB in text for text in (*listed, *(entry.verb or "" for entry in entries)))
    got = urllib3.request("GET", downloads.address_of(alice, 1, kept.id))
    assert got.data == b"The content."
    assert BOB not in got.headers["Content-Disposition"]
    assert "Erased person" in got.headers["Content-Disposition"]
    assert run("find_person", "acme", BOB).out.count(BOB) <= 1
