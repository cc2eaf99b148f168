"""A cursor works for the list that made it; everything else is refused as Invalid, never as a crash."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import signing
from hypothesis import assume, example, given
from hypothesis import strategies as st

from portal.dynamo import paging
from portal.errors import Invalid
from tests.support.fakes import index_row, tenant_in_memory
from tickets.desk import lists
from tickets.ticket import stored
from tickets.ticket.fields import Status

ACME, GLOBEX = "ac" * 16, "9b" * 16
BOB = "b0" * 16
QUERY = ("gsi-status-updated", "open", None, 4, 0)
POSITION = [0, "2026-01-31T12:00:00.000000Z", 3, 4711]

values = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=30)
positions = st.lists(values, max_size=6)
queries_ = st.tuples(values, values, values)


def readable(text: str) -> str:
    """What anybody can read in a cursor without a key."""
    data = text.split(":")[0]
    raw = base64.urlsafe_b64decode(data.lstrip(".") + "==")
    return (zlib.decompress(raw) if data.startswith(".") else raw).decode()


def refused(text: str, *, tenant_id: str = ACME, query: tuple[object, ...] = QUERY) -> bool:
    try:
        paging.load(text, tenant_id=tenant_id, query=query)
    except Invalid:
        return True
    return False


@given(positions, queries_)
def test_a_position_comes_back_as_it_went_in(position: list[Any], query: tuple[Any, ...]) -> None:
    text = paging.dump(position, tenant_id=ACME, query=query)
    assert paging.load(text, tenant_id=ACME, query=query) == position


@given(positions)
def test_a_cursor_can_stand_in_an_address_as_it_is(position: list[Any]) -> None:
    text = paging.dump(position, tenant_id=ACME, query=QUERY)
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:")


def test_no_character_of_a_cursor_can_be_changed() -> None:
    text = paging.dump(POSITION, tenant_id=ACME, query=QUERY)
    for place in range(len(text)):
        for other in "A0_:. \n\u0663" + chr(ord(text[place]) ^ 1):
            changed = text[:place] + other + text[place + 1 :]
            assert changed == text or refused(changed), (place, other)


@given(st.data())
def test_no_character_can_be_left_out_or_added(data: st.DataObject) -> None:
    text = paging.dump(POSITION, tenant_id=ACME, query=QUERY)
    place = data.draw(st.integers(0, len(text)))
    added = data.draw(st.text(min_size=1, max_size=3))
    assert refused(text[:place] + added + text[place:])
    assert place == len(text) or refused(text[:place] + text[place + 1 :])
    assert refused(text[:place]) or place == len(text)


@given(st.integers(0, 2**128 - 1).map("{:032x}".format))
def test_a_cursor_of_another_tenant_is_refused(other: str) -> None:
    assume(other != ACME)
    assert refused(paging.dump(POSITION, tenant_id=other, query=QUERY))


@given(queries_, queries_)
@example(("a", "b", None), ("a", None, "b"))
@example((1, "", ""), ("1", "", ""))
@example((4, 0, ""), (4, 1, ""))
@example(("open", "', '", ""), ("open', '", "", ""))
def test_a_cursor_of_another_query_is_refused(query: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assume(repr(query) != repr(other))
    assert refused(paging.dump(POSITION, tenant_id=ACME, query=query), query=other)


@pytest.mark.parametrize(
    "other",
    [
        ("gsi-status-resolver", "open", None, 4, 0),
        ("gsi-status-updated", "closed", None, 4, 0),
        ("gsi-status-updated", "open", "", 4, 0),
        ("gsi-status-updated", "open", BOB, 4, 0),
        ("gsi-status-updated", "open", None, 1, 0),
        ("gsi-status-updated", "open", None, 4, 1),
        ("activity", 7),
        (),
    ],
)
def test_a_cursor_of_another_filter_or_shard_layout_is_refused(other: tuple[Any, ...]) -> None:
    assert refused(paging.dump(POSITION, tenant_id=ACME, query=other))


@given(st.text(max_size=200))
@example("")
@example(":")
@example("::")
@example("." * 50)
@example("a:b:c")
@example("WzBd:1abcde:" + "A" * 43)
@example("\ud800:1abcde:x")
@example("WzBd:\ud800:x")
@example("WzBd:1abcde:\ud800")
@example("\0")
@example("é:é:é")
def test_garbage_is_refused(text: str) -> None:
    assert refused(text)


@pytest.mark.parametrize("length", [2001, 100_000, 5_000_000])
def test_what_is_far_too_long_is_refused(length: int) -> None:
    assert refused("A" * length)


def test_a_position_that_is_no_list_is_refused() -> None:
    # Ours, but not made by dump.
    for value in ({"a": 1}, "text", 7, None):
        signed = signing.dumps(value, salt=paging._salt(ACME, QUERY))
        assert refused(signed)


def test_a_cursor_outlives_a_change_of_the_secret_key(settings: LazySettings) -> None:
    text = paging.dump(POSITION, tenant_id=ACME, query=QUERY)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 60, [settings.SECRET_KEY]
    assert paging.load(text, tenant_id=ACME, query=QUERY) == POSITION
    settings.SECRET_KEY_FALLBACKS = []
    assert refused(text)


def test_a_signature_of_something_else_is_no_cursor() -> None:
    assert refused(signing.dumps(POSITION))
    assert refused(signing.dumps(POSITION, salt="portal.web.stash"))


@pytest.mark.parametrize("resolver", [None, "", BOB])
@pytest.mark.parametrize("shards", [1, 4])
def test_the_cursors_of_a_list_hold_no_tenant_and_no_key(resolver: str | None, shards: int) -> None:
    tenant, index = tenant_in_memory(ACME, shards=shards)
    index.rows = [
        index_row(ACME, n, f"2026-01-31T12:00:00.{n:06}Z", shards=shards, resolver=resolver or "") for n in range(1, 9)
    ]
    first = lists.page(tenant, status=Status.OPEN, resolver=resolver, size=2)
    assert first.next is not None
    second = lists.page(tenant, status=Status.OPEN, resolver=resolver, size=2, after=first.next)
    for text in (first.next, second.next, second.previous):
        assert text is not None
        shown = readable(text)
        assert [type(part) for part in json.loads(shown)] == [int, str, int, int, int, list]
        for secret in (ACME, "TENANT", "#", "|", BOB, stored.UNASSIGNED, "OPEN"):
            assert secret not in shown
            assert secret not in text


def test_a_compressed_cursor_is_readable_to_these_tests_too() -> None:
    text = paging.dump([stored.ticket(ACME, 7)] * 5, tenant_id=ACME, query=QUERY)
    assert text.startswith(".")
    assert ACME in readable(text)
