"""The pages of webhooks, as an admin of a desk uses them and as nobody else may."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from delivery.outbox import outbox_rows
from delivery.outbox.outbox_rows import Work
from delivery.queues import holds
from delivery.webhooks import delivery_log, endpoints
from delivery.webhooks.stored import DeliveryItem
from portal import clock
from portal.dynamo import meter
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.tenancy.context import Role
from tests.desk.test_cost import _watching
from tests.support.endpoints import SETTINGS, URL, endpoint, log_of, rows, tell, work_off
from tests.support.receivers import Receiver, answering, listening
from tests.support.world import World
from tickets.desk import creating

FORM = {"url": URL, "description": "Parcels", "event_types": ["parcel.sent"], "request_id": "a" * 32}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening(answering(OK)) as found, override_settings(WEBHOOK_RECEIVER=f"http://127.0.0.1:{found.port}"):
        yield found


def at(item: Any, rest: str = "") -> str:
    return f"{SETTINGS}{item.endpoint_id}/{rest}"


def told(world: World, receiver: Receiver, *weights: float) -> Any:
    """An endpoint of Acme's that has got an event for each weight."""
    item, _ = endpoint(world.context("alice", "acme"), f"http://127.0.0.1:{receiver.port}/hooks")
    tell(world.context("alice", "acme"), *weights)
    work_off(world.context("alice", "acme"))
    return item


def deliveries(world: World, item: Any) -> list[DeliveryItem]:
    return delivery_log.page(world.context("alice", "acme").repository, item.endpoint_id, size=200).rows


def test_an_admin_adds_an_endpoint_and_sees_its_secret_once(world: World) -> None:
    alice = world.browser("alice", "acme")
    page = alice.send(f"{SETTINGS}new/", FORM)
    assert page.status_code == 200
    secret = page.context["secret"]
    assert secret.startswith("whsec_")
    assert page.content.decode().count(secret) == 1
    assert page["Cache-Control"] == "private, no-store"
    (item,) = endpoints.listed(world.context("alice", "acme").repository)
    for address in (SETTINGS, at(item), at(item, "edit/"), at(item, "rotate/")):
        again = alice.get(address)
        assert again.status_code == 200
        assert secret not in again.content.decode()


def test_the_form_sent_again_by_a_reload_shows_no_secret(world: World) -> None:
    alice = world.browser("alice", "acme")
    alice.send(f"{SETTINGS}new/", FORM)
    page = alice.send(f"{SETTINGS}new/", FORM)
    assert page.status_code == 422
    assert "secret" not in page.context
    assert "added already" in page.content.decode()


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"url": "not an address"}, "url", "no spaces"),
        ({"url": "https://127.0.0.1/"}, "url", "a host of the internet"),
        ({"url": "https://user:secret@hooks.example.com/"}, "url", "user name or password"),
        ({"url": "https://hooks.example.com/" + "x" * 2000}, "url", "2,000 are allowed"),
        ({"event_types": []}, "event_types", "at least one"),
        ({"event_types": ["parcel.eaten"]}, "event_types", "no event type “parcel.eaten”"),
        ({"event_types": ["webhook.test"]}, "event_types", "no event type"),
        ({"description": "x" * 201}, "description", "200 are allowed"),
        ({"description": "a\u202eb"}, "description", "seen"),
        ({"request_id": "../"}, "request_id", "damaged"),
    ],
)
def test_bad_input_is_said_at_its_field_and_nothing_typed_is_lost(
    values: dict[str, Any], field: str, said: str, world: World
) -> None:
    page = world.browser("alice", "acme").send(f"{SETTINGS}new/", FORM | values)
    assert page.status_code == 422
    form = page.context["form"]
    assert said in " ".join(form.errors[field])
    assert form["description"].value() == (FORM | values)["description"]
    assert form["url"].value() == (FORM | values)["url"]
    assert endpoints.listed(world.context("alice", "acme").repository) == []


