"""Working tickets over HTTP: the queue, one ticket, changes, conflicts, forty at once."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating, lists, timelines
from tickets.ticket import stored as ticket_stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import SummaryItem

REQUEST = "a" * 32


def text(response: object) -> str:
    return unescape(response.content.decode())  # type: ignore[attr-defined]


def numbers(response: object) -> list[int]:
    return [int(n) for n in re.findall(r'href="/[a-z]+/tickets/(\d+)/[^"]*" data-row-link', text(response))]


def stored(world: World, number: int) -> SummaryItem:
    return changing.read(world.context("alice", "acme"), number)


def history(world: World, number: int) -> list[tuple[str, str, list[tuple[str, str, str]]]]:
    found = timelines.ticket(world.context("alice", "acme"), number).activity
    return [(a.kind, a.author_name, [(c.field, c.before, c.after) for c in a.changes]) for a in found]


# --- the queue ---


def test_the_queue_shows_open_tickets_newest_change_first(world: World) -> None:
    world.tickets("acme", 3)
    commenting.comment(world.context("bob", "acme"), 1, body="up again")
    assert numbers(world.browser("bob").get("/tickets/")) == [1, 3, 2]


def test_the_queue_is_filtered_by_who_has_the_ticket(world: World) -> None:
    world.tickets("acme", 3)
    alice, bob = world.users["alice"], world.users["bob"]
    changing.assign(world.context("bob", "acme"), 1, to=bob.id, version=1)
    changing.assign(world.context("bob", "acme"), 2, to=alice.id, version=1)
    browser = world.browser("bob")
    assert numbers(browser.get("/tickets/?resolver=me")) == [1]
    assert numbers(browser.get("/tickets/?resolver=none")) == [3]
    assert numbers(browser.get(f"/tickets/?resolver={alice.id}")) == [2]


def test_a_cursor_of_another_tenant_or_filter_is_refused(world: World) -> None:
    tenant = world.context("alice", "globex")
    for n in range(51):
        creating.create(tenant, title=f"T{n}")
    url = world.browser("alice", "globex").get("/tickets/").context["page"]["next_url"]
    assert world.browser("alice", "acme").get(url.replace("/globex/", "/acme/")).status_code == 400
    assert world.browser("alice", "globex").get(url.replace("status=open", "status=closed")).status_code == 400
    assert world.browser("alice", "globex").get(url).status_code == 200


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", "No open tickets. Mail to acme@desk.localhost becomes one."),
        ("?status=closed", "No closed tickets."),
        ("?resolver=me", "You have no open tickets."),
        ("?resolver=none", "No open tickets are unassigned."),
        ("?tag=fire", "No open tickets match this filter."),
    ],
)
def test_an_empty_queue_says_so(world: World, query: str, says: str) -> None:
    assert says in text(world.browser("bob").get(f"/tickets/{query}"))


def test_viewers_see_no_way_to_change_anything(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("vera")
    for path in ("/tickets/", "/tickets/1/"):
        page = text(browser.get(path))
        assert 'name="to"' not in page
        assert "/tickets/1/comment/" not in page
        assert "/tickets/new/" not in page


# --- one ticket ---


def test_a_new_ticket_gets_the_next_number_of_its_tenant(world: World) -> None:
    world.tickets("globex", 3)
    world.tickets("acme", 1)
    form = {"title": "Broken", "priority": "high", "tags": "A b, c", "request_id": REQUEST}
    response = world.browser("bob").send("/tickets/new/", form)
    assert response["Location"] == "/acme/tickets/2/"
    item = stored(world, 2)
    assert (item.title, item.priority, item.tags, item.requester_name) == (
        "Broken",
        "high",
        ["a-b", "c"],
        "Bob Example",
    )


def test_a_new_ticket_is_given_to_whom_the_form_names(world: World) -> None:
    alice, bob = world.users["alice"], world.browser("bob")
    choices = re.findall(r'<option value="([0-9a-f]{32})"[^>]*>([^<]*)', text(bob.get("/tickets/new/")))
    assert choices == [(world.users["bob"].id, "Bob Example (you)"), (alice.id, "Alice Example")]
    form = {"title": "Broken", "priority": "high", "resolver": alice.id, "request_id": REQUEST}
    assert bob.send("/tickets/new/", form)["Location"] == bob.send("/tickets/new/", form)["Location"]
    item = stored(world, 1)
    assert (item.resolver, item.resolver_name, int(item.version)) == (alice.id, "Alice Example", 2)
    assert history(world, 1) == [
        ("event", "Bob Example", []),
        ("event", "Bob Example", [("resolver", "", "Alice Example")]),
    ]
    assert numbers(world.browser("alice", "acme").get("/tickets/?resolver=me")) == [1]
    # Somebody who opened it before that sees the change as any other.
    changing.edit(world.context("bob", "acme"), 1, priority=Priority.LOW, version=1)


@pytest.mark.parametrize("who", ["vera", "charlie"])
def test_a_new_ticket_cannot_be_given_to_somebody_who_can_have_none(world: World, who: str) -> None:
    form = {"title": "Typed with care", "priority": "high", "resolver": world.users[who].id, "request_id": REQUEST}
    response = world.browser("bob").send("/tickets/new/", form)
    assert response.status_code == 422
    assert response.context["form"].errors["resolver"] == [
        "Only agents, admins and owners of this desk can be assigned."
    ]
    assert "Typed with care" in text(response)
    assert numbers(world.browser("bob").get("/tickets/")) == []


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("title", "", "Enter a title."),
        ("title", " \n ", "Enter a title."),
        ("title", "x" * 201, "This text has 201 characters; 200 are allowed."),
        ("description", "x" * 50_001, "Shorten it by 1."),
        ("priority", "whatever", "valid choice"),
        ("tags", ",".join(f"t{n}" for n in range(13)), "at most 12 tags; these are 13"),
        ("tags", "x" * 41, "has 41 characters; 40 are allowed"),
        ("tags", "a#b", "which tags cannot have"),
        ("title", "\u200b\u3164", "A ticket needs a title."),
        ("tags", "a\x01b", "a character that cannot be stored"),
    ],
)
def test_a_bad_field_is_explained_and_everything_typed_is_kept(world: World, field: str, value: str, says: str) -> None:
    form = {"title": "A title", "description": "Typed with care", "priority": "low", "tags": "x", "request_id": REQUEST}
    response = world.browser("bob").send("/tickets/new/", form | {field: value})
    assert response.status_code == 422
    assert says in text(response)
    if field != "description":
        assert "Typed with care" in text(response)


def test_markdown_is_rendered_and_cannot_hurt(world: World) -> None:
    tenant = world.context("bob", "acme")
    evil = "**bold** <script>alert(1)</script> [x](javascript:alert(1)) ![i](https://evil.example/x.png)"
    evil += " <img src=x onerror=y>"
    creating.create(tenant, title="<b>t</b>", description=evil)
    page = world.browser("bob").get("/tickets/1/").content.decode()
    assert "<strong>bold</strong>" in page
    assert "&lt;b&gt;t&lt;/b&gt;" in page
    for bad in ("<script>alert", 'href="javascript', "<img", "onerror=y>"):
        assert bad not in page.replace("&lt;img src=x onerror=y&gt;", "")


def test_a_comment_is_shown_and_counted(world: World) -> None:
    world.tickets("acme", 1)
    world.browser("bob").send("/tickets/1/comment/", {"body": "Have you *tried*?", "request_id": REQUEST})
    page = text(world.browser("alice", "acme").get("/tickets/1/"))
    assert "<em>tried</em>" in page
    assert stored(world, 1).comment_count == 1


def test_a_comment_can_resolve_the_ticket_in_one_step(world: World) -> None:
    world.tickets("acme", 1)
    form = {"body": "done", "then": "resolved", "request_id": REQUEST}
    world.browser("bob").send("/tickets/1/comment/", form)
    assert stored(world, 1).status == "resolved"
    assert [kind for kind, _, _ in history(world, 1)] == ["event", "comment", "event"]


@pytest.mark.parametrize("body", ["", "   ", "x" * 20_001])
def test_a_bad_comment_is_refused_and_kept(world: World, body: str) -> None:
    world.tickets("acme", 1)
    response = world.browser("bob").send("/tickets/1/comment/", {"body": body, "request_id": REQUEST})
    assert response.status_code == 422
    assert body.strip()[:50] in text(response)


def test_a_number_in_a_text_leads_to_that_ticket(world: World) -> None:
    bob = world.context("bob", "acme")
    text_with_numbers = 'See #176 and `#1`, not a#2 or [#3](https://example.com/ "> #4").\n\n# 5\n\n    #6'
    creating.create(bob, title="T", description=text_with_numbers)
    page = world.browser("bob").get("/tickets/1/").content.decode()
    prose = page[page.index('<div class="prose"') :]
    assert re.findall(r'href="/acme/tickets/(\d+)/">#', prose[: prose.index("</section>")]) == ["176"]


@pytest.mark.parametrize("seen", ["", "~", "\u202e", "2026-01-31", "9" * 5000])
def test_a_question_for_updates_since_no_moment_is_refused(world: World, seen: str) -> None:
    assert world.browser("bob").get("/tickets/updates/", {"seen": seen}).status_code == 400


def test_the_timeline_says_who_changed_what_from_what_to_what(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    browser.send("/tickets/1/change/", {"version": 1, "status": "pending"})
    browser.send("/tickets/1/change/", {"version": 2, "priority": "urgent"})
    browser.send("/tickets/1/assign/", {"version": 3, "resolver": "me"})
    form = {"title": "New", "description": "It broke.", "priority": "urgent", "tags": "x", "version": 4}
    browser.send("/tickets/1/edit/", form | {"request_id": REQUEST})
    assert history(world, 1)[1:] == [
        ("event", "Bob Example", [("status", "open", "pending")]),
        ("event", "Bob Example", [("priority", "normal", "urgent")]),
        ("event", "Bob Example", [("resolver", "", "Bob Example")]),
        (
            "event",
            "Bob Example",
            [("title", "Ticket 1", "New"), ("tags", "", "x"), ("description", "11 characters", "9 characters")],
        ),
    ]


def test_a_closed_ticket_can_only_be_reopened(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    browser.send("/tickets/1/change/", {"version": 1, "status": "closed"})
    browser.send("/tickets/1/change/", {"version": 2, "status": "pending"})
    assert stored(world, 1).status == "closed"
    browser.send("/tickets/1/change/", {"version": 2, "status": "open"})
    assert stored(world, 1).status == "open"


def test_only_members_who_may_work_can_be_assigned(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("bob")
    for who in (world.users["charlie"].id, world.users["vera"].id, "0" * 32, "x", "../"):
        response = browser.send("/tickets/1/assign/", {"version": 1, "resolver": who}, follow=True)
        assert "can be assigned" in text(response)
        assert stored(world, 1).resolver == ""


def test_the_people_to_assign_are_the_agents_of_this_tenant(world: World) -> None:
    world.tickets("acme", 1)
    page = text(world.browser("bob").get("/tickets/1/assign/"))
    assert "Alice Example" in page
    assert "Vera Example" not in page
    assert "Charlie Example" not in page


@pytest.mark.parametrize("number", ["0", "01", "-1", "9" * 16, "9" * 3000, "x", "1.5", "%0a1", "1%7C2", "٣"])
def test_a_number_that_is_none_is_not_found(world: World, number: str) -> None:
    assert world.browser("bob").get(f"/tickets/{number}/").status_code == 404


# --- two people, one ticket ---


@pytest.mark.parametrize(
    ("path", "data", "mine"),
    [
        ("/tickets/1/change/", {"status": "resolved"}, "Resolved"),
        ("/tickets/1/change/", {"priority": "urgent"}, "Urgent"),
        ("/tickets/1/assign/", {"resolver": "me"}, "Bob Example"),
    ],
)
def test_a_quick_change_of_a_changed_ticket_asks_first(
    world: World, path: str, data: dict[str, str], mine: str
) -> None:
    world.tickets("acme", 1)
    alice = world.context("alice", "acme")
    changing.edit(alice, 1, priority=Priority.LOW, version=1)
    changing.change_status(alice, 1, to=Status.PENDING, version=2)
    changing.assign(alice, 1, to=alice.user_id, version=3)
    browser = world.browser("bob")
    response = browser.send(path, {"version": 1, **data})
    assert response.status_code == 409
    assert "Alice Example changed this ticket" in text(response)
    assert mine in text(response)
    assert browser.send(path, {"version": 4, **data}).status_code == 302
    assert stored(world, 1).version == 5


def test_a_conflict_with_oneself_says_so(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.browser("bob")
    bob.send("/tickets/1/change/", {"version": 1, "status": "pending"})
    page = text(bob.send("/tickets/1/change/", {"version": 1, "status": "closed"}))
    assert "You changed this ticket in another tab" in page
    assert "Somebody else" not in page


def test_a_reply_to_a_ticket_that_was_resolved_meanwhile_says_so(world: World) -> None:
    world.tickets("acme", 1)
    changing.change_status(world.context("alice", "acme"), 1, to=Status.RESOLVED, version=1)
    form = {"body": "One more question", "request_id": REQUEST, "seen": "open"}
    page = text(world.browser("bob").send("/tickets/1/comment/", form, follow=True))
    assert "the status changed from Open to Resolved. Your comment was added" in page
    assert "One more question" in page


def test_a_comment_that_cannot_be_added_keeps_its_text_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)

    def overtaken(*args: object, **kwargs: object) -> None:
        raise commenting.CommentNotAdded

    monkeypatch.setattr(commenting, "comment", overtaken)
    form = {"body": "Typed with care", "internal": "on", "request_id": REQUEST}
    response = world.browser("bob").send("/tickets/1/comment/", form)
    assert response.status_code == 409
    page = text(response)
    assert "Your comment has not been added" in page
    assert re.search(r"<textarea[^>]*>\s*Typed with care", page)
    assert re.search(r'name="internal"[^>]*checked', page)
    assert REQUEST in page  # sent again, it is the same request


def test_a_comment_does_not_spoil_somebody_elses_form(world: World) -> None:
    world.tickets("acme", 1)
    commenting.comment(world.context("alice", "acme"), 1, body="meanwhile")
    assert world.browser("bob").send("/tickets/1/change/", {"version": 1, "status": "closed"}).status_code == 302


# --- many at once ---


def selected(response: object) -> list[str]:
    return re.findall(r'name="tickets" value="([^"]+)"', text(response))


def test_what_changed_meanwhile_refuses_all_and_is_named_and_the_rest_can_be_closed(world: World) -> None:
    world.tickets("acme", 5)
    browser, alice = world.browser("bob"), world.context("alice", "acme")
    chosen = selected(browser.get("/tickets/"))
    changing.change_status(alice, 3, to=Status.PENDING, version=1)
    changing.assign(alice, 4, to=alice.user_id, version=1)
    refused = browser.send("/tickets/bulk/", {"tickets": chosen, "to": "closed"})
    assert refused.status_code == 409
    for words in ("#3", "Ticket 3", "is pending now, not open", "assigned to Alice Example meanwhile"):
        assert words in text(refused)
    assert numbers(browser.get("/tickets/?status=closed")) == []
    done = browser.send("/tickets/bulk/", {"tickets": selected(refused), "to": "closed"}, follow=True)
    assert "3 tickets are now closed." in text(done)
    assert sorted(numbers(browser.get("/tickets/?status=closed"))) == [1, 2, 5]


def test_closing_more_than_a_handful_is_asked_about_first(world: World) -> None:
    world.tickets("acme", 6)
    browser = world.browser("bob")
    chosen = selected(browser.get("/tickets/"))
    question = browser.send("/tickets/bulk/", {"tickets": chosen, "to": "closed"})
    assert question.status_code == 428
    assert "Close 6 tickets?" in text(question)
    assert selected(question) == chosen
    assert len(numbers(browser.get("/tickets/"))) == 6
    assert browser.send("/tickets/bulk/", {"tickets": chosen[:5], "to": "closed"}).status_code == 302
    assert browser.send("/tickets/bulk/", {"tickets": chosen[5:], "to": "pending"}).status_code == 302


def test_a_bulk_change_can_be_undone_from_its_message(world: World) -> None:
    world.tickets("acme", 7)
    browser = world.browser("bob")
    chosen = selected(browser.get("/tickets/"))
    page = text(browser.send("/tickets/bulk/", {"tickets": chosen, "to": "closed", "confirmed": "yes"}, follow=True))
    receipt = re.search(r'name="receipt" value="([^"]+)"', page)
    assert receipt is not None
    page = text(browser.send("/tickets/bulk/undo/", {"receipt": receipt[1], "back": "/tickets/"}, follow=True))
    assert "7 tickets are as before." in page
    assert len(numbers(browser.get("/tickets/"))) == 7
    again = text(browser.send("/tickets/bulk/undo/", {"receipt": receipt[1]}, follow=True))
    assert again.count("has been changed again since and stays as it is.") == 5
    assert "2 more tickets were left as they are." in again
    forged = browser.send("/tickets/bulk/undo/", {"receipt": receipt[1][:-1]}, follow=True)
    assert "This change can no longer be undone." in text(forged)


def test_49_is_what_a_transaction_takes(world: World) -> None:
    assert bulk.limit(world.context("bob", "acme")) == 49
    world.tickets("acme", 51)
    browser = world.browser("bob")
    everything = [f"{n}.1.open." for n in range(1, 52)]
    refused = browser.send("/tickets/bulk/", {"tickets": everything, "to": "closed"}, follow=True)
    assert "At most 49 tickets can be changed together; you selected 51" in text(refused)
    browser.send("/tickets/bulk/", {"tickets": everything[:49], "to": "closed", "confirmed": "yes"})
    assert numbers(browser.get("/tickets/")) == [51, 50]


@pytest.mark.parametrize(
    "forged",
    ["1.2.open.", "1.1.pending.", "1.1.open." + "f" * 32, "99.1.open."],
    ids=["version", "status", "who", "none"],
)
def test_a_forged_selection_changes_nothing(world: World, forged: str) -> None:
    world.tickets("acme", 1)
    response = world.browser("bob").send("/tickets/bulk/", {"tickets": [forged], "to": "closed"})
    assert response.status_code == 409
    assert stored(world, 1).status == "open"


@pytest.mark.parametrize("damaged", ["", "x", "1", "1.1.open", "1.1.lost.", "1.1.open.x", "-1.1.open.", "1.1.open.|"])
def test_a_damaged_selection_is_refused_with_a_sentence(world: World, damaged: str) -> None:
    response = world.browser("bob").send("/tickets/bulk/", {"tickets": [damaged], "to": "closed"}, follow=True)
    assert "selection is damaged" in text(response)


def test_bulk_never_leads_to_another_site(world: World) -> None:
    world.tickets("acme", 1)
    data = {"tickets": ["1.1.open."], "to": "closed", "back": "//evil.example/"}
    assert world.browser("bob").send("/tickets/bulk/", data)["Location"] == "/acme/tickets/"


# --- keys ---


def test_every_status_partition_is_the_one_of_its_shard(sharded_world: World) -> None:
    sharded_world.tickets("acme", 30)
    tenant = sharded_world.context("bob", "acme")
    found = lists.page(tenant, status=Status.OPEN, size=50).rows
    assert sorted(int(r.number) for r in found) == list(range(1, 31))
    for row in found:
        shard = ticket_stored.status_shard(int(row.number), 4)
        assert row.tenant_status == ticket_stored.tenant_status(tenant.tenant_id, "OPEN", shard)


# --- what others do while somebody writes ---


def composer(page: object) -> str:
    """What stands beside the box, as text."""
    (part,) = re.findall(r'id="updates".*?</div>\s*<p class="presence"', text(page), re.DOTALL)
    return re.sub(r"<[^>]+>", " ", part)


def seen_at(page: object) -> str:
    (found,) = re.findall(r'name="seen_at" value="([^"]+)"', text(page))
    return str(found)


def test_an_open_page_is_told_what_others_wrote_and_changed_with_its_text(world: World) -> None:
    world.tickets("acme", 1)
    bob, alice = world.browser("bob"), world.context("alice", "acme")
    url = bob.get("/tickets/1/").context["updates_url"]
    assert bob.get(url).status_code == 204
    commenting.comment(alice, 1, body="I *solved* it already.", internal=True, then=Status.PENDING)
    told = bob.get(url)
    shown = re.sub(r"<[^>]+>", "", text(told))
    for words in (
        "Alice Example wrote an internal note",
        "I solved it already.",
        "changed status from open to pending",
    ):
        assert words in shown
    # The part asks on by itself, is answered with nothing where it shows all, and with all that came otherwise.
    later = told.context["updates_url"]
    assert bob.get(later).status_code == 204
    commenting.comment(alice, 1, body="One more thing.")
    again = text(bob.get(later))
    assert "solved" in again
    assert "One more thing." in again


def test_a_comment_from_a_page_that_is_out_of_date_is_asked_about_once(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.browser("bob")
    form = {"body": "Try to restart it.", "request_id": REQUEST, "seen_at": seen_at(bob.get("/tickets/1/"))}
    commenting.comment(world.context("alice", "acme"), 1, body="It is solved.")
    asked = bob.send("/tickets/1/comment/", form)
    assert asked.status_code == 409
    assert "Alice Example changed this ticket while you were writing." in text(asked)
    assert "It is solved." in composer(asked)
    assert "Try to restart it.</textarea>" in text(asked)
    assert [entry[0] for entry in history(world, 1)] == ["event", "comment"]
    assert bob.send("/tickets/1/comment/", form | {"seen_at": seen_at(asked)}).status_code == 302
    assert [entry[0] for entry in history(world, 1)] == ["event", "comment", "comment"]


def test_a_comment_that_was_added_is_not_asked_about_when_it_is_sent_again(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.browser("bob")
    form = {"body": "once", "request_id": REQUEST, "seen_at": seen_at(bob.get("/tickets/1/"))}
    assert bob.send("/tickets/1/comment/", form).status_code == 302
    assert bob.send("/tickets/1/comment/", form).status_code == 302
    commenting.comment(world.context("alice", "acme"), 1, body="It is solved.")
    assert bob.send("/tickets/1/comment/", form).status_code == 302
    # Of one's own changes nobody has to be told, nor of those that nobody has made.
    other = form | {"body": "twice", "request_id": "b" * 32, "seen_at": seen_at(bob.get("/tickets/1/"))}
    mine = world.context("bob", "acme")
    changing.edit(mine, 1, priority=Priority.LOW, version=1)
    changing.edit(replace(mine, user_id="", user_name="Rule “Calm”"), 1, priority=Priority.NORMAL, version=2)
    assert bob.send("/tickets/1/comment/", other).status_code == 302
    assert [entry[0] for entry in history(world, 1)] == ["event", "comment", "comment", "event", "event", "comment"]


def test_a_conflict_is_about_what_both_changed(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.browser("bob")
    mine = {
        "title": "Mine", "description": "It *broke*.", "priority": "low", "tags": "", "version": "1",
        "request_id": REQUEST,
    }  # fmt: skip
    changing.edit(
        world.context("alice", "acme"), 1, version=1, title="Theirs", description="Longer", priority=Priority.NORMAL,
        tags=["theirs"],
    )  # fmt: skip
    asked = bob.send("/tickets/1/edit/", mine)
    fields = {field["label"]: field for field in asked.context["fields"]}
    assert [label for label, field in fields.items() if field["differs"]] == ["Title"]
    assert (fields["Description"]["mine"], fields["Tags"]["mine"]) == ("Longer", "theirs")
    form = {name: asked.context["form"][name].value() for name in mine}
    assert bob.send("/tickets/1/edit/", form).status_code == 302
    item = stored(world, 1)
    assert (item.title, item.priority, item.tags) == ("Mine", "low", ["theirs"])
    assert changing.read_description(world.context("bob", "acme"), 1) == "Longer"
