"""Agents write articles, publish versions of them and restore older ones; nobody loses what they have written."""

from __future__ import annotations

from typing import Any

import pytest

from portal.dynamo import meter
from portal.errors import Overtaken
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.desk.test_cost import IDENTITY, spent
from tests.support.articles import published
from tests.support.commands import run
from tests.support.world import Browser, World
from tickets.articles import article_changes, article_search, articles, catalogue, sections
from tickets.articles.articles import Text
from tickets.articles.stored import CentreItem
from tickets.requesters import requesters

PAGE = "/acme/articles/"


@pytest.fixture
def owner(world: World) -> Browser:
    return world.browser("alice", "acme")


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob", "acme")


@pytest.fixture
def vera(world: World) -> Browser:
    return world.browser("vera", "acme")


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def sent(title: str, body: str = "", *, then: str = "save", **more: object) -> dict[str, object]:
    return {"title": title, "body": body, "section": "", "visibility": "public", "then": then, **more}


def page_of(number: int) -> str:
    return f"{PAGE}{number}/"


# --- writing ---


def test_an_agent_writes_a_draft_that_readers_see_once_it_is_published(bob: Browser, vera: Browser) -> None:
    assert "No articles yet" in text_of(bob.get(PAGE))
    answer = bob.send(f"{PAGE}new/", sent("Reset your password", "Press **Forgot**."))
    assert answer["Location"] == f"{page_of(1)}edit/"
    assert "This is a draft" in text_of(bob.get(page_of(1)))
    assert vera.get(page_of(1)).status_code == 404
    assert "Reset your password" not in text_of(vera.get(PAGE))
    bob.send(f"{page_of(1)}edit/", sent("Reset your password", "Press **Forgot**.", then="publish", version=1))
    assert "<strong>Forgot</strong>" in text_of(vera.get(page_of(1)))
    assert "Reset your password" in text_of(vera.get(PAGE))


def test_a_new_article_can_be_published_at_once(bob: Browser, vera: Browser) -> None:
    assert bob.send(f"{PAGE}new/", sent("Hours", "9 to 5", then="publish"))["Location"] == page_of(1)
    assert "9 to 5" in text_of(vera.get(page_of(1)))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (sent(" ", "Kept text"), "Enter a title."),
        (sent("x" * 201, "Kept text"), "201 characters; 200 are allowed"),
        (sent("Fine", "Kept text" * 6000), "54,000 characters; 50,000 are allowed"),
        (sent("Fine", "Kept text", section="nowhere"), "This section is gone"),
        (sent("Fine", "Kept text", visibility="moon"), "Select a valid choice"),
    ],
)
def test_bad_input_gets_a_sentence_and_loses_nothing(bob: Browser, given: dict[str, object], sentence: str) -> None:
    answer = bob.send(f"{PAGE}new/", given)
    assert answer.status_code == 422
    assert sentence in text_of(answer)
    assert "Kept text" in text_of(answer)


def test_a_preview_saves_nothing(alice: TenantContext, bob: Browser) -> None:
    preview = sent("Hours", "*nine* <script>x</script>", then="preview")
    assert "<em>nine</em> &lt;script&gt;" in text_of(bob.send(f"{PAGE}new/", preview))
    assert not articles.rows(alice)
    published(alice, "Hours", "eight")
    assert "<em>nine</em> &lt;script&gt;" in text_of(bob.send(f"{page_of(1)}edit/", preview | {"version": "2"}))
    assert articles.draft(alice, 1).body == "eight"


def test_two_writers_lose_nothing(alice: TenantContext, bob: Browser) -> None:
    published(alice, "Hours", "Monday\nTuesday")
    draft = articles.draft(alice, 1)
    article_changes.save(alice, 1, Text("Hours", "Monday\nWednesday", "", True), edit=int(draft.edit), by=SYSTEM)
    answer = bob.send(f"{page_of(1)}edit/", sent("Our hours", "Monday\nFriday", version=int(draft.edit)))
    page = text_of(answer)
    assert answer.status_code == 409
    assert "Somebody else has saved this article meanwhile" in page
    assert all(kept in page for kept in ("Monday\nFriday", "Our hours", "Wednesday"))
    assert articles.draft(alice, 1).body == "Monday\nWednesday"
    again = sent("Our hours", "Monday\nFriday", version=int(draft.edit) + 1)
    assert bob.send(f"{page_of(1)}edit/", again).status_code == 302
    assert articles.draft(alice, 1).body == "Monday\nFriday"


