"""Links between two tickets, and comments that become tickets of their own."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from portal.dynamo import meter
from tests.desk.test_cost import spent
from tests.support import outbox
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.world import Browser, World
from tickets.attachments import attachments
from tickets.desk import commenting, creating, timelines
from tickets.linking import linking
from tickets.requesters import requesters
from tickets.ticket import stored
from tickets.ticket.fields import Channel


@pytest.fixture
def desk(world: World) -> World:
    world.tickets("acme", 2)
    return world


def links(world: World, number: int) -> list[tuple[str, int]]:
    found = timelines.ticket(world.context("alice", "acme"), number).links
    return [(one.kind, int(one.number)) for one in found]


def told(world: World, number: int) -> list[str]:
    return [entry.verb for entry in timelines.ticket(world.context("alice", "acme"), number).activity if entry.verb]


def link(browser: Browser, kind: str = "blocks", other: object = "#2", number: int = 1) -> Any:
    return browser.send(f"/tickets/{number}/linked/add/", {"kind": kind, "other": other})


@pytest.mark.parametrize(("kind", "opposite"), [(kind, stored.LINK_KINDS[kind]) for kind in linking.CHOSEN])
def test_a_link_stands_on_both_sides_and_in_both_histories(desk: World, kind: str, opposite: str) -> None:
    bob = desk.browser("bob")
    assert link(bob, kind).status_code == 302
    assert link(bob, kind).status_code == 302  # sent twice
    assert (links(desk, 1), links(desk, 2)) == ([(kind, 2)], [(opposite, 1)])
    for number, of, other in ((1, kind, 2), (2, opposite, 1)):
        assert told(desk, number).count(f"added the link “{stored.LINK_LABELS[of]} #{other}”") == 1
        shown = bob.get(f"/tickets/{number}/").content.decode()
        assert stored.LINK_LABELS[of] in shown
        assert f'href="/acme/tickets/{other}/"' in shown
    part = bob.get("/tickets/1/linked/", HTTP_HX_REQUEST="true").content.decode()
    assert "Ticket 2" in part
    assert "badge-open" in part
    assert bob.get("/tickets/1/linked/")["Location"].endswith("/tickets/1/"), "by itself a part of a page is no page"
    assert bob.send("/tickets/2/linked/remove/", {"kind": opposite, "other": 1}).status_code == 302
    assert (links(desk, 1), links(desk, 2)) == ([], [])
    assert told(desk, 1)[-1] == f"removed the link “{stored.LINK_LABELS[kind]} #2”"


@pytest.mark.parametrize(
    ("other", "sentence"),
    [("", "Enter the number"), ("x", "such as 12"), ("1", "linked to itself"), ("99", "no ticket 99 in this desk"),
     ("1" * 16, "such as 12")],
)  # fmt: skip
def test_what_cannot_be_linked_is_refused_at_its_field_and_stays_there(desk: World, other: str, sentence: str) -> None:
    answer = link(desk.browser("bob"), other=other)
    shown = unescape(answer.content.decode())
    assert (answer.status_code, sentence in shown, f'value="{other}"' in shown or not other) == (422, True, True)
    assert links(desk, 1) == []


def test_tickets_of_other_desks_are_not_linked_and_viewers_link_nothing(desk: World) -> None:
    desk.tickets("globex", 3)
    assert "no ticket 3 in this desk" in unescape(link(desk.browser("bob"), other="3").content.decode())
    vera = desk.browser("vera")
    assert link(vera).status_code == 403
    link(desk.browser("bob"))
    part = vera.get("/tickets/1/linked/", HTTP_HX_REQUEST="true").content.decode()
    assert ("Ticket 2" in part, "Remove<span" in part) == (True, False)


def test_a_number_in_a_text_is_a_link_whether_there_is_such_a_ticket_or_not(desk: World) -> None:
    commenting.comment(desk.context("bob", "acme"), 1, body="See #2 and #999.")
    bob = desk.browser("bob")
    shown = bob.get("/tickets/1/").content.decode()
    assert re.findall(r'<a href="(/acme/tickets/\d+/)">#\d+</a>', shown) == ["/acme/tickets/2/", "/acme/tickets/999/"]
    assert spent(bob, "/tickets/1/").trips == 2


def test_links_cost_the_ticket_page_nothing_and_their_titles_two_reads(desk: World) -> None:
    bob = desk.browser("bob", HTTP_HX_REQUEST="true")
    before = spent(bob, "/tickets/1/")
    link(bob)
    after = spent(bob, "/tickets/1/")
    assert [call.operation for call in after.calls] == [call.operation for call in before.calls]
    assert after.trips == 2
    assert len(spent(bob, "/tickets/1/linked/").calls) == len(after.calls) + 1
    tenant = desk.context("bob", "acme")
    with meter.measure() as cost:
        linking.link(tenant, 1, "relates_to", 2)
    assert [call.operation for call in cost.calls] == ["BatchGetItem", "TransactWriteItems"]


def test_a_ticket_has_so_many_links_and_no_more(desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "LIMIT", 1)
    link(desk.browser("bob"))
    assert "has 1 links already" in unescape(link(desk.browser("bob"), "relates_to").content.decode())


def test_receivers_are_told_of_links_and_keys_make_them(desk: World) -> None:
    outbox.subscribe(desk, "acme", "ticket.linked", "ticket.unlinked")
    client = api_client(desk)
    for method in ("PUT", "PUT", "DELETE", "DELETE"):
        assert client.call(method, "/tickets/1/links/blocks/2").status_code == 204
        listed = client.ask("/tickets/2/links").json()["data"]
        assert listed == ([{"kind": "blocked_by", "number": 1}] if method == "PUT" else [])
    assert [(one["type"], one["data"]["link"], one["data"]["other"]) for one in outbox.told()] == [
        ("ticket.linked", "blocks", 2),
        ("ticket.unlinked", "blocks", 2),
    ]
    assert client.call("PUT", "/tickets/1/links/blocks/99").status_code == 422
    assert client.call("PUT", "/tickets/1/links/hates/2").status_code == 404


def test_an_export_has_the_links_and_an_import_brings_them(desk: World, tmp_path: Any) -> None:
    link(desk.browser("bob"))
    file = tmp_path / "tickets.jsonl"
    run("export_tickets", "--tenant", "acme", "--output", str(file))
    assert '"links":[{"kind":"blocks","number":2}]' in file.read_text()
    ended = run("import_archive", str(file), "--tenant", "globex")
    assert ended.status == 0, ended.err
    found = timelines.ticket(desk.context("charlie", "globex"), 1).links
    assert [(one.kind, int(one.number)) for one in found] == [("blocks", 2)]


# --- comments that become tickets ---


def split(world: World, *, title: str = "Another matter", who: str = "bob", request: str = "a" * 32) -> Any:
    entry = [e for e in timelines.ticket(world.context("alice", "acme"), 1).activity if e.kind != "event"][-1]
    address = f"/tickets/1/comments/{stored.entry_reference(entry.sk)}/split/"
    return world.browser(who).send(address, {"title": title, "request_id": request})


def test_a_comment_becomes_a_ticket_with_its_files_and_a_link_on_both_sides(desk: World) -> None:
    bob = desk.context("bob", "acme")
    files = [attachments.store(bob, "plan.txt", b"the plan")]
    commenting.comment(bob, 1, body="Also, the **door** squeaks.", files=files)
    entry = next(one for one in timelines.ticket(bob, 1).activity if one.kind == "comment")
    asked = desk.browser("bob").get(f"/tickets/1/comments/{stored.entry_reference(entry.sk)}/split/")
    assert "and its 1 file become the description" in asked.content.decode()
    assert asked.context["form"]["title"].value() == "Also, the door squeaks."
    first = split(desk)
    assert first["Location"].endswith("/tickets/3/")
    assert split(desk)["Location"].endswith("/tickets/3/")  # sent twice
    made = timelines.ticket(bob, 3)
    assert (made.summary.title, made.description) == ("Another matter", "Also, the **door** squeaks.")
    assert [file.name for file in made.files] == ["plan.txt"]
    (copy,), (original,) = made.files, timelines.ticket(bob, 1).activity[-2].files or ()
    assert copy.object != original.object
    assert (links(desk, 1), links(desk, 3)) == ([("split_into", 3)], [("split_from", 1)])
    assert (told(desk, 1)[-1], told(desk, 3)[-1]) == ("split a comment off into #3", "split it off from #1")
    assert timelines.ticket(bob, 1).activity[-2].body == "Also, the **door** squeaks."


def test_what_somebody_outside_wrote_becomes_a_ticket_of_theirs_and_no_markdown(world: World) -> None:
    ada = requesters.ensure(world.context("alice", "acme"), "ada@example.org", name="Ada")
    creating.create(world.context("bob", "acme"), title="One", requester=ada, channel=Channel.MAIL)
    as_ada = world.context("bob", "acme")
    commenting.comment(replace(as_ada, user_id=ada.id, user_name="Ada"), 1, body="[here](https://evil.example)")
    assert split(world).status_code == 302
    made = timelines.ticket(world.context("bob", "acme"), 2)
    assert (made.summary.requester, made.summary.channel) == (ada.id, "mail")
    assert "[here](https://evil.example)" in unescape(world.browser("bob").get("/tickets/2/").content.decode())


@pytest.mark.parametrize(("title", "sentence"), [("", "Enter a title"), ("x" * 201, "200")])
def test_a_split_needs_a_title(desk: World, title: str, sentence: str) -> None:
    commenting.comment(desk.context("bob", "acme"), 1, body="> # One\nTwo")
    answer = split(desk, title=title)
    assert (answer.status_code, sentence in answer.content.decode()) == (422, True)
    assert split(desk, who="vera").status_code == 403
    entry = timelines.ticket(desk.context("bob", "acme"), 1).activity[-1]
    address = f"/tickets/1/comments/{stored.entry_reference(entry.sk)}/split/"
    assert 'value="One"' in desk.browser("bob").get(address).content.decode()
