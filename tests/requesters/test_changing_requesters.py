"""Requesters are changed, merged and separated again, and nothing of it loses an address or a ticket."""

from __future__ import annotations

from typing import Any

import pytest

from portal.errors import Conflict, Invalid, NotFound, Overtaken
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.tenancy.context import Role, TenantContext
from tests.support import racing
from tests.support.world import World
from tickets.requesters import bounced_addresses, requester_changes, requester_list, requesters
from tickets.requesters.requester_changes import AddressTaken, Details
from tickets.requesters.requesters import Requester

BY = Actor("someone", "alice@example.com", "test")


@pytest.fixture
def ada(alice: TenantContext) -> Requester:
    return requesters.ensure(alice, "ada@example.org", name="Ada Lovelace")


@pytest.fixture
def countess(alice: TenantContext) -> Requester:
    return requesters.ensure(alice, "countess@example.com", name="The Countess")


def changed(tenant: TenantContext, who: Requester, **values: Any) -> Requester:
    def choose(before: Details) -> Details:
        return Details(**{**vars(before), **values})

    return requester_changes.change(tenant, who.id, choose, version=None, by=BY)


def test_a_change_is_seen_by_whoever_types_the_name_or_an_address(alice: TenantContext, ada: Requester) -> None:
    changed(alice, ada, name="Grace Hopper", addresses=("grace@example.org", "ADA@example.org"))
    for typed in ("grace h", "grace@", "ada@"):
        assert [found.name for found in requesters.complete(alice, typed)] == ["Grace Hopper"]
    assert requesters.complete(alice, "ada l") == []
    stored = requesters.find(alice, ada.id)
    assert stored is not None
    assert (stored.address, stored.version) == ("grace@example.org", 2)