def test_of_two_saves_at_the_same_moment_one_is_refused(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    published(alice, "Hours", "9 to 5")
    read = catalogue.read_centre

    def meanwhile(tenant: TenantContext) -> CentreItem:
        monkeypatch.undo()
        article_changes.save(alice, 1, Text("Theirs", "", "", True), edit=2, by=SYSTEM)
        return read(tenant)

    monkeypatch.setattr(catalogue, "read_centre", meanwhile)
    with pytest.raises(Overtaken):
        article_changes.save(alice, 1, Text("Mine", "", "", True), edit=2, by=SYSTEM)
    assert articles.draft(alice, 1).title == "Theirs"


def test_a_draft_changes_nothing_for_readers(alice: TenantContext, bob: Browser, vera: Browser) -> None:
    published(alice, "Hours", "9 to 5")
    bob.send(f"{page_of(1)}edit/", sent("Hours", "8 to 4", version=2))
    assert "9 to 5" in text_of(vera.get(page_of(1)))
    assert "Draft has changes" in text_of(bob.get(PAGE))
    assert "The draft was changed" in text_of(bob.get(page_of(1)))
    assert "The draft was changed" not in text_of(vera.get(page_of(1)))


def test_publishing_the_same_text_again_makes_no_version(alice: TenantContext, bob: Browser) -> None:
    published(alice, "Hours", "9 to 5")
    bob.send(f"{page_of(1)}publish/", {"edit": 2})
    assert int(articles.draft(alice, 1).versions) == 1


def test_versions_can_be_read_compared_and_restored(alice: TenantContext, bob: Browser, vera: Browser) -> None:
    published(alice, "Hours", "9 to 5\nEvery day")
    bob.send(f"{page_of(1)}edit/", sent("Hours", "8 to 4\nEvery day", then="publish", version=2))
    listed = text_of(bob.get(f"{page_of(1)}versions/"))
    assert listed.index("Version 2") < listed.index("Version 1")
    older = text_of(bob.get(f"{page_of(1)}versions/1/"))
    assert "Removed: </span>9 to 5" in older
    assert "Added: </span>8 to 4" in older
    bob.send(f"{page_of(1)}versions/1/restore/", {"edit": 3})
    assert "8 to 4" in text_of(vera.get(page_of(1)))
    bob.send(f"{page_of(1)}publish/", {"edit": 4})
    assert "9 to 5" in text_of(vera.get(page_of(1)))
    assert bob.get(f"{page_of(1)}versions/9/").status_code == 404


def test_a_long_history_has_pages(alice: TenantContext, bob: Browser) -> None:
    number = published(alice, "Hours", "0")
    for at in range(1, 22):
        edit = int(articles.draft(alice, number).edit)
        article_changes.publish(alice, number, Text("Hours", str(at), "", True), edit=edit, by=SYSTEM)
    first = text_of(bob.get(f"{page_of(1)}versions/"))
    assert ("Version 22<" in first, "Version 3<" in first, "Version 2<" in first) == (True, True, False)
    assert "Version 2<" in text_of(bob.get(f"{page_of(1)}versions/?before=3"))


def test_a_withdrawn_article_is_a_draft_again(alice: TenantContext, bob: Browser, vera: Browser) -> None:
    published(alice, "Hours", "9 to 5")
    bob.send(f"{page_of(1)}withdraw/")
    assert vera.get(page_of(1)).status_code == 404
    assert "9 to 5" in text_of(bob.get(page_of(1)))
    bob.send(f"{page_of(1)}publish/", {"edit": 3})
    assert "9 to 5" in text_of(vera.get(page_of(1)))


def test_only_admins_delete_and_nothing_is_left(alice: TenantContext, owner: Browser, bob: Browser) -> None:
    published(alice, "Hours", "9 to 5")
    for at in range(20):
        edit = int(articles.draft(alice, 1).edit)
        article_changes.publish(alice, 1, Text("Hours", str(at), "", at % 2 == 0), edit=edit, by=SYSTEM)
    assert bob.send(f"{page_of(1)}delete/").status_code == 403
    assert "all 21 versions are" in text_of(owner.get(f"{page_of(1)}delete/"))
    assert owner.send(f"{page_of(1)}delete/").status_code == 302
    assert owner.get(page_of(1)).status_code == 404
    assert not articles.versions(alice, 1).items
    assert not catalogue.read(alice, public=False).cards
    assert published(alice, "Another") == 2  # no number is given out again


def test_an_interrupted_deletion_can_be_repeated(
    alice: TenantContext, owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(alice, "Hours", "9 to 5")

    def dies(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(article_changes, "commit", dies)
        with pytest.raises(KeyboardInterrupt):
            article_changes.delete(alice, 1, by=SYSTEM)
    assert articles.draft(alice, 1).title == "Hours"
    owner.send(f"{page_of(1)}delete/")
    assert not articles.rows(alice)


def test_a_desk_has_a_limit_of_articles(alice: TenantContext, bob: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_changes, "ARTICLES_LIMIT", 1)
    published(alice, "Hours")
    answer = bob.send(f"{PAGE}new/", sent("One more", "Kept text"))
    assert answer.status_code == 409
    assert "up to 1 articles" in text_of(answer)
    assert "Kept text" in text_of(answer)


def test_the_audit_trail_says_who_did_what(alice: TenantContext, owner: Browser, bob: Browser) -> None:
    bob.send(f"{PAGE}new/", sent("Hours", "9 to 5", then="publish"))
    bob.send(f"{page_of(1)}edit/", sent("Hours", "8 to 4", version=2))
    bob.send(f"{page_of(1)}withdraw/")
    owner.send(f"{page_of(1)}delete/")
    trail = text_of(owner.get("/desk/audit/?entity=article:1"))
    for words in ("began", "published", "changed the draft of", "withdrew", "deleted"):
        assert f"{words} the article" in trail, words


# --- sections ---


def test_admins_order_sections(alice: TenantContext, owner: Browser, bob: Browser) -> None:
    assert bob.get(f"{PAGE}sections/").status_code == 403
    for name in ("Billing", "Accounts"):
        owner.send(f"{PAGE}sections/", {"name": name, "about": f"All about {name}"})
    billing, accounts = (one.id for one in sections.listed(alice))
    published(alice, "Invoices", section=billing)
    owner.send(f"{PAGE}sections/{accounts}/move/", {"act": "up"})
    page = text_of(bob.get(PAGE))
    assert page.index("Accounts") < page.index("Billing") < page.index("Invoices")
    assert "No articles in this section yet" in page
    owner.send(f"{PAGE}sections/{billing}/", {"name": "Money", "about": ""})
    assert "Money" in text_of(bob.get(page_of(1)))
    owner.send(f"{PAGE}sections/{billing}/move/", {"act": "remove"})
    assert "Other articles" in text_of(bob.get(PAGE))
    assert bob.get(f"{page_of(1)}edit/").status_code == 200
    assert owner.get(f"{PAGE}sections/{billing}/").status_code == 404


@pytest.mark.parametrize(
    ("name", "sentence"), [("", "Enter a name."), ("x" * 81, "80 are allowed"), ("billing", "this name already")]
)
def test_a_bad_section_gets_a_sentence(alice: TenantContext, owner: Browser, name: str, sentence: str) -> None:
    sections.add(alice, "Billing", by=SYSTEM)
    answer = owner.send(f"{PAGE}sections/", {"name": name, "about": "Kept text"})
    assert (answer.status_code, sentence in text_of(answer), "Kept text" in text_of(answer)) == (422, True, True)


# --- finding ---


def found(tenant: TenantContext, text: str, *, public: bool = False) -> list[str]:
    return ["".join(piece.text for piece in hit.title) for hit in article_search.find(tenant, text, public=public)]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("password", ["Reset your password", "Opening hours"]),
        ("passwords", ["Reset your password", "Opening hours"]),
        ("forg*", ["Reset your password"]),
        ('"the door"', ["Opening hours"]),
        ("password -door", ["Reset your password"]),
        ("password door", ["Opening hours"]),
        ("elephant", []),
        ("draft", []),
        ("password tag:vip", []),
    ],
)
def test_articles_are_found_by_the_language_of_the_search(alice: TenantContext, text: str, titles: list[str]) -> None:
    published(alice, "Reset your password", "Press Forgot and wait for the letter.")
    published(alice, "Opening hours", "The door opens at nine with a password.")
    article_changes.create(alice, Text("A draft about a password", "draft"), by=SYSTEM)
    assert found(alice, text) == titles


def test_what_an_article_said_before_is_found_no_more(alice: TenantContext) -> None:
    published(alice, "Hours", "elephant")
    assert found(alice, "elephant") == ["Hours"]
    article_changes.publish(alice, 1, Text("Hours", "mouse", "", True), edit=2, by=SYSTEM)
    assert (found(alice, "elephant"), found(alice, "mouse")) == ([], ["Hours"])
    article_changes.withdraw(alice, 1, by=SYSTEM)
    assert found(alice, "mouse") == []


def test_a_search_of_articles_asks_for_the_latest_edition_and_one_beside_tickets_for_half_the_price(
    alice: TenantContext,
) -> None:
    published(alice, "Hours", "elephant")
    found(alice, "elephant")
    units = []
    for at_once in (True, False):
        with meter.measure() as bill:
            article_search.find(alice, "elephant", public=False, at_once=at_once)
        units += [call.read_units for call in bill.calls if call.operation == "GetItem"]
    assert units == [1, 0.5]


def test_a_public_search_finds_public_articles_alone(alice: TenantContext, world: World) -> None:
    published(alice, "Open secret", "elephant")
    published(alice, "Closed secret", "elephant", public=False)
    assert sorted(found(alice, "elephant")) == ["Closed secret", "Open secret"]
    assert found(alice, "elephant", public=True) == ["Open secret"]
    assert found(world.context("charlie", "globex"), "elephant") == []
    article_changes.publish(alice, 1, Text("Open secret", "elephant", "", False), edit=2, by=SYSTEM)
    assert found(alice, "elephant", public=True) == []
    assert not catalogue.read(alice, public=True).cards


def test_the_list_of_articles_is_searched(alice: TenantContext, vera: Browser) -> None:
    published(alice, "Reset <b>", "Press **Forgot** at once.")
    page = text_of(vera.get(PAGE, {"q": "forgot"}))
    assert "Reset &lt;b&gt;" in page
    assert "<mark>Forgot</mark>" in page
    assert "No article found" in text_of(vera.get(PAGE, {"q": "elephant"}))
    assert "nearly every ticket" in text_of(vera.get(PAGE, {"q": "the"}))


# --- suggesting ---


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("I have forgotten my password, please help", ["Reset your password"]),
        ("passwort", []),
        ("The letter with the invoice is wrong", ["Invoices"]),
        ("wait", []),  # one word of a text says too little
        ("wait letter", ["Reset your password"]),
        ("the of and", []),
        ("", []),
    ],
)
def test_articles_are_suggested_for_what_somebody_writes(alice: TenantContext, text: str, titles: list[str]) -> None:
    published(alice, "Reset your password", "Press Forgot and wait for the letter.")
    published(alice, "Invoices", "We send an invoice each month.")
    assert [card.title for card in article_search.suggest(alice, text, public=True)][:1] == titles


