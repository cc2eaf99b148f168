"""Requesters are found by address and while somebody types, and each address is one person's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from portal.errors import Invalid
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.support import racing
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.requesters import requester_addresses, requester_changes, requesters
from tickets.requesters import stored as keys
from tickets.ticket import stored


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (" Ada@Example.ORG ", "ada@example.org"),
        ("ada@BÜCHER.example", "ada@xn--bcher-kva.example"),
        ("o'neil+x#1|2@example.org", "o'neil+x#1|2@example.org"),
        ("ada@[192.0.2.1]", "ada@[192.0.2.1]"),
        ("ädä@example.org", "ädä@example.org"),
    ],
)
def test_an_address_is_kept_in_one_form_and_found_by_it(alice: TenantContext, typed: str, kept: str) -> None:
    made = requesters.ensure(alice, typed, name="Ada Lovelace")
    assert made.addresses == (kept,)
    assert requesters.by_address(alice, typed.upper()) == made


@pytest.mark.parametrize(
    "typed", ["", "ada", "ada@", "@example.org", "a b@example.org", "ada@exa mple.org", "a@" + "b" * 300]
)
def test_what_is_no_address_makes_nobody(alice: TenantContext, typed: str) -> None:
    with pytest.raises(Invalid):
        requesters.ensure(alice, typed)
    assert requesters.by_address(alice, typed) is None


def test_letters_of_somebody_new_that_come_at_once_make_one_person(alice: TenantContext) -> None:
    found: list[str] = []
    racing.succeed([lambda: found.append(requesters.ensure(alice, "ada@example.org", name="Ada").id)] * 4)
    assert len(found) == 4
    assert len(set(found)) == 1


def test_the_same_address_is_another_person_in_another_desk(world: World, alice: TenantContext) -> None:
    acme = requesters.ensure(alice, "ada@example.org", name="Ada of Acme")
    globex = world.context("charlie", "globex")
    assert requesters.by_address(globex, "ada@example.org") is None
    assert requesters.complete(globex, "ada") == []
    assert requesters.find(globex, acme.id) is None


@pytest.mark.parametrize(
    "typed", ["ada", "ÁDA l", "LOVE", "lovelace", "ada.l@ex", "Ada Lovelace <ada.l", "Ada Lovelace <ada.l@example.org>"]
)
def test_a_person_is_found_by_the_beginning_of_a_name_or_an_address(alice: TenantContext, typed: str) -> None:
    requesters.ensure(alice, "ada.l@example.org", name="Ada Lovelace")
    requesters.ensure(alice, "grace@example.org", name="Grace Hopper")
    (found,) = requesters.complete(alice, typed)
    assert (found.name, found.address) == ("Ada Lovelace", "ada.l@example.org")


def test_a_last_word_is_that_of_the_name_now_and_of_nobody_who_was_merged(alice: TenantContext) -> None:
    ada = requesters.ensure(alice, "ada@example.org", name="Ada Byron")
    grace = requesters.ensure(alice, "grace@example.org", name="Grace van Lovelock")
    by = Actor("d" * 32, "alice@example.com", "test")
    requester_changes.change(alice, ada.id, lambda old: replace(old, name="Ada Lovelace"), version=1, by=by)
    assert requesters.complete(alice, "byr") == []
    assert {found.id for found in requesters.complete(alice, "love")} == {ada.id, grace.id}
    requester_changes.merge(alice, grace.id, ada.id, by=by)
    assert [found.id for found in requesters.complete(alice, "love")] == [grace.id]
    requester_changes.undo_merge(alice, ada.id, by=by)
    assert [found.name for found in requesters.complete(alice, "lovela")] == ["Ada Lovelace"]
    requester_changes.change(alice, ada.id, lambda old: replace(old, name="Ada"), version=None, by=by)
    assert requesters.complete(alice, "lovela") == []


def test_no_more_people_are_offered_than_a_list_shows(alice: TenantContext) -> None:
    for number in range(requesters.OFFERED + 2):
        requesters.ensure(alice, f"ada{number}@example.org", name="Ada")
    assert len(requesters.complete(alice, "ada")) == requesters.OFFERED
    assert requesters.complete(alice, " ") == []


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("Ada Lovelace <Ada@example.org>", ("Ada Lovelace", "ada@example.org")),
        ('"Lovelace, Ada" <ada@example.org>', ("Lovelace, Ada", "ada@example.org")),
        ("ada@example.org", ("", "ada@example.org")),
    ],
)
def test_a_person_is_typed_as_in_a_letter(typed: str, read: tuple[str, str]) -> None:
    assert requester_addresses.typed(typed) == read


def test_a_ticket_is_opened_for_somebody_outside(alice: TenantContext) -> None:
    ada = requesters.ensure(alice, "ada@example.org", name="Ada Lovelace")
    number = creating.create(alice, title="Engine", requester=ada.id)
    summary = changing.read(alice, number)
    assert (summary.requester, summary.requester_name) == (ada.id, "Ada Lovelace")
    assert summary.tenant_requester == stored.tenant_requester(alice.tenant_id, ada.id)


def test_a_ticket_for_nobody_who_is_known_is_refused(alice: TenantContext) -> None:
    for unknown in ("rq_" + "0" * 32, alice.user_id, "x"):
        with pytest.raises(Invalid, match="no such requester"):
            creating.create(alice, title="Engine", requester=unknown)


@given(
    st.one_of(st.text(max_size=80), st.builds("{}@{}".format, st.text(max_size=20), st.text(max_size=20)), st.emails())
)
@example('"a b"@example.org')
@example("a\ud800@example.org")
@example("a@\ud800.org")
@example("\u202ea@example.org")
@example("a@" + "\xe9" * 80 + ".org")
def test_any_text_is_an_address_in_one_form_or_none(text: str) -> None:
    try:
        address = requester_addresses.normal(text)
    except Invalid as refused:
        refused.message.encode()
        return
    assert requester_addresses.normal(address) == address
    key = keys.address("a" * 32, address)
    assert key.startswith(f"TENANT#{'a' * 32}|ADDRESS#")
    assert key.count("#") == 2
    keys.found_by(address, "rq_" + "0" * 32).encode()


def test_different_addresses_never_have_one_key() -> None:
    forms = ["a#b@x.org", "a%23b@x.org", "a|b@x.org", "a%7Cb@x.org", "a%b@x.org", "a%25b@x.org"]
    assert len({keys.address("a" * 32, form) for form in forms}) == len(forms)