def test_an_address_that_is_removed_is_free_for_somebody_else(alice: TenantContext, ada: Requester) -> None:
    changed(alice, ada, addresses=("new@example.org",))
    assert requesters.by_address(alice, "ada@example.org") is None
    assert requesters.ensure(alice, "ada@example.org").id != ada.id


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"addresses": ("ada@",)}, "addresses"),
        ({"addresses": tuple(f"a{n}@example.org" for n in range(21))}, "addresses"),
        ({"addresses": ("countess@example.com",)}, "addresses"),
        ({"name": "x" * 101}, "name"),
        ({"name": " ", "addresses": ()}, "name"),
        ({"organisation": "x" * 101}, "organisation"),
        ({"notes": "x" * 4001}, "notes"),
        ({"language": "much English"}, "language"),
    ],
)
def test_what_cannot_be_stored_is_refused_at_its_field(
    alice: TenantContext, ada: Requester, countess: Requester, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        changed(alice, ada, **values)
    assert refused.value.field == field
    assert requesters.find(alice, ada.id) == ada


def test_a_form_that_is_sent_twice_adds_one_person(alice: TenantContext) -> None:
    details = Details(name="Ada", addresses=("ada@example.org",))
    made = [requester_changes.create(alice, details, by=BY, request_id="form") for _ in range(2)]
    assert made[0] == made[1]
    with pytest.raises(AddressTaken, match=r"ada@example\.org belongs to Ada already"):
        requester_changes.create(alice, details, by=BY, request_id="another form")


def test_a_change_of_a_version_that_is_out_of_date_is_refused(alice: TenantContext, ada: Requester) -> None:
    changed(alice, ada, organisation="Engines")
    with pytest.raises(Overtaken):
        requester_changes.change(alice, ada.id, lambda before: before, version=1, by=BY)


def test_of_changes_at_the_same_moment_each_is_whole(alice: TenantContext, ada: Requester) -> None:
    names = ["One", "Two", "Three"]
    racing.succeed([lambda name=name: changed(alice, ada, name=name) for name in names])  # type: ignore[misc]
    stored = requesters.find(alice, ada.id)
    assert stored is not None
    assert stored.name in names
    assert [found.name for found in requesters.complete(alice, "ada@")] == [stored.name]


# --- merging ---


def test_a_merged_person_is_found_as_the_one_who_stands_for_both(
    alice: TenantContext, ada: Requester, countess: Requester
) -> None:
    both = requester_changes.merge(alice, ada.id, countess.id, by=BY)
    assert both.addresses == ("ada@example.org", "countess@example.com")
    assert both.ids == (ada.id, countess.id)
    for found in (requesters.find(alice, countess.id), requesters.by_address(alice, "countess@example.com")):
        assert found == both
    assert [found.id for found in requesters.complete(alice, "countess")] == [ada.id]
    assert [found.id for found in requester_list.page(alice, typed="", after="", limit=10).people] == [ada.id]


def test_an_undo_gives_back_what_each_had(alice: TenantContext, ada: Requester, countess: Requester) -> None:
    bounced_addresses.note(alice, "countess@example.com", "The mailbox is full.")
    requester_changes.merge(alice, ada.id, countess.id, by=BY)
    requester_changes.undo_merge(alice, countess.id, by=BY)
    for before in (ada, countess):
        after = requesters.by_address(alice, before.address)
        assert after is not None
        assert (after.id, after.name, after.addresses, after.merged) == (before.id, before.name, before.addresses, ())
        assert [found.id for found in requesters.complete(alice, before.address)] == [before.id]
    assert requesters.find(alice, ada.id).bounced == {}  # type: ignore[union-attr]
    assert requesters.find(alice, countess.id).bounced == {"countess@example.com": "The mailbox is full."}  # type: ignore[union-attr]


def test_an_undo_leaves_an_address_where_it_was_removed_or_added_meanwhile(
    alice: TenantContext, ada: Requester, countess: Requester
) -> None:
    both = requester_changes.merge(alice, ada.id, countess.id, by=BY)
    changed(alice, both, addresses=("ada@example.org", "later@example.org"))
    again = requester_changes.undo_merge(alice, countess.id, by=BY)
    assert again.addresses == ()
    assert requesters.by_address(alice, "countess@example.com") is None
    assert requesters.by_address(alice, "later@example.org").id == ada.id  # type: ignore[union-attr]


def test_merges_of_merges_are_undone_one_by_one(alice: TenantContext, ada: Requester, countess: Requester) -> None:
    third = requesters.ensure(alice, "third@example.net")
    requester_changes.merge(alice, ada.id, countess.id, by=BY)
    all_three = requester_changes.merge(alice, third.id, ada.id, by=BY)
    assert all_three.ids == (third.id, ada.id, countess.id)
    assert requesters.find(alice, countess.id) == all_three
    with pytest.raises(Conflict, match="merged too"):
        requester_changes.undo_merge(alice, countess.id, by=BY)
    both = requester_changes.undo_merge(alice, ada.id, by=BY)
    assert both.addresses == ("ada@example.org", "countess@example.com")
    assert requesters.find(alice, countess.id) == both
    assert requester_changes.undo_merge(alice, countess.id, by=BY).addresses == ("countess@example.com",)


def test_what_cannot_be_merged_is_refused(alice: TenantContext, ada: Requester, countess: Requester) -> None:
    requester_changes.merge(alice, ada.id, countess.id, by=BY)
    third = requesters.ensure(alice, "third@example.net")
    for into, other, error in (
        (ada.id, ada.id, Invalid),
        (countess.id, third.id, Conflict),
        (third.id, countess.id, Conflict),
        (third.id, "rq_" + "0" * 32, NotFound),
        (alice.user_id, third.id, NotFound),
    ):
        with pytest.raises(error):
            requester_changes.merge(alice, into, other, by=BY)
    with pytest.raises(Conflict, match="not merged"):
        requester_changes.undo_merge(alice, third.id, by=BY)
    with pytest.raises(Conflict, match="was merged"):
        changed(alice, countess, name="Another")


def test_no_more_than_ten_people_are_one(alice: TenantContext, ada: Requester) -> None:
    others = [requesters.ensure(alice, f"{n}@example.net") for n in range(11)]
    for other in others[:10]:
        requester_changes.merge(alice, ada.id, other.id, by=BY)
    with pytest.raises(Invalid, match="Up to 10 people"):
        requester_changes.merge(alice, ada.id, others[10].id, by=BY)


# --- the audit trail ---


def test_each_change_is_in_the_audit_trail_without_names_and_notes(
    alice: TenantContext, ada: Requester, countess: Requester
) -> None:
    changed(alice, ada, notes="Confidential", name="Augusta Ada King", organisation="Engines")
    requester_changes.merge(alice, ada.id, countess.id, by=BY)
    requester_changes.undo_merge(alice, countess.id, by=BY)
    made = requester_changes.create(alice, Details(name="Grace Hopper"), by=BY, request_id="form")
    rows = browsing.page(alice.repository, only=TrailFilter(actor=BY.id)).rows
    assert [(row.action, row.entity) for row in rows] == [
        ("requester.created", made.id),
        ("requester.merge_undone", "ada@example.org"),
        ("requester.merged", "ada@example.org"),
        ("requester.changed", "ada@example.org"),
    ]
    assert rows[3].after == {"organisation": "Engines", "name": "16 characters", "notes": "12 characters"}
    assert rows[2].after == {"merged": countess.id, "address_1": "countess@example.com"}


def test_a_member_whose_role_has_changed_meanwhile_changes_nobody(world: World, ada: Requester) -> None:

    bob = world.context("bob", "acme")
    member_changes.set_role(user_id=bob.user_id, tenant_id=bob.tenant_id, role=Role.VIEWER, seen=Role.AGENT, by=BY)
    with pytest.raises(Conflict):
        changed(bob, ada, name="Another")