def test_at_most_five_are_suggested_and_none_that_is_for_the_desk_to_guests(alice: TenantContext) -> None:
    for number in range(7):
        published(alice, f"Password {number}", public=number > 0)
    assert len(article_search.suggest(alice, "password", public=False)) == 5
    assert "Password 0" not in [card.title for card in article_search.suggest(alice, "password 0", public=True)]


# --- costs ---


@pytest.mark.parametrize("path", ["", "1/", "1/edit/", "1/versions/", "1/versions/1/", "options/?title=hours"])
def test_pages_take_one_round_trip_more_than_finding_out_who_calls(
    alice: TenantContext, bob: Browser, path: str
) -> None:
    published(alice, "Hours", "9 to 5")
    catalogue.forget()
    assert spent(bob, f"{PAGE}{path}").trips == 2


def test_suggestions_cost_one_small_read_once_the_catalogue_is_known(alice: TenantContext, bob: Browser) -> None:
    for number in range(30):
        published(alice, f"Hours {number}", "word " * 2000)
    spent(bob, f"{PAGE}options/?title=hours")
    again = spent(bob, f"{PAGE}options/?title=hours")
    assert [call.operation for call in again.calls] == ["BatchGetItem", "GetItem"]
    assert again.read_units <= IDENTITY + 1


