"""The bill of a request: sizes and units by AWS's published rules, trips as the caller waits for them."""

from __future__ import annotations

import json
import threading
from contextvars import copy_context
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from portal.dynamo import client, meter
from portal.dynamo.client import alongside, fan_out
from portal.errors import ConditionFailed, Throttled, Unavailable
from tests.support.fakes import answering, refusal
from tickets.ticket.stored import TICKETS

TICKETS = TICKETS.full_name


# --- sizes: Amazon DynamoDB Developer Guide, "DynamoDB item sizes and formats" ---


@pytest.mark.parametrize(
    ("value", "size"),
    [
        # A string is as long as its UTF-8.
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "é"}, 2),
        ({"S": "日本"}, 6),
        ({"S": "😀"}, 4),
        # A number is one byte per two significant digits and one more; leading and trailing zeros do not count,
        # a sign costs a byte.
        ({"N": "0"}, 1),
        ({"N": "7"}, 2),
        ({"N": "27"}, 2),
        ({"N": "123"}, 3),
        ({"N": "-27"}, 3),
        ({"N": "1000000"}, 2),
        ({"N": "0.0001"}, 2),
        ({"N": "3.14"}, 3),
        ({"N": "-461.0"}, 4),
        ({"N": "100200"}, 3),
        ({"N": "9" * 38}, 20),
        # Binary counts raw, not in base64.
        ({"B": b""}, 0),
        ({"B": b"\x00\xff\x10"}, 3),
        # Null and boolean are one byte.
        ({"NULL": True}, 1),
        ({"BOOL": True}, 1),
        ({"BOOL": False}, 1),
        # A set is the sum of its members.
        ({"SS": ["a", "bc", "é"]}, 5),
        ({"NS": ["1", "234"]}, 5),
        ({"BS": [b"a", b"bcd"]}, 4),
        # A list or map is 3 bytes, and 1 for each member beside what it holds.
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"S": "ab"}]}, 6),
        ({"L": [{"S": "ab"}, {"N": "7"}, {"NULL": True}]}, 3 + 3 + 3 + 2),
        ({"M": {"a": {"S": "bc"}}}, 3 + 1 + 1 + 2),
        ({"M": {"é": {"S": ""}}}, 3 + 1 + 2),
        ({"L": [{"L": []}]}, 3 + 1 + 3),
        ({"M": {"k": {"M": {"x": {"S": "y"}}}}}, 3 + 1 + 1 + (3 + 1 + 1 + 1)),
        ({"L": [{"M": {"field": {"S": "status"}, "before": {"S": "open"}}}]}, 3 + 1 + (3 + 1 + 5 + 6 + 1 + 6 + 4)),
    ],
    ids=str,
)
def test_the_size_of_a_value(value: dict[str, Any], size: int) -> None:
    assert meter.attribute_size(value) == size


def test_an_unknown_type_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="XS"):
        meter.attribute_size({"XS": []})


def test_the_size_of_an_item_counts_names_and_values() -> None:
    assert meter.item_size({}) == 0
    item = {"pk": {"S": "TENANT#1|TICKET#7"}, "größe": {"N": "42"}, "tags": {"L": [{"S": "vip"}]}}
    assert meter.item_size(item) == (2 + 17) + (7 + 2) + (4 + 3 + 1 + 3)


# --- units: the same guide, "Read and write operations" ---


@pytest.mark.parametrize(
    ("size", "eventual", "consistent", "transactional"),
    [
        (0, 0.5, 1, 2),  # reading what is not there has its price
        (1, 0.5, 1, 2),
        (4096, 0.5, 1, 2),
        (4097, 1, 2, 4),
        (8192, 1, 2, 4),
        (8193, 1.5, 3, 6),
        (400 * 1024, 50, 100, 200),
        (1024 * 1024, 128, 256, 512),
    ],
)
def test_reads_are_rounded_up_to_4_kb(size: int, eventual: float, consistent: float, transactional: float) -> None:
    assert meter.read_units(size) == eventual
    assert meter.read_units(size, per_4k=1) == consistent
    assert meter.read_units(size, per_4k=2) == transactional


def item(size: int) -> dict[str, Any]:
    """An item of that many bytes."""
    return {"b": {"B": b"x" * (size - 1)}}


def dispatch(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = client.connection("platform").dispatch(operation, request)
    return answer


def billed(operation: str, request: dict[str, Any], body: dict[str, Any]) -> meter.Call:
    """What one call costs that gets this answer."""
    with answering("platform", operation, (200, body)), meter.measure() as bill:
        dispatch(operation, request)
    (call,) = bill.calls
    assert call.operation == operation
    return call


GET = {"TableName": TICKETS, "Key": {"pk": {"S": "x"}, "sk": {"S": "y"}}}
QUERY = {"TableName": TICKETS, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "x"}}}


