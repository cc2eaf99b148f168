"""Files that a person sent are found, and an erasure replaces their address in names of files wherever those stand."""

from __future__ import annotations

import pytest
import urllib3

from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tests.attachments.conftest import objects_of
from tests.privacy.test_person_pages import erased, searched
from tests.support.commands import run
from tests.support.world import World
from tickets.attachments import attachments, downloads, removing
from tickets.desk import changing, commenting, creating, timelines
from tickets.desk.changing import Wishes
from tickets.requesters import requesters
from tickets.ticket.fields import Channel

BOB = "bob@example.com"


def test_the_files_that_somebody_sent_are_removed_with_them_where_that_is_wished(world: World) -> None:
    world.tickets("acme", 2)
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    theirs = attachments.store(bob, "mine.txt", b"Mine.")
    number = creating.create(bob, title="Mine", files=[theirs])
    answer, of_note, other = (attachments.store(one, "a.txt", b"A.") for one in (bob, bob, alice))
    commenting.comment(alice, 1, body="Of Alice.", files=[other])
    commenting.comment(bob, 1, body="Of Bob.", files=[answer])
    commenting.comment(bob, 2, body="Of Bob.", files=[of_note], internal=True)
    used, stored = attachments.usage(alice), len(objects_of(alice.tenant_id))
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    done = run("erase_person", "acme", BOB, "--files")
    assert done.status == 0, done
    assert "3 files" in done.out
    for place, file in ((number, theirs), (1, answer), (2, of_note)):
        with pytest.raises(downloads.NotReadable, match="was removed"):
            downloads.address_of(alice, place, file.id)
    assert urllib3.request("GET", downloads.address_of(alice, 1, other.id)).data == b"A."
    assert len(objects_of(alice.tenant_id)) == stored - 3
    left = attachments.usage(alice)
    assert (left.count, left.size) == (used.count - 3, 2)
    page = world.browser("alice", "acme").get("/desk/settings/person/").content.decode()
    assert "3 files" in page


def test_files_that_an_agent_sent_for_somebody_or_that_an_earlier_requester_sent_stay(world: World) -> None:
    alice = world.context("alice", "acme")
    ada, grace = (requesters.ensure(alice, f"{name}@example.org") for name in ("ada", "grace"))
    for_ada = attachments.store(alice, "offer.txt", b"Of Alice.")
    by_hand = creating.create(alice, title="For Ada", requester=ada, files=[for_ada])
    of_grace = attachments.store(alice, "of_grace.txt", b"Of Grace.")
    by_form = creating.create(alice, title="Of Grace", requester=grace, files=[of_grace], channel=Channel.FORM)
    changing.change(alice, by_form, Wishes(requester=ada), version=1)
    assert "file" not in run("erase_person", "acme", "ada@example.org", "--files").out
    for number, file in ((by_hand, for_ada), (by_form, of_grace)):
        assert downloads.address_of(alice, number, file.id)
    assert "1 file" in run("erase_person", "acme", "grace@example.org", "--files").out


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
    done = run("erase_person", "acme", BOB, "--texts")
    assert done.status == 0, done
    entries = timelines.ticket(alice, 1).activity
    listed = [file.name for entry in entries for file in entry.files or ()]
    assert len(listed) == 2
    assert not any(BOB in text for text in (*listed, *(entry.verb or "" for entry in entries)))
    got = urllib3.request("GET", downloads.address_of(alice, 1, kept.id))
    assert got.data == b"The content."
    assert BOB not in got.headers["Content-Disposition"]
    assert "Erased person" in got.headers["Content-Disposition"]
    assert run("find_person", "acme", BOB).out.count(BOB) <= 1


def test_an_owner_chooses_on_the_page_that_files_go(world: World) -> None:
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    number = creating.create(bob, title="Mine", files=[file := attachments.store(bob, "mine.txt", b"Mine.")])
    member_changes.remove(user_id=bob.user_id, tenant_id=bob.tenant_id, by=Actor(alice.user_id, "alice@example.com"))
    owner = world.browser("alice", "acme")
    assert "is erased" in erased(owner, searched(owner), sent_files="on").content.decode()
    with pytest.raises(downloads.NotReadable, match="was removed"):
        downloads.address_of(alice, number, file.id)