# --- beside tickets ---


def test_the_search_for_tickets_finds_articles_too(alice: TenantContext, bob: Browser, vera: Browser) -> None:
    published(alice, "Reset your password", "Press Forgot.")
    article_changes.create(alice, Text("A draft about a password"), by=SYSTEM)
    for somebody in (bob, vera):
        page = text_of(somebody.get("/search/", {"q": "password"}))
        assert 'href="/acme/articles/1/"' in page
        assert "A draft" not in page
        assert 'href="/acme/articles/1/"' not in text_of(somebody.get("/search/", {"q": "password", "status": "open"}))
    assert "articles-title" not in text_of(bob.get("/search/", {"q": "elephant"}))


def test_articles_are_offered_in_the_answer_with_a_link_for_readers(
    alice: TenantContext, bob: Browser, world: World
) -> None:
    published(alice, "Reset your [password]")
    published(alice, "Passwords that we know", public=False)
    world.tickets("acme", 1)
    page = text_of(bob.get("/tickets/1/"))
    for link in ("hx-get", "<a href"):  # with a script, and without
        assert f'{link}="{PAGE}options/?title=Ticket%201"' in page
    piece = text_of(bob.get(f"{PAGE}options/", {"title": "My password"}, headers={"HX-Request": "true"}))
    assert "<html" not in piece
    assert 'data-insert="[Reset your password](http' in piece
    assert "/help/acme/1-reset-your-password/)" in piece
    assert "/acme/articles/2/)" in piece
    assert "Desk only" in piece
    page = text_of(bob.get(f"{PAGE}options/", {"title": "My password"}))  # without a script
    assert "<html" in page
    assert "Reset your [password]" in page
    assert "No article fits" in text_of(bob.get(f"{PAGE}options/", {"title": "elephant"}))


