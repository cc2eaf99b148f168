"""The limit of a tenant's members: set by operators, told to admins where they invite, and held under races."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from portal import clock
from portal.dynamo import meter, platform, retry
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, Reason, Throttled, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import tenant_lifecycle
from tenants.lifecycle.tenant_lifecycle import TenantLimits
from tenants.membership import accepting, invitations, member_changes, members, seats
from tenants.membership.accepting import InviteOffer
from tenants.membership.invitations import InviteOutcome
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tests.support.operators import Operator, make_operator, tenant_url, text_of, trail
from tests.support.racing import succeed
from tests.support.world import PASSWORD, World

IN_ACME = 3  # Alice, Bob and Vera
FULL = "This desk may have 3 members and has 3."


def limit(world: World, number: int | None) -> None:
    tenant = tenant_directory.find("acme")
    tenant_lifecycle.change_limits(tenant.tenant_id, TenantLimits(tenant.plan, number), by=SYSTEM)


def invite(world: World, *addresses: str) -> list[InviteOutcome]:
    alice = world.context("alice", "acme")
    return invitations.invite_all(alice, addresses=addresses, role=Role.AGENT, by=Actor(alice.user_id))


def offer(world: World, address: str) -> InviteOffer:
    """Invite somebody. Raises Conflict, as what becomes of a list says it."""
    (outcome,) = invite(world, address)
    if outcome.sent is None:
        raise Conflict(outcome.error)
    return accepting.by_secret(outcome.sent.secret)


def add(world: World, who: str) -> None:
    member_changes.add(user=world.users[who], tenant=world.tenants["acme"], role=Role.AGENT, by=SYSTEM)


def taken(world: World) -> tuple[int, int]:
    """Members and pending invitations."""
    repository = world.context("alice", "acme").repository
    return len(members.members_of(repository, consistent=True)), len(invitations.pending(repository))


# --- what is refused, and how it is said ---


def test_without_a_limit_anybody_can_be_invited_and_nothing_is_counted(world: World) -> None:
    alice = world.context("alice", "acme")
    with meter.measure() as bill:
        invitations.invite_all(alice, addresses=["n@example.org"], role=Role.AGENT, by=Actor(alice.user_id))
    assert "Query" not in [c.operation for c in bill.calls]  # the address says who is a member already


def test_members_and_pending_invitations_count_together(world: World) -> None:
    limit(world, IN_ACME + 1)
    first, second = invite(world, "a@example.org", "b@example.org")
    assert first.sent is not None
    assert second.sent is None
    assert second.error.startswith("This desk may have 4 members and has 3 and 1 pending invitation.")


def test_an_admin_reads_why_at_the_field_which_keeps_the_address(world: World) -> None:
    limit(world, IN_ACME)
    page = world.browser("alice", "acme").send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    form = page.context["form"]
    assert (page.status_code, form["addresses"].value()) == (422, "nora@example.org")
    assert f"nora@example.org: {FULL}" in str(form.errors["addresses"])


def test_an_operator_reads_it_at_the_form(world: World) -> None:
    limit(world, IN_ACME)
    make_operator()
    root = Operator.signed_in()
    refused = root.fill(
        "/admin/tenants/membership/add/", who="charlie@example.com", where="acme", role="agent", why="Help."
    )
    assert (refused.status_code, FULL in text_of(refused)) == (409, True)


def test_revoking_and_removing_make_room(world: World) -> None:
    limit(world, IN_ACME + 1)
    invited, alice = offer(world, "a@example.org").invite, world.context("alice", "acme")
    with pytest.raises(Conflict):
        add(world, "charlie")
    invitations.revoke(alice, invite_id=invited.invite_id, by=Actor(alice.user_id))
    add(world, "charlie")
    assert taken(world) == (IN_ACME + 1, 0)
    member_changes.remove(user_id=world.users["vera"].id, tenant_id=alice.tenant_id, by=SYSTEM)
    offer(world, "a@example.org")
    assert taken(world) == (IN_ACME, 1)


def test_an_invitation_that_expired_makes_room_and_takes_it_again_when_it_is_sent_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(world, IN_ACME + 1)
    expired, alice = offer(world, "a@example.org").invite, world.context("alice", "acme")
    later = clock.now() + invitations.LIFETIME + timedelta(minutes=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    offer(world, "b@example.org")
    with pytest.raises(Conflict, match="has 3 and 1 pending invitation"):
        invitations.resend(alice, invite_id=expired.invite_id, by=Actor(alice.user_id))
    assert taken(world) == (IN_ACME, 2)


def test_a_count_that_read_the_last_invitation_before_it_was_sent_again_is_not_believed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Query may still see the expired invitation, of which a transaction has just made a pending one."""
    limit(world, IN_ACME + 1)
    expired, alice = offer(world, "a@example.org").invite, world.context("alice", "acme")
    later = clock.now() + invitations.LIFETIME + timedelta(minutes=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    invitations.resend(alice, invite_id=expired.invite_id, by=Actor(alice.user_id))
    count = seats._stored

    def as_it_was_before(tenant_id: str) -> dict[seats.Seat, str]:
        monkeypatch.setattr(seats, "_stored", count)
        return count(tenant_id) | {seats.invite(expired.invite_id): expired.expires_at}

    monkeypatch.setattr(seats, "_stored", as_it_was_before)
    with pytest.raises(Conflict, match="has 3 and 1 pending invitation"):
        add(world, "charlie")


def test_who_was_invited_has_a_place_though_the_desk_is_full(world: World) -> None:
    limit(world, IN_ACME + 1)
    accepting.accept_as_new(offer(world, "nora@example.org"), name="Nora", password=PASSWORD, origin="")
    assert taken(world) == (IN_ACME + 1, 0)


def test_a_limit_lowered_since_takes_nobody_out_and_lets_nobody_in(world: World) -> None:
    invited = offer(world, "nora@example.org")
    limit(world, 2)
    with pytest.raises(Conflict, match=r"is full \(2 members\)\. Ask the person who invited you"):
        accepting.accept_as_new(invited, name="Nora", password=PASSWORD, origin="")
    assert (taken(world), accounts.find_by_email("nora@example.org")) == ((IN_ACME, 1), None)
    limit(world, None)
    accepting.accept_as_new(invited, name="Nora", password=PASSWORD, origin="")
    assert taken(world) == (IN_ACME + 1, 0)


# --- races ---


def test_of_many_invited_at_the_same_moment_as_many_get_through_as_there_is_room_for(world: World) -> None:
    for number in range(8):
        limit(world, IN_ACME + taken(world)[1] + 2)
        assert succeed([partial(offer, world, f"n{number}-{n}@example.org") for n in range(6)]) == 2
    assert taken(world) == (IN_ACME, 16)


def test_inviting_and_adding_at_the_same_moment_share_what_room_there_is(world: World) -> None:
    for number in range(8):
        world.add_user(f"new{number}")
        limit(world, sum(taken(world)) + 1)
        assert succeed([partial(add, world, f"new{number}"), partial(offer, world, f"n{number}@example.org")]) == 1


def test_of_two_who_accept_where_one_place_is_left_one_gets_in(world: World) -> None:
    for number in range(6):
        people = [
            accounts.create(email=f"p{number}{n}@example.org", name="P", password=PASSWORD, by=SYSTEM) for n in range(2)
        ]
        limit(world, None)
        offers = [offer(world, user.email) for user in people]
        limit(world, taken(world)[0] + 1)
        both = zip(people, offers, strict=True)
        assert succeed([partial(accepting.accept, o, user=u, by=Actor(u.id)) for u, o in both]) == 1


def test_a_limit_that_is_set_at_the_same_moment_holds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    add_rows = recording._add_rows

    def an_operator_is_faster(*args: Any) -> None:
        monkeypatch.setattr(recording, "_add_rows", add_rows)
        limit(world, IN_ACME)
        add_rows(*args)

    monkeypatch.setattr(recording, "_add_rows", an_operator_is_faster)
    with pytest.raises(Conflict, match=re.escape(FULL)):
        add(world, "charlie")
    assert taken(world) == (IN_ACME, 0)


def test_a_count_that_missed_the_seat_taken_last_is_not_believed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Query may meet a transaction whose items are still arriving."""
    limit(world, IN_ACME + 1)
    invited = offer(world, "nora@example.org").invite.invite_id
    count = seats._stored

    def missing_it(tenant_id: str) -> dict[seats.Seat, str]:
        monkeypatch.setattr(seats, "_stored", count)
        return {seat: expires for seat, expires in count(tenant_id).items() if seat != seats.invite(invited)}

    monkeypatch.setattr(seats, "_stored", missing_it)
    with pytest.raises(Conflict, match="has 3 and 1 pending invitation"):
        add(world, "charlie")


def test_a_seat_that_is_never_free_is_tried_for_a_limited_number_of_times_and_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit chain moves on and the limit too, again and again: the two repetitions do not multiply."""
    limit(world, IN_ACME + 1)
    attempts: list[Transaction] = []

    def refuse(transaction: Transaction) -> None:
        attempts.append(transaction)
        moved = "limit" if len(attempts) % 2 else "end of the audit chain"
        failed = Reason("ConditionalCheckFailed", "", None)
        reasons = [failed if name == moved else None for name in transaction.names]
        raise TransactionRefused(reasons, names=tuple(transaction.names))

    monkeypatch.setattr(platform.PLATFORM, "transact", refuse)
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    with pytest.raises(Throttled):
        add(world, "charlie")
    assert len(attempts) == recording.ATTEMPTS


# --- operators ---


def test_an_operator_sets_and_lifts_the_limit_and_each_is_audited(world: World) -> None:
    make_operator()
    root, url = Operator.signed_in(), tenant_url(world, "acme")
    assert root.fill(url, member_limit="25").status_code == 302
    assert tenant_directory.find("acme").member_limit == 25
    assert "up to 25 members" in text_of(world.browser("alice", "acme").get("/desk/settings/"))
    assert root.fill(url, member_limit="").status_code == 302
    assert tenant_directory.find("acme").member_limit is None
    rows = trail(world.tenants["acme"].tenant_id, of="tenant.limits_changed")
    assert [(row.before, row.after) for row in rows] == [
        ("member limit: 25", "member limit: none"),
        ("member limit: none", "member limit: 25"),
    ]


def test_a_stale_form_does_not_lift_a_limit(world: World) -> None:
    make_operator()
    root, url = Operator.signed_in(), tenant_url(world, "acme")
    stale = root.get(url)
    limit(world, 25)
    assert root.fill(url, stale, plan="gold").status_code == 409
    assert tenant_directory.find("acme").member_limit == 25


@pytest.mark.parametrize("number", [0, -1, 10_000_000])
def test_a_limit_is_a_number_from_one_on(world: World, number: int) -> None:
    with pytest.raises(Invalid, match="Use a number from 1 to 1,000,000"):
        limit(world, number)