def test_an_admin_edits_pauses_resumes_and_removes(world: World) -> None:
    alice = world.browser("alice", "acme")
    item, _ = endpoint(world.context("alice", "acme"))
    form = alice.get(at(item, "edit/")).context["form"]
    assert form["url"].value() == URL
    changed = {"url": f"{URL}/2", "description": "New", "event_types": ["parcel.lost"], "version": "1"}
    assert alice.send(at(item, "edit/"), changed)["Location"].endswith(at(item))
    older = alice.send(at(item, "edit/"), changed | {"url": URL})
    assert (older.status_code, b"Somebody else" in older.content) == (409, True), "the form is of an older version"
    shown = alice.get(at(item)).context["endpoint"]
    assert (shown["url"], shown["description"], shown["event_types"]) == (f"{URL}/2", "New", ["parcel.lost"])
    assert "cannot be sent later" in alice.get(at(item, "pause/")).content.decode()
    assert alice.get(SETTINGS).context["endpoints"][0]["badge"].word == "Active", "the page only asks"
    for action, word in (("pause", "Paused"), ("resume", "Active")):
        alice.send(at(item, f"{action}/"))
        assert alice.get(SETTINGS).context["endpoints"][0]["badge"].word == word
    assert b"Remove the endpoint" in alice.get(at(item, "remove/")).content
    alice.send(at(item, "remove/"))
    assert alice.get(at(item)).status_code == 404
    assert alice.get(SETTINGS).context["endpoints"] == []


def test_a_secret_is_replaced_and_the_new_one_is_shown_once(world: World) -> None:
    alice = world.browser("alice", "acme")
    item, old = endpoint(world.context("alice", "acme"))
    page = alice.send(at(item, "rotate/"), {"version": "1"})
    assert page.context["secret"] not in ("", old)
    assert "Secret replaced" in page.content.decode()
    assert alice.send(at(item, "rotate/"), {"version": "1"}).status_code == 302, "a reload replaces nothing"
    assert "The old one also signs until" in alice.get(at(item)).content.decode()
    asked = alice.get(at(item, "rotate/")).content.decode()
    assert "Each secret that was replaced signs until its own 24 hours are over" in asked
    for version in "234":
        answer = alice.send(at(item, "rotate/"), {"version": version})
    assert answer.status_code == 302
    assert "This secret was replaced 3 times within 24 hours" in alice.get(at(item)).content.decode()


def test_a_test_goes_through_the_outbox_to_this_endpoint_alone(world: World, receiver: Receiver) -> None:
    alice, browser = world.context("alice", "acme"), world.browser("alice", "acme")
    item, _ = endpoint(alice, f"http://127.0.0.1:{receiver.port}/hooks")
    endpoint(alice, f"http://127.0.0.1:{receiver.port}/other")
    browser.send(at(item, "test/"))
    (row,) = rows()
    assert row.open == {f"0/{item.endpoint_id}"}
    work_off(alice)
    assert log_of(browser.get(at(item))) == [("webhook.test", "Delivered", "200")]
    assert receiver.connections == 1


