"""Reply addresses and Message-IDs: made for one desk, ticket and person, and worthless for any other."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tickets.replies import message_ids, reply_addresses
from tickets.replies.message_ids import MOST, message_id, read_message_id
from tickets.replies.reply_addresses import address_of
from tickets.ticket.stored import activity

ACME, GLOBEX = "a" * 32, "b" * 32
ALICE, BOB = "1" * 32, "rq_" + "2" * 32

desks = st.uuids().map(lambda one: one.hex)
numbers = st.integers(1, MOST)
people = st.one_of(desks, desks.map(lambda one: f"rq_{one}"))
entries = st.text("0123456789abcdef-", min_size=1, max_size=40)


@given(desks, numbers, people, st.booleans())
def test_an_address_says_what_it_was_made_for(desk: str, number: int, person: str, is_agent: bool) -> None:
    claim = reply_addresses.read(address_of(desk, number, person, is_agent=is_agent))
    assert claim is not None
    assert (claim.tenant_id, claim.number, claim.is_agent) == (desk, number, is_agent)
    assert claim.is_of(person)


@given(desks, numbers, people, st.booleans())
def test_the_local_part_of_an_address_has_at_most_64_octets(desk: str, number: int, person: str, agent: bool) -> None:
    local, _, domain = address_of(desk, number, person, is_agent=agent).partition("@")
    assert len(local.encode()) <= 64
    assert local == local.lower()
    assert domain == "desk.localhost"


@given(desks, numbers, people, st.booleans(), st.data())
def test_a_mail_server_may_change_upper_and_lower_case(
    desk: str, number: int, person: str, is_agent: bool, data: st.DataObject
) -> None:
    address = address_of(desk, number, person, is_agent=is_agent)
    cased = "".join(data.draw(st.sampled_from((letter.upper(), letter))) for letter in address)
    for changed in (cased, address.upper(), f"<{address}>", f" {address}\n"):
        assert reply_addresses.read(changed) == reply_addresses.read(address)


@given(desks, numbers, people, st.booleans(), st.data())
def test_an_address_with_another_character_is_refused(
    desk: str, number: int, person: str, is_agent: bool, data: st.DataObject
) -> None:
    address = address_of(desk, number, person, is_agent=is_agent)
    at = data.draw(st.integers(0, address.index("@") - 1))
    other = data.draw(st.one_of(st.sampled_from("abcdefghijklmnopqrstuvwxyz234567+"), st.characters()))
    assume(other.lower() != address[at] and other != "@")
    changed = address[:at] + other + address[at + 1 :]
    assume(changed.strip().lower().strip("<") != address)
    assert reply_addresses.read(changed) is None


@given(desks, numbers, people, st.data())
def test_an_address_that_lacks_or_repeats_a_part_is_refused(
    desk: str, number: int, person: str, data: st.DataObject
) -> None:
    local, _, domain = address_of(desk, number, person, is_agent=False).partition("@")
    cut = data.draw(st.integers(0, len(local) - 1))
    for changed in (local[:cut], local[cut + 1 :], local + local[cut], local + "=", local + "a"):
        assert reply_addresses.read(f"{changed}@{domain}") is None


@given(st.text())
def test_any_other_text_is_no_reply_address(text: str) -> None:
    for address in (text, f"{text}@desk.localhost", f"reply+{text}@desk.localhost"):
        assert reply_addresses.read(address) is None


@pytest.mark.parametrize("byte", range(36))
def test_no_byte_of_a_token_can_be_exchanged_for_that_of_another(byte: int) -> None:
    mine, other = _bytes(address_of(ACME, 7, ALICE, is_agent=False)), _bytes(address_of(GLOBEX, 8, BOB, is_agent=True))
    mixed = mine[:byte] + other[byte:]
    if mixed not in (mine, other):
        text = base64.b32encode(mixed).decode().rstrip("=").lower()
        assert reply_addresses.read(f"reply+{text}@desk.localhost") is None


@given(desks, desks, numbers, people, people)
def test_an_address_is_of_nobody_else_and_no_other_desk(
    desk: str, another: str, number: int, person: str, other: str
) -> None:
    assume(desk != another and person != other)
    claim = reply_addresses.read(address_of(desk, number, person, is_agent=False))
    assert claim is not None
    assert not claim.is_of(other)
    elsewhere = reply_addresses.read(address_of(another, number, person, is_agent=False))
    assert elsewhere is not None
    assert elsewhere.person != claim.person, "people of two desks could be told to be the same"


def test_an_address_of_a_requester_and_of_an_agent_are_different_ones() -> None:
    theirs, ours = (address_of(ACME, 7, ALICE, is_agent=is_agent) for is_agent in (False, True))
    assert theirs != ours
    assert (claims := [reply_addresses.read(one) for one in (theirs, ours)])
    assert [claim and claim.is_agent for claim in claims] == [False, True]


@pytest.mark.parametrize("number", [0, -1, MOST + 1, 1 << 31 | 7])
def test_no_number_reaches_the_mark_of_agents(number: int) -> None:
    with pytest.raises(ValueError, match="ticket number"):
        address_of(ACME, number, ALICE, is_agent=False)
    with pytest.raises(ValueError, match="ticket number"):
        message_id(ACME, number, "e1")


@given(desks, numbers, entries)
def test_a_message_id_says_its_ticket(desk: str, number: int, entry: str) -> None:
    ours = message_id(desk, number, entry)
    for text in (ours, ours.strip("<>"), f"  {ours}\r\n", ours.upper()):
        assert read_message_id(text) == (desk, number, entry)


@given(desks, numbers, entries, st.data())
def test_a_message_id_with_another_character_is_refused(
    desk: str, number: int, entry: str, data: st.DataObject
) -> None:
    ours = message_id(desk, number, entry)
    at = data.draw(st.integers(1, ours.index("@") - 1))
    other = data.draw(st.one_of(st.sampled_from("abcdefghijklmnopqrstuvwxyz234567-.0189"), st.characters()))
    assume(other.lower() != ours[at] and other != "@")
    changed = ours[:at] + other + ours[at + 1 :]
    assume(changed.lower().strip("< ") != ours.strip("< "))
    assert read_message_id(changed) is None


@given(st.text())
def test_any_other_text_is_no_message_id_of_ours(text: str) -> None:
    for one in (text, f"<{text}@desk.localhost>", f"<r.{text}.e1@desk.localhost>"):
        assert read_message_id(one) is None


def test_the_entry_of_one_letter_does_not_fit_another() -> None:
    ours = message_id(ACME, 7, "e1")
    assert read_message_id(ours.replace(".e1@", ".e2@")) is None
    assert message_id(ACME, 7, "e2") != ours


def test_the_entry_of_a_letter_leads_back_to_its_sort_key() -> None:
    sort = activity("2026-11-20T09:30:00.000123Z", "0a1b2c3d4e5f")
    ours = message_id(ACME, 7, message_ids.entry_of(sort))
    read = read_message_id(ours)
    assert read is not None
    assert message_ids.sort_of(read.entry) == sort
    assert message_ids.sort_of("new") is None


def test_a_reply_address_is_no_message_id_and_the_other_way_round() -> None:
    token = address_of(ACME, 7, ALICE, is_agent=False).partition("@")[0].removeprefix("reply+")
    assert read_message_id(f"<r.{token}.e1@desk.localhost>") is None
    token = message_id(ACME, 7, "e1").split(".")[1]
    assert reply_addresses.read(f"reply+{token}@desk.localhost") is None


def test_an_entry_with_other_characters_still_makes_a_message_id() -> None:
    ours = message_id(ACME, 7, "An entry <x>@y" * 9)
    read = read_message_id(ours)
    assert read is not None
    assert read[:2] == (ACME, 7)
    assert ours.isascii()
    assert " " not in ours


def test_tokens_of_a_former_key_hold_while_it_is_a_fallback(settings: Any) -> None:
    address, ours = address_of(ACME, 7, ALICE, is_agent=False), message_id(ACME, 7, "e1")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-0123456789-abcdefghijklmnopqrstuvwxyz"
    assert reply_addresses.read(address)
    assert read_message_id(ours)
    settings.SECRET_KEY_FALLBACKS = []
    assert reply_addresses.read(address) is None
    assert read_message_id(ours) is None


def test_the_salts_of_the_two_are_different() -> None:
    assert reply_addresses._SALT != message_ids._SALT


def _bytes(address: str) -> bytes:
    text = address.partition("@")[0].removeprefix("reply+").upper()
    return base64.b32decode(text + "=" * (-len(text) % 8))


@pytest.mark.parametrize("other", "abcdefghijklmnopqrstuvwxyz234567")
def test_the_spare_bits_of_the_last_character_mean_nothing_else(other: str) -> None:
    for made, read in ((address_of(ACME, 7, ALICE, is_agent=False), reply_addresses.read), (_id(), read_message_id)):
        end = made.rindex("@") if made.startswith("reply") else made.index(".e1@")
        changed = made[: end - 1] + other + made[end:]
        assert (read(changed) is None) is (changed != made)


def _id() -> str:
    return message_id(ACME, 7, "e1")


@given(desks, numbers, entries)
def test_a_return_address_says_which_letter_it_was_made_for_and_is_no_reply_address(
    desk: str, number: int, entry: str
) -> None:
    address = reply_addresses.return_address(desk, number, entry)
    sent = reply_addresses.read_return(address.upper())
    assert sent is not None
    assert (sent.tenant_id, sent.number) == (desk, number)
    assert sent.is_about(entry)
    assert not sent.is_about(f"{entry}x")
    assert len(address.partition("@")[0].encode()) <= 64
    token = address.partition("+")[2]
    assert reply_addresses.read(f"reply+{token}") is None
    assert reply_addresses.read_return(f"reply+{token}") is None


@given(desks, numbers, people)
def test_a_reply_address_is_no_return_address(desk: str, number: int, person: str) -> None:
    token = address_of(desk, number, person, is_agent=False).partition("+")[2]
    assert reply_addresses.read_return(f"bounce+{token}") is None


@pytest.mark.parametrize("number", [0, -1, MOST + 1])
def test_no_return_address_is_made_for_what_is_no_ticket(number: int) -> None:
    with pytest.raises(ValueError, match="ticket number"):
        reply_addresses.return_address(ACME, number, "new")
