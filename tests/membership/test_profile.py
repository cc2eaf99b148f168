"""A person's profile: name, zone, the forms in which pages show times and numbers, and the signature at a desk."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from portal.schema import keys
from portal.web import locales
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tenants.membership import member_changes, members, own_profile
from tenants.membership.stored import MemberItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import Profile
from tests.support.world import Browser, World
from tickets.ticket.stored import SUMMARY, SummaryItem
from tickets.ticket.stored import ticket as ticket_key

PAGE = "/account/profile/"
ZONE = "/account/profile/zone/"
GIVEN = {
    "name": "Bob Builder",
    "zone": "Asia/Kolkata",
    "date_form": "dots",
    "number_form": "dot",
    "first_weekday": "6",
    "language": "de",
}


def save(browser: Browser, **values: str) -> Any:
    return browser.send(PAGE, {**GIVEN, **values})


def account(world: World, who: str = "bob") -> Any:
    return accounts.find_by_id(world.users[who].id)


def trail(world: World, where: str, action: str) -> list[browsing.TrailRow]:
    found = browsing.page(
        world.context("alice" if where == "acme" else "charlie", where).repository, only=TrailFilter()
    )
    return [row for row in found.rows if row.action == action]


def opened_at(world: World, stamp: str) -> None:
    """Open ticket 1 of acme at this moment."""
    world.tickets("acme", 1)
    store = world.context("bob", "acme").repository
    item = store.get(SummaryItem, ticket_key, 1, sort=SUMMARY)
    assert item is not None
    store.update(item, [SummaryItem.created_at.set(stamp)])


def opened(browser: Browser) -> tuple[str, str]:
    """The tooltip and the text of when ticket 1 was opened, in the facts beside it."""
    page = browser.get("/tickets/1/").content.decode()
    found = re.search(r'<dt>Opened</dt><dd><time datetime="[^"]+" title="([^"]*)">([^<]*)</time>', page)
    assert found is not None
    return found[1], found[2]


def test_a_person_changes_name_zone_and_forms_and_each_of_their_desks_knows_the_name(world: World) -> None:
    browser = world.browser("bob", "acme")
    assert save(browser, name="  Bob   Builder ")["Location"] == PAGE
    user = account(world)
    assert (user.name, Profile.parse(user.profile)) == (
        "Bob Builder",
        Profile("Asia/Kolkata", "dots", "dot", "6", "de"),
    )
    for where in ("acme", "globex"):
        copy = members.member(world.context("alice", where).repository, user.id)
        assert copy is None or (copy.name, copy.profile.zone) == ("Bob Builder", "Asia/Kolkata")
    page = browser.get(PAGE).content.decode()
    assert '<option value="Asia/Kolkata" selected>' in page
    assert ">BB</span>" in page  # the initials of the picture
    (row,) = trail(world, "acme", "member.profile_changed")
    assert (row.after, "Bob" in str(row)) == ({"name": "another one"}, False)


def test_saving_the_same_again_changes_nothing_and_completes_copies_that_were_left_out(world: World) -> None:
    browser, store = world.browser("bob", "acme"), world.context("bob", "acme").repository
    save(browser)
    store.as_role("platform").update(
        MemberItem(store.tenant_id, world.users["bob"].id), [MemberItem.name.set("bob"), MemberItem.profile.remove()]
    )
    before = account(world)
    save(browser)
    assert (account(world).profile, account(world).name) == (before.profile, before.name)
    copy = members.member(store, world.users["bob"].id)
    assert copy is not None
    assert (copy.name, copy.profile.zone) == ("Bob Builder", "Asia/Kolkata")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("name", " ", "This field is required."),
        ("name", "\u200b", "Use characters that can be seen."),
        ("name", "see https://evil.example", "Leave links and addresses out: names stand in e-mails."),
        ("name", "x" * 101, "Ensure this value has at most 100 characters"),
        ("zone", "Mars/Olympus", "Select a valid choice."),
        ("date_form", "later", "Select a valid choice."),
        ("number_form", "roman", "Select a valid choice."),
        ("first_weekday", "9", "Select a valid choice."),
        ("language", "tlh", "Select a valid choice."),
    ],
)
def test_a_value_that_cannot_be_gets_a_sentence_and_nothing_typed_is_lost(
    world: World, field: str, value: str, sentence: str
) -> None:
    answer = save(world.browser("bob", "acme"), **{field: value})
    page = answer.content.decode()
    assert (answer.status_code, sentence in page) == (422, True)
    assert 'value="Bob Builder"' in page or field == "name"
    assert account(world).profile == ""


# --- the zone that the browser is in ---


def test_the_zone_of_the_browser_is_stored_once_and_never_over_a_choice(world: World) -> None:
    browser = world.browser("bob", "acme")
    assert 'id="find-zone"' in browser.get("/tickets/").content.decode()
    assert browser.post(ZONE, {"zone": "Europe/Lisbon"}).status_code == 204
    assert Profile.parse(account(world).profile) == Profile("Europe/Lisbon")
    assert 'id="find-zone"' not in browser.get("/tickets/").content.decode()
    browser.post(ZONE, {"zone": "Asia/Tokyo"})
    assert Profile.parse(account(world).profile).zone == "Europe/Lisbon"


def test_the_browser_does_not_undo_the_choice_of_the_desks_zone(world: World) -> None:
    browser = world.browser("bob", "acme")
    save(browser, zone="desk", date_form="words", number_form="", first_weekday="0", language="desk")
    browser.post(ZONE, {"zone": "Asia/Tokyo"})
    assert Profile.parse(account(world).profile) == Profile("desk")


def test_a_browser_that_tells_its_zone_while_the_profile_is_saved_undoes_nothing_and_gets_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, note = world.browser("bob", "acme"), own_profile.note_zone

    def after_the_choice(*args: Any, **options: Any) -> bool:
        save(world.browser("bob", "acme"), zone="desk", name="Bob the Builder")
        return note(*args, **options)

    monkeypatch.setattr(own_profile, "note_zone", after_the_choice)
    assert browser.post(ZONE, {"zone": "Asia/Tokyo"}).status_code == 204
    assert (account(world).name, Profile.parse(account(world).profile).zone) == ("Bob the Builder", "desk")


@pytest.mark.parametrize("zone", ["", "Etc/Unknown", "../../etc/passwd", "Factory", "x" * 5000])
def test_a_zone_that_is_not_known_is_not_stored(world: World, zone: str) -> None:
    assert world.browser("bob", "acme").post(ZONE, {"zone": zone}).status_code == 204
    assert account(world).profile == ""


# --- times on pages ---


def test_times_are_in_the_zone_of_the_person_else_of_the_desk_else_in_utc(world: World) -> None:
    opened_at(world, "2024-02-29T20:15:00.000000Z")
    bob = world.browser("bob", "acme")
    assert opened(bob) == ("29 Feb 2024, 20:15 UTC", "29 Feb 2024")
    alice = world.context("alice", "acme")
    desk_settings.change_defaults(alice, values={"time_zone": "America/New_York"}, by=Actor(world.users["alice"].id))
    assert opened(bob) == ("29 Feb 2024, 15:15 America/New_York (UTC-5)", "29 Feb 2024")
    save(bob, language="en")
    assert opened(bob) == ("01.03.2024, 01:45 Asia/Kolkata (UTC+5:30)", "01.03.2024")
    assert opened(world.browser("alice", "acme"))[0].endswith("America/New_York (UTC-5)")


def language_of(browser: Client, address: str = "/acme/tickets/", **headers: str) -> str:
    page = browser.get(address, headers=headers).content.decode()
    found = re.search(r'<html lang="([a-z]*)" dir="ltr">', page)
    assert found is not None, page
    return found[1]


def test_pages_are_in_the_language_of_the_person_else_of_the_desk_else_of_the_browser_else_in_english(
    world: World,
) -> None:
    bob = world.browser("bob", "acme")
    assert language_of(bob) == "en"
    assert [language_of(bob, accept_language=accepted) for accepted in ("de-AT,de;q=0.9", "fr", "fr, de;q=0.5")] == [
        *("de", "en", "de"),
    ]
    alice = world.context("alice", "acme")
    desk_settings.change_defaults(alice, values={"language": "de"}, by=Actor(world.users["alice"].id))
    assert (language_of(bob), language_of(bob, accept_language="en")) == ("de", "de")
    save(bob, language="en")
    assert (language_of(bob), language_of(world.browser("alice", "acme"))) == ("en", "de")


def test_a_page_for_nobody_is_in_the_language_of_the_browser(world: World) -> None:
    assert language_of(Client(), "/login/", accept_language="de") == "de"


def test_the_language_of_a_request_does_not_stay_for_what_follows(world: World) -> None:
    assert language_of(world.browser("bob", "acme"), accept_language="de") == "de"
    assert (locales.current().language, translation.get_language()) == ("en", "en")


def test_moments_that_are_typed_are_in_the_zone_of_the_person(world: World) -> None:
    world.tickets("acme", 1)
    alice = world.browser("alice", "acme")
    save(alice, name="Alice Example", date_form="words", language="en")
    page = alice.get("/tickets/past/?at=2024-03-01T01:45:00").content.decode()
    assert "As of (Asia/Kolkata)" in page
    assert 'value="2024-03-01T01:45:00"' in page
    assert 'datetime="2024-02-29T20:15:00.999999+00:00"' in page
    assert (
        "Write a moment as 2026-11-20T10:00:00, in Asia/Kolkata." in alice.get("/tickets/past/?at=x").content.decode()
    )


@pytest.mark.parametrize(
    ("stamp", "first", "last", "is_shown"),
    [
        ("2024-02-28T18:30:00.000000Z", "2024-02-29", "2024-02-29", True),
        ("2024-02-28T18:29:59.999999Z", "2024-02-29", "", False),
        ("2024-02-29T18:29:59.999999Z", "", "2024-02-29", True),
        ("2024-02-29T18:30:00.000000Z", "", "2024-02-29", False),
        ("2024-02-29T18:30:00.000000Z", "0001-01-01", "9999-12-31", True),
    ],
)
def test_days_of_the_audit_trail_are_those_of_the_desks_zone(stamp: str, first: str, last: str, is_shown: bool) -> None:
    low, high = browsing.filter_of(first=first, last=last, zone="Asia/Kolkata").bounds()
    assert (low <= f"{stamp}#id" <= high) is is_shown


# --- the signature ---


def sign(world: World, text: str, who: str = "bob") -> Any:
    return world.browser(who, "acme").send("/desk/signature/", {"signature": text})


def test_a_signature_belongs_to_one_desk_is_audited_without_its_words_and_goes_with_the_membership(
    world: World,
) -> None:
    assert sign(world, "Bob\r\nSupport, 555-0100")["Location"] == PAGE
    assert "555-0100</textarea>" in world.browser("bob", "acme").get(PAGE).content.decode()
    (row,) = trail(world, "acme", "member.profile_changed")
    assert (row.after, "555-0100" in str(row)) == ({"signature": "21 characters"}, False)
    alice = world.context("alice", "acme")
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=Actor(world.users["alice"].id))
    assert alice.repository.get(MemberItem, keys.tenant, sort=world.users["bob"].id) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x" * 601, "This text has 601 characters; 600 are allowed. Shorten it by 1."),
        ("\u202ebob", "characters that no letter can show"),
    ],
)
def test_a_signature_that_cannot_be_gets_a_sentence_and_is_not_lost(world: World, text: str, sentence: str) -> None:
    answer = sign(world, text)
    page = answer.content.decode()
    assert (answer.status_code, sentence in page, text in page) == (422, True, True)


def test_a_viewer_who_writes_no_replies_has_no_signature(world: World) -> None:
    assert "Signature at" not in world.browser("vera", "acme").get(PAGE).content.decode()
    assert sign(world, "Vera", who="vera").status_code == 403


def test_the_notice_after_choosing_another_language_is_in_that_language(world: World) -> None:
    bob, alice = world.browser("bob", "acme"), world.browser("alice", "acme")
    assert "Ihr Profil ist gespeichert." in bob.send(PAGE, GIVEN, follow=True).content.decode()
    assert "Your profile is saved." in bob.send(PAGE, GIVEN | {"language": "en"}, follow=True).content.decode()
    german = alice.send("/desk/settings/defaults/", {"language": "de"}, follow=True).content.decode()
    assert "Einstellungen gespeichert." in german
    english = alice.send("/desk/settings/defaults/", {"language": "browser"}, follow=True).content.decode()
    assert "Settings saved." in english
