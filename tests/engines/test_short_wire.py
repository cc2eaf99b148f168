"""The short way of the tests to their engine brings the answers of the usual one, and leaves it the rest."""

from __future__ import annotations

import json
import threading

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.exceptions import EndpointConnectionError
from botocore.httpsession import URLLib3Session
from django.conf import settings

from portal.engines.processes import free_port
from tests.support import embedded
from tests.support.short_wire import ShortWire

HEADERS = {
    "Authorization": embedded.SIGNATURE.format(region=settings.AWS_REGION),
    "Content-Type": "application/x-amz-json-1.0",
}


def request(target: str, url: str = "", **asked: object) -> AWSPreparedRequest:
    headers = {**HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{target}"}
    return AWSRequest(
        "POST", f"{url or settings.DYNAMODB_ENDPOINT_URL}/", headers, json.dumps(asked).encode()
    ).prepare()


def test_answers_and_refusals_are_those_of_the_usual_way(engine: None) -> None:
    wire = ShortWire(settings.DYNAMODB_ENDPOINT_URL)
    for one in (request("ListTables"), request("DescribeTable", TableName="nowhere")):
        usual = embedded.wire().post("/", one.body.decode(), dict(one.headers.items()))
        short = wire._send(URLLib3Session(), one)
        assert (short.status_code, short.content) == usual
        assert short.headers["content-type"] == "application/x-amz-json-1.0"


def test_a_connection_that_the_engine_has_ended_is_replaced(engine: None) -> None:
    wire = ShortWire(settings.DYNAMODB_ENDPOINT_URL)
    kept = wire._connection()
    kept.shutdown(2)
    assert wire._send(URLLib3Session(), request("ListTables")).status_code == 200
    assert wire._connection() is not kept


def test_threads_have_connections_of_their_own(engine: None) -> None:
    wire = ShortWire(settings.DYNAMODB_ENDPOINT_URL)
    seen = [wire._connection()]
    thread = threading.Thread(target=lambda: seen.append(wire._connection()))
    thread.start()
    thread.join()
    assert seen[0] is not seen[1]


def test_an_engine_that_is_away_is_missed_as_botocore_says_it() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(EndpointConnectionError):
        ShortWire(nowhere)._send(URLLib3Session(), request("ListTables", nowhere))