# --- people in texts ---


def test_an_erasure_replaces_an_address_in_all_versions(alice: TenantContext, owner: Browser) -> None:
    requesters.ensure(alice, "ada@example.org", name="Ada")
    published(alice, "Ask ada@example.org", "She is ada@example.org.")
    article_changes.publish(alice, 1, Text("Whom to ask", "Not ada@example.org", "", True), edit=2, by=SYSTEM)
    assert "rticle, its text" in text_of(owner.send("/desk/settings/person/", {"address": "ada@example.org"}))
    assert run("erase_person", "acme", "ada@example.org", "--texts").status == 0
    texts = [*articles.versions(alice, 1).items, articles.draft(alice, 1), articles.published(alice, 1)]
    assert len(texts) == 4
    assert not [one for one in texts if "ada@" in one.title + one.body]
    assert found(alice, '"ada@example.org"') == []
    assert found(alice, "erased person") == ["Whom to ask"]


def test_an_address_in_a_text_stays_where_texts_are_to_stay(alice: TenantContext) -> None:
    requesters.ensure(alice, "ada@example.org", name="Ada")
    published(alice, "Ask", "ada@example.org")
    assert run("erase_person", "acme", "ada@example.org").status == 0
    assert articles.draft(alice, 1).body == "ada@example.org"