def test_one_item_is_billed_by_its_size() -> None:
    call = billed("GetItem", GET, {"Item": item(5000)})
    assert (call.table, call.index, call.items, call.size, call.read_units) == (TICKETS, None, 1, 5000, 1)


def test_a_consistent_read_costs_twice() -> None:
    assert billed("GetItem", GET | {"ConsistentRead": True}, {"Item": item(5000)}).read_units == 2
    assert billed("Query", QUERY | {"ConsistentRead": True}, {"Items": [item(5000)]}).read_units == 2


def test_an_item_that_is_not_there_costs_half_a_unit() -> None:
    call = billed("GetItem", GET, {})
    assert (call.items, call.size, call.read_units) == (0, 0, 0.5)


def test_a_query_is_rounded_up_once_over_all_that_it_read() -> None:
    call = billed("Query", QUERY | {"IndexName": "gsi-status-updated"}, {"Items": [item(1000)] * 5})
    assert (call.index, call.items, call.size, call.read_units) == ("gsi-status-updated", 5, 5000, 1)
    assert billed("Query", QUERY, {"Items": []}).read_units == 0.5


def batch(**asked: Any) -> dict[str, Any]:
    keys = [{"pk": {"S": str(n)}, "sk": {"S": "y"}} for n in range(asked.pop("keys"))]
    return {"RequestItems": {asked.pop("table", TICKETS): {"Keys": keys, **asked}}}


def test_a_batch_is_rounded_up_for_each_item() -> None:
    call = billed("BatchGetItem", batch(keys=5), {"Responses": {TICKETS: [item(1000)] * 5}})
    assert (call.table, call.items, call.size, call.read_units) == (TICKETS, 5, 5000, 2.5)


def test_what_a_batch_does_not_find_is_paid_for_and_what_it_leaves_for_later_is_not() -> None:
    found = {"Responses": {TICKETS: [item(5000)]}}
    assert billed("BatchGetItem", batch(keys=3), found).read_units == 1 + 2 * 0.5
    left = {"UnprocessedKeys": {TICKETS: {"Keys": [GET["Key"]] * 2}}}
    assert billed("BatchGetItem", batch(keys=3), found | left).read_units == 1


def test_a_batch_of_two_tables_has_the_rate_of_each() -> None:
    request = batch(keys=1, ConsistentRead=True)
    request["RequestItems"] |= batch(keys=2, table="Other")["RequestItems"]
    body = {"Responses": {TICKETS: [item(100)], "Other": [item(100), item(5000)]}}
    call = billed("BatchGetItem", request, body)
    assert call.read_units == 1 + 0.5 + 1
    assert call.items == 3


def test_a_transactional_read_costs_four_times() -> None:
    request = {"TransactItems": [{"Get": {"TableName": TICKETS}}] * 2}
    call = billed("TransactGetItems", request, {"Responses": [{"Item": item(5000)}, {"Item": item(9)}]})
    assert call.read_units == 4 + 2


def test_writes_are_billed_as_the_engine_reports_them() -> None:
    put = {"TableName": TICKETS, "Item": {}}
    call = billed("PutItem", put, {"ConsumedCapacity": {"TableName": TICKETS, "CapacityUnits": 3.0}})
    assert (call.write_units, call.read_units) == (3, 0)
    consumed = [{"TableName": TICKETS, "CapacityUnits": 600.0}, {"TableName": "Other", "CapacityUnits": 2.0}]
    call = billed("TransactWriteItems", {"TransactItems": []}, {"ConsumedCapacity": consumed})
    assert call.write_units == 602
    assert call.table == f"Other,{TICKETS}"
    assert billed("UpdateItem", GET, {}).write_units == 0


def test_the_engine_is_asked_what_a_write_cost() -> None:
    with answering("platform", "PutItem", (200, {})) as seen:
        dispatch("PutItem", {"TableName": TICKETS, "Item": {}})
    assert json.loads(seen[0]["body"])["ReturnConsumedCapacity"] == "INDEXES"


# --- failed calls ---


def test_a_refused_call_is_counted_and_reads_nothing() -> None:
    for operation, request in (("GetItem", GET), ("Query", QUERY), ("BatchGetItem", batch(keys=3))):
        throttled = answering("platform", operation, refusal("ThrottlingException"))
        with meter.measure() as bill, throttled, pytest.raises(Throttled):
            dispatch(operation, request)
        assert (len(bill.calls), bill.trips, bill.read_units, bill.items) == (1, 1, 0, 0)


