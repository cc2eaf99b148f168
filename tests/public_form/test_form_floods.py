"""The public form against floods: proof of work, limits of networks and desks, and browsers without JavaScript."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from django.test import Client

from portal.load import guest_limits
from portal.quotas import RecentTenants, TokenBucket
from tests.desk.test_cost import _watching
from tests.public_form.conftest import FORM, WORDS, Guest, open_form
from tests.support.world import World
from tickets.public_form import challenges


def without_script(guest: Guest, **values: Any) -> dict[str, Any]:
    return guest.form(**values) | {"proof": ""}


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenges, "UNPROVED_SECONDS", 0)


def test_a_proof_is_of_one_challenge_and_one_desk(open_desk: World) -> None:
    open_form(open_desk, "globex", by="charlie")
    ours, theirs = Guest().form(), Guest(path="/forms/globex/").form()
    crossed = Guest().post({**ours, "challenge": theirs["challenge"], "proof": theirs["proof"]})
    assert (crossed.status_code, "open for a long time" in crossed.content.decode()) == (422, True)


@pytest.mark.parametrize("proof", ["", "x", "-1", "1" * 13, "\u0661", "1.5"])
def test_what_is_no_proof_counts_as_none(open_desk: World, proof: str) -> None:
    answer = Guest().post({**Guest().form(), "proof": proof})
    assert (answer.status_code, "With JavaScript you need not wait" in answer.content.decode()) == (429, True)


def test_a_challenge_cannot_be_made_easier(open_desk: World) -> None:
    challenge, bits = Guest().challenge()
    easier = challenge.replace(f".{bits}.", ".0.")
    assert easier != challenge
    answer = Guest().post({**WORDS, "challenge": easier, "proof": "0"})
    assert (answer.status_code, "open for a long time" in answer.content.decode()) == (422, True)


def test_a_challenge_runs_out(open_desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = Guest().form()
    later = time.time() + challenges.LIFETIME + 60
    monkeypatch.setattr(challenges.time, "time", lambda: later)
    answer = Guest().post(fields)
    assert (answer.status_code, "It <b>" not in answer.content.decode()) == (422, True)
    assert "It &lt;b&gt;stands&lt;/b&gt; still." in answer.content.decode()


def test_without_a_script_one_waits_and_may_send_a_few(open_desk: World, no_waiting: None) -> None:
    guest = Guest()
    page = guest.client.get(FORM).content.decode()
    assert "<noscript>" in page
    assert f"Up to {challenges.UNPROVED_OF_NETWORK} messages" in page
    answers = [guest.post(without_script(guest, subject=f"No. {n}")) for n in range(challenges.UNPROVED_OF_NETWORK + 1)]
    assert [answer.status_code for answer in answers] == [200] * challenges.UNPROVED_OF_NETWORK + [429]
    refused = answers[-1].content.decode()
    assert "Without JavaScript only a few messages are taken at a time. Please send it again in" in refused
    assert "It &lt;b&gt;stands&lt;/b&gt; still." in refused
    assert guest.send().status_code == 200, "with a proof the same network may go on"


def test_without_a_script_a_page_is_sent_no_sooner_than_a_person_would(open_desk: World) -> None:
    guest = Guest()
    answer = guest.post(without_script(guest))
    assert answer.status_code == 429
    assert "more seconds, then send it again" in answer.content.decode()


def test_a_network_sends_no_more_than_its_share(open_desk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenges, "PROVED_OF_NETWORK", 3)
    answers = [Guest().send(subject=f"No. {n}").status_code for n in range(4)]
    assert answers == [200, 200, 200, 429]
    assert Guest("203.0.113.9").send().status_code == 200, "another network is not kept out"


def test_a_desk_gets_no_more_than_its_share_from_all_networks(
    open_desk: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_form(open_desk, "globex", by="charlie")
    monkeypatch.setattr(challenges, "PROVED_OF_DESK", 3)
    answers = [Guest(f"198.51.100.{n}").send() for n in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert "Many messages came from your network or to this desk." in answers[-1].content.decode()
    assert Guest(path="/forms/globex/").send().status_code == 200, "another desk is not touched"


@pytest.mark.parametrize("is_proved", [True, False])
def test_a_network_whose_forms_are_refused_keeps_nobody_else_out(
    open_desk: World, no_waiting: None, monkeypatch: pytest.MonkeyPatch, settings: Any, is_proved: bool
) -> None:
    settings.GUEST_RATE = 0
    for name, most in {"PROVED_OF_NETWORK": 4, "PROVED_OF_DESK": 8, "UNPROVED_OF_DESK": 4}.items():
        monkeypatch.setattr(challenges, name, most)
    guest = Guest()
    fields = guest.form() if is_proved else without_script(guest)
    assert [guest.post(fields).status_code for _ in range(12)][-1] == 429
    other = Guest("203.0.113.9")
    assert other.post(without_script(other)).status_code == 200
    assert other.send(subject="With a proof").status_code == 200


def test_forms_without_a_proof_use_up_nothing_of_those_with_one(
    open_desk: World, no_waiting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(challenges, "UNPROVED_OF_DESK", 2)
    monkeypatch.setattr(challenges, "PROVED_OF_DESK", 4)
    strangers = [Guest(f"198.51.100.{n}") for n in range(9)]
    answers = [guest.post(without_script(guest)).status_code for guest in strangers]
    assert answers == [200] * 2 + [429] * 7
    assert Guest("203.0.113.9").send().status_code == 200


def test_the_work_grows_with_what_a_network_sends(open_desk: World) -> None:
    guest = Guest()
    bits = []
    for n in range(9):
        bits.append(guest.challenge()[1])
        guest.send(subject=f"No. {n}")
    assert bits == sorted(bits)
    assert (bits[0], bits[-1]) == (challenges.LEAST_BITS, challenges.LEAST_BITS + 2)
    assert Guest("203.0.113.9").challenge()[1] == challenges.LEAST_BITS


def test_a_network_that_asks_too_often_gets_a_page_with_what_it_sent(
    open_desk: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GUEST_RATE = 1.0
    few: RecentTenants[TokenBucket] = RecentTenants(lambda _: TokenBucket(per_second=0.001, burst=2))
    monkeypatch.setattr(guest_limits, "_addresses", few)
    guest = Guest()
    fields = guest.form()
    answers = [guest.post(fields, HTTP_ACCEPT_LANGUAGE="de-AT,de;q=0.9") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    page = answers[1].content.decode()
    assert "It &lt;b&gt;stands&lt;/b&gt; still." in page
    assert '<html lang="de">' in page
    assert answers[1]["Retry-After"]
    assert not answers[1].cookies
    assert Client(REMOTE_ADDR="203.0.113.9").get(FORM).status_code == 200


def test_guests_use_up_nothing_of_the_members_share(
    open_desk: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TENANT_RATES = "standard=5"
    monkeypatch.setattr(guest_limits, "guests", type(guest_limits.guests)())
    guest = Guest()
    answers = [guest.client.get(FORM).status_code for _ in range(40)]
    assert {*answers} == {200, 429}
    assert open_desk.browser("alice", "acme").get("/acme/tickets/").status_code == 200


def test_a_page_costs_two_round_trips_and_few_reads(open_desk: World) -> None:
    client = Client()
    client.get(FORM)
    with _watching() as bills:
        client.get(FORM)
    calls = [(call.operation, call.table) for bill in bills for call in bill.calls]
    assert Counter(operation for operation, _ in calls) == {"BatchGetItem": 3, "GetItem": 1}, calls
    assert sum(bill.trips for bill in bills) == 2