def test_what_the_page_says_after_a_pause_is_in_the_readers_language(world: World) -> None:
    item, _ = endpoint(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    page = alice.send(at(item, "pause/"), {}, follow=True, HTTP_ACCEPT_LANGUAGE="de")
    assert [str(message) for message in page.context["messages"]] == ["Pausiert."]


def test_a_paused_endpoint_is_sent_no_test_and_nothing_again(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 1)
    browser = world.browser("alice", "acme")
    browser.send(at(item, "pause/"))
    name = delivery_log.name_of(deliveries(world, item)[0])
    for address in ("test/", f"deliveries/{name}/redeliver/", "redeliver/"):
        page = browser.send(at(item, address), {"since": "2026-01-01T00:00"})
        assert page.status_code == 302
        assert "This endpoint is paused" in browser.get(at(item)).content.decode()
    assert [row.pending for row in rows()] == [None]


def test_what_a_paused_endpoint_skipped_is_said_to_be_not_sent_in_the_list_and_on_its_page(
    world: World, receiver: Receiver
) -> None:
    browser = world.browser("alice", "acme")
    item, _ = endpoint(world.context("alice", "acme"), f"http://127.0.0.1:{receiver.port}/hooks")
    tell(world.context("alice", "acme"), 1)
    browser.send(at(item, "pause/"))
    work_off(world.context("alice", "acme"))
    assert log_of(browser.get(at(item))) == [("parcel.sent", "Skipped", "Not sent")]
    page = browser.get(at(item, f"deliveries/{delivery_log.name_of(deliveries(world, item)[0])}/"))
    assert [(tried["answer"], tried["note"]) for tried in page.context["delivery"]["tries"]] == [
        ("Not sent", "The endpoint was paused.")
    ]
    assert receiver.connections == 0


def test_a_delivery_has_a_page_with_request_and_answer(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 250)
    browser = world.browser("alice", "acme")
    name = browser.get(at(item)).context["rows"][0]["name"]
    page = browser.get(at(item, f"deliveries/{name}/")).content.decode()
    assert "&#34;weight&#34;: 250" in page
    assert "hello" in page
    assert f"POST http://127.0.0.1:{receiver.port}/hooks" in page


def test_a_delivery_about_a_ticket_links_to_it(world: World, receiver: Receiver) -> None:
    alice, browser = world.context("alice", "acme"), world.browser("alice", "acme")
    item, _ = endpoint(alice, f"http://127.0.0.1:{receiver.port}/hooks", types=("ticket.created",))
    number = creating.create(world.context("alice", "acme"), title="The printer burns")
    work_off(alice)
    name = browser.get(at(item)).context["rows"][0]["name"]
    page = browser.get(at(item, f"deliveries/{name}/")).content.decode()
    assert f'<a href="/acme/tickets/{number}/">ticket {number}</a>' in page


def test_admins_are_told_that_an_operator_holds_their_deliveries(world: World) -> None:
    item, _ = endpoint(world.context("alice", "acme"))
    browser, said = world.browser("alice", "acme"), "The operator of Pooldesk has paused the deliveries of this desk."
    assert not any(said in browser.get(address).content.decode() for address in (SETTINGS, at(item)))
    for hold, waits in ((holds.pause, "All events wait"), (holds.drain, "New events wait")):
        hold(world.tenants["acme"], by=SYSTEM)
        assert all(f"{said} {waits}" in browser.get(address).content.decode() for address in (SETTINGS, at(item)))
    holds.resume(world.tenants["acme"], by=SYSTEM)
    assert not any(said in browser.get(address).content.decode() for address in (SETTINGS, at(item)))


def test_the_answer_of_a_receiver_is_shown_as_text(world: World) -> None:
    answer = b"HTTP/1.1 500 X\r\nContent-Length: 40\r\n\r\n<script>alert(1)</script>\x00\xff" + b"x" * 13
    with (
        listening(answering(answer)) as receiver,
        override_settings(WEBHOOK_RECEIVER=f"http://127.0.0.1:{receiver.port}"),
    ):
        item = told(world, receiver, 1)
        browser = world.browser("alice", "acme")
        name = browser.get(at(item)).context["rows"][0]["name"]
        page = browser.get(at(item, f"deliveries/{name}/"))
    assert page.status_code == 200
    assert "<script>alert" not in page.content.decode()
    assert "&lt;script&gt;alert" in page.content.decode()


def test_a_delivery_whose_event_is_gone_is_still_shown(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 1)
    alice = world.context("alice", "acme")
    (row,) = deliveries(world, item)
    stamp, event_id = delivery_log.parts(delivery_log.name_of(row))
    other = f"evt_{'0' * 32}_0.{stamp}"
    row.timestamp_event_id = row.timestamp_event_id.replace(event_id, f"evt_{'0' * 32}_0")
    alice.repository.update(DeliveryItem(row.tenant_endpoint, row.timestamp_event_id), copied(row))
    page = world.browser("alice", "acme").get(at(item, f"deliveries/{other}/"))
    assert "What was sent is no longer kept" in page.content.decode()
    with pytest.raises(Exception, match="no longer kept"):
        delivery_log.redeliver(alice, endpoint_id=item.endpoint_id, name=other)


def copied(row: DeliveryItem) -> list[Any]:
    names = ("event_type", "subject", "url", "state", "expires_at")
    return [getattr(DeliveryItem, name).set(getattr(row, name)) for name in names]


@pytest.mark.parametrize(
    "name", ["x", "evt_1_0.2026", f"evt_{'0' * 32}_0.x", f"evt_{'0' * 32}_\u0662.2026-01-31T12:00:00.000000Z"]
)
def test_a_delivery_that_does_not_exist_is_not_found(name: str, world: World) -> None:
    item, _ = endpoint(world.context("alice", "acme"))
    browser = world.browser("alice", "acme")
    for address in (f"deliveries/{name}/", f"deliveries/evt_{'0' * 32}_0.{clock.stamp()}/"):
        assert browser.get(at(item, address)).status_code == 404
        assert browser.send(at(item, f"{address}redeliver/")).status_code == 404


@pytest.mark.parametrize("endpoint_id", ["nonsense", "ep_", "ep_0123456789abcdef", "ep_0123456789ABCDEF"])
def test_an_endpoint_that_does_not_exist_has_no_pages(endpoint_id: str, world: World) -> None:
    browser, name = world.browser("alice", "acme"), f"evt_{'0' * 32}_0.2026-01-31T12:00:00.000000Z"
    for rest in ("", "edit/", "rotate/", "pause/", "remove/", f"deliveries/{name}/"):
        assert browser.get(f"{SETTINGS}{endpoint_id}/{rest}").status_code == 404
    for rest in ("pause/", "resume/", "test/", "redeliver/", "remove/", f"deliveries/{name}/redeliver/"):
        assert browser.send(f"{SETTINGS}{endpoint_id}/{rest}", {"since": "2026-01-01T00:00"}).status_code == 404


# --- again ---


def test_one_delivery_is_sent_again_with_the_same_id(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 1)
    browser = world.browser("alice", "acme")
    name = browser.get(at(item)).context["rows"][0]["name"]
    browser.send(at(item, f"deliveries/{name}/redeliver/"))
    assert len(work_off(world.context("alice", "acme"))) == 1
    page = browser.get(at(item, f"deliveries/{name}/"))
    assert [one["answer"] for one in page.context["delivery"]["tries"]] == ["200", "200"]
    assert receiver.connections == 2


def test_what_is_open_is_not_sent_again(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 1)
    browser = world.browser("alice", "acme")
    name = browser.get(at(item)).context["rows"][0]["name"]
    for _ in range(2):
        browser.send(at(item, f"deliveries/{name}/redeliver/"))
    assert "It is still being delivered" in browser.get(at(item)).content.decode()
    assert len(work_off(world.context("alice", "acme"))) == 1


@pytest.mark.parametrize("form", [None, {"since": "2026-01-01T00:00"}], ids=["alone", "all since a moment"])
def test_what_waits_for_its_next_attempt_is_tried_at_once(form: dict[str, str] | None, world: World) -> None:
    with (
        listening(answering(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")) as receiver,
        override_settings(WEBHOOK_RECEIVER=f"http://127.0.0.1:{receiver.port}"),
    ):
        item = told(world, receiver, 1)
        later = clock.stamp(clock.now() + timedelta(hours=5))
        alice, browser = world.context("alice", "acme"), world.browser("alice", "acme")
        (log,), (row,) = deliveries(world, item), rows()
        alice.repository.update(
            DeliveryItem(log.tenant_endpoint, log.timestamp_event_id), [DeliveryItem.next_at.set(later)]
        )
        outbox_rows.failed(Work(alice.repository, row, 0, item.endpoint_id), next_at=later)
        assert outbox_rows.due_members(rows()[0]) == set()
        name = browser.get(at(item)).context["rows"][0]["name"]
        assert b"Try now" in browser.get(at(item, f"deliveries/{name}/")).content
        again = at(item, "redeliver/") if form else at(item, f"deliveries/{name}/redeliver/")
        browser.send(again, form or {})
        assert outbox_rows.due_members(rows()[0]) == {f"0/{item.endpoint_id}"}
        assert rows()[0].due_at <= clock.stamp()
        assert outbox_rows.tried(rows()[0], f"0/{item.endpoint_id}").n == 1, "it takes none of the attempts to come"
        browser.send(again, form or {})
    refused = "There is nothing to send again" if form else "It is still being delivered"
    assert refused in browser.get(at(item)).content.decode(), "it is on its way already"


@pytest.mark.parametrize(("looks", "left"), [("", 0), ("8", 8), ("999999", 0), ("99", 8), ("-1", 0), ("x", 0)])
def test_a_page_looks_again_by_itself_a_bounded_number_of_times(looks: str, left: int, world: World) -> None:
    item, _ = endpoint(world.context("alice", "acme"))
    page = world.browser("alice", "acme").get(f"{at(item)}?looks={looks}").content.decode()
    assert re.findall(r'hx-get="[^"]+looks=(\d+)"', page) == ([str(left - 1)] if left else [])


def test_all_since_a_moment_are_sent_again_in_bounded_steps(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "AT_ONCE", 4)
    item = told(world, receiver, *range(10))
    alice, browser = world.context("alice", "acme"), world.browser("alice", "acme")
    address, form = at(item, "redeliver/"), {"since": "2026-01-01T00:00", "also_answered": "on"}
    sent = []
    while True:
        page = browser.send(address, form)
        sent.append(len([row for row in rows() if row.open]))
        more = browser.get(page["Location"]).context["more_from"]
        if not more:
            break
        form = form | {"since": more}
    assert sent == [4, 7, 10]
    work_off(alice)
    assert receiver.connections == 20


def test_only_what_was_not_delivered_is_sent_again_unless_all_is_wanted(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 1)
    browser = world.browser("alice", "acme")
    browser.send(at(item, "redeliver/"), {"since": "2026-01-01T00:00"})
    assert "There is nothing to send again" in browser.get(at(item)).content.decode()
    alice = world.context("alice", "acme")
    tell(world.context("alice", "acme"), 2)
    endpoints.pause(alice, endpoint_id=item.endpoint_id, by=Actor(alice.user_id))
    work_off(alice)
    endpoints.resume(alice, endpoint_id=item.endpoint_id, by=Actor(alice.user_id))
    assert log_of(browser.get(at(item)))[0] == ("parcel.sent", "Skipped", "Not sent")
    browser.send(at(item, "redeliver/"), {"since": "2026-01-01T00:00"})
    assert "1 delivery is being sent again." in browser.get(at(item)).content.decode()
    assert len(work_off(alice)) == 1


def test_a_moment_that_is_none_is_said(world: World) -> None:
    item, _ = endpoint(world.context("alice", "acme"))
    browser = world.browser("alice", "acme")
    browser.send(at(item, "redeliver/"), {"since": "yesterday"})
    assert "Enter a day and a time." in browser.get(at(item)).content.decode()


# --- lists, costs, rights ---


def test_the_log_is_read_a_page_at_a_time_there_and_back(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, *range(delivery_log.PAGE_SIZE + 3))
    browser = world.browser("alice", "acme")
    first = browser.get(at(item))
    second = browser.get(at(item) + re.findall(r'href="(\?after=[^"]+)" rel="next"', first.content.decode())[0])
    assert (len(first.context["rows"]), len(second.context["rows"])) == (delivery_log.PAGE_SIZE, 3)
    back = browser.get(at(item) + re.findall(r'href="(\?after=[^"]+)" rel="prev"', second.content.decode())[0])
    assert [row["name"] for row in back.context["rows"]] == [row["name"] for row in first.context["rows"]]
    assert browser.get(at(item) + "?after=nonsense").status_code == 400


@pytest.mark.parametrize(
    ("rest", "operations"),
    [
        ("", ["GetItem", "Query"]),
        ("{endpoint}/", ["GetItem", "GetItem", "Query"]),
        ("{endpoint}/deliveries/{delivery}/", ["GetItem", "GetItem", "GetItem"]),
        ("{endpoint}/edit/", ["GetItem"]),
        ("new/", []),
        ("events/", []),
    ],
)
def test_a_page_costs_one_round_trip_beside_that_of_every_request(
    rest: str, operations: list[str], world: World, receiver: Receiver
) -> None:
    item = told(world, receiver, 1)
    name = delivery_log.name_of(deliveries(world, item)[0])
    browser = world.browser("alice", "acme")
    with _watching() as bills:
        page = browser.get(SETTINGS + rest.format(endpoint=item.endpoint_id, delivery=name))
    assert page.status_code == 200
    (bill,) = bills
    assert sorted(call.operation for call in bill.calls) == sorted(["BatchGetItem", *operations])
    assert bill.trips == 1 + bool(operations)
    assert bill.read_units <= 6


def test_an_admin_who_is_no_owner_sets_up_webhooks(world: World) -> None:
    world.join("charlie", "acme", Role.ADMIN)
    browser = world.browser("charlie", "acme")
    assert browser.get("/desk/settings/api-keys/").content.decode().count("/desk/settings/webhooks/") == 1
    assert browser.send(f"{SETTINGS}new/", FORM).status_code == 200


def test_the_events_page_shows_an_example_of_each_type(world: World) -> None:
    page = world.browser("alice", "acme").get(f"{SETTINGS}events/")
    kinds = {kind["name"]: kind for kind in page.context["kinds"]}
    assert kinds.keys() >= {"parcel.sent", "parcel.lost", "webhook.test"}
    assert '"weight": 250' in kinds["parcel.sent"]["example"]
    assert '"slug": "acme"' in kinds["parcel.sent"]["example"]


def test_the_events_page_shows_what_every_event_has_around_its_data(world: World, receiver: Receiver) -> None:
    item = told(world, receiver, 1)
    browser = world.browser("alice", "acme")
    page = browser.get(f"{SETTINGS}events/")
    name = browser.get(at(item)).context["rows"][0]["name"]
    body = json.loads(browser.get(at(item, f"deliveries/{name}/")).context["delivery"]["body"])
    assert [field["name"] for field in page.context["envelope"]] == list(body)
    assert "in the header <code>webhook-id</code>" in page.content.decode()


def test_a_page_of_the_tenth_endpoint_says_that_there_can_be_no_more(world: World) -> None:
    alice = world.context("alice", "acme")
    for number in range(endpoints.MOST):
        endpoint(alice, name=f"{number}")
    browser = world.browser("alice", "acme")
    assert "the most that a desk can have" in browser.get(SETTINGS).content.decode()
    page = browser.send(f"{SETTINGS}new/", FORM)
    assert page.status_code == 422
    assert "A desk can have up to 10 endpoints" in page.content.decode()
    with meter.measure() as bill:
        endpoints.listed(alice.repository)
    assert len(bill.calls) == 1