def test_a_failed_condition_is_counted() -> None:
    failing = answering("platform", "PutItem", refusal("ConditionalCheckFailedException"))
    with meter.measure() as bill, failing, pytest.raises(ConditionFailed):
        dispatch("PutItem", {"TableName": TICKETS, "Item": {}})
    assert (len(bill.calls), bill.trips) == (1, 1)


def test_a_call_without_an_answer_is_counted() -> None:
    events = client.connection("platform").client.meta.events

    def lose(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://nowhere")

    events.register("before-send.dynamodb.GetItem", lose)
    try:
        with meter.measure() as bill, pytest.raises(Unavailable):
            dispatch("GetItem", GET)
    finally:
        events.unregister("before-send.dynamodb.GetItem", lose)
    assert (len(bill.calls), bill.trips, bill.read_units, bill.write_units) == (1, 1, 0, 0)


# --- trips ---


def get() -> None:
    dispatch("GetItem", GET)


def test_calls_one_after_the_other_are_as_many_trips(engine: None, bill: meter.Meter) -> None:
    get()
    get()
    assert (bill.trips, len(bill.calls)) == (2, 2)


def test_calls_sent_together_are_one_trip(engine: None, bill: meter.Meter) -> None:
    fan_out([get] * 5)
    assert (bill.trips, len(bill.calls)) == (1, 5)
    fan_out([get] * 3)
    get()
    assert (bill.trips, len(bill.calls)) == (3, 9)


def test_a_single_call_of_a_fan_out_is_a_trip_like_any(engine: None, bill: meter.Meter) -> None:
    fan_out([get])
    assert (bill.trips, len(bill.calls)) == (1, 1)


def test_a_fan_out_inside_a_fan_out_is_still_one_trip(engine: None, bill: meter.Meter) -> None:
    fan_out([lambda: fan_out([get, get]), get])
    assert (bill.trips, len(bill.calls)) == (1, 3)


def test_what_is_read_alongside_takes_no_trip_of_its_own(engine: None, bill: meter.Meter) -> None:
    assert alongside(lambda: [get(), get()], aside=lambda: get() or "aside") == ([None, None], "aside")
    assert (bill.trips, len(bill.calls)) == (2, 3)


def test_what_finds_no_idle_thread_to_run_alongside_is_a_trip_like_any(
    engine: None, bill: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_start", lambda call: None)
    assert alongside(get, aside=lambda: get() or "aside") == (None, "aside")
    assert (bill.trips, len(bill.calls)) == (2, 2)


# --- contexts ---


def test_nothing_is_counted_where_nobody_measures(engine: None) -> None:
    with meter.measure() as bill:
        pass
    get()
    assert bill.calls == []


def test_a_nested_bill_takes_over_and_gives_back(engine: None) -> None:
    with meter.measure() as outer:
        get()
        with meter.measure() as inner:
            get()
            get()
        get()
    assert (len(outer.calls), len(inner.calls)) == (2, 2)


def test_an_error_ends_the_measuring(engine: None) -> None:
    with pytest.raises(ZeroDivisionError), meter.measure() as bill:
        raise ZeroDivisionError
    get()
    assert bill.calls == []


def test_two_requests_at_the_same_time_have_two_bills(engine: None) -> None:
    both = threading.Barrier(2, timeout=120)
    bills: dict[int, meter.Meter] = {}

    def request(calls: int) -> None:
        with meter.measure() as bill:
            both.wait()
            fan_out([get] * calls)
            both.wait()
        bills[calls] = bill

    threads = [threading.Thread(target=request, args=(calls,)) for calls in (2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {calls: (bill.trips, len(bill.calls)) for calls, bill in bills.items()} == {2: (1, 2), 5: (1, 5)}


def test_a_thread_that_was_handed_no_context_is_not_on_the_bill(engine: None, bill: meter.Meter) -> None:
    for target in (get, lambda: copy_context().run(get)):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join(120)
    assert bill.calls == []


def test_the_bill_can_be_read_in_the_browser() -> None:
    bill = meter.Meter()
    bill.add(meter.Call("Query", TICKETS, None, 50, 20480, 2.5, 0, 0.004))
    bill.add(meter.Call("UpdateItem", TICKETS, None, 0, 0, 0, 3, 0.001))
    assert bill.server_timing() == ('dynamodb;dur=5.0;desc="2 trips, 2 calls, 50 items, 20480 B, 2.5 RCU, 3 WCU"')
