"""The straight way of requests for items changes nothing of what is sent, where to, and what is made of the answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError, NoCredentialsError
from botocore.parsers import ResponseParserError
from botocore.serialize import JSONSerializer
from django.conf import LazySettings
from hypothesis import given
from hypothesis import strategies as st

from portal.dynamo import client, item_protocol

TEXT = {
    "TableName": "T",
    "Item": {"pk": {"S": "\N{GRINNING FACE} \u2028"}, "n": {"N": "1"}, "m": {"M": {"b": {"BOOL": True}}}},
}
BINARY = {"TableName": "T", "Item": {"pk": {"S": "x"}, "data": {"B": b"\x00\xff"}, "more": {"BS": [b"a"]}}}
HALF = {"TableName": "T", "Item": {"pk": {"S": "half of a pair: \ud83d"}}}
MEMBERS = {"TransactItems": [{"Put": TEXT}, {"Delete": {"TableName": "T", "Key": {"pk": {"S": "y"}}}}]}
TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)


@pytest.mark.parametrize(
    ("operation", "params"),
    [("PutItem", TEXT), ("PutItem", BINARY), ("PutItem", HALF), ("TransactWriteItems", MEMBERS)],
)
def test_a_request_says_what_botocore_says(operation: str, params: dict[str, Any]) -> None:
    made = client.make_client("platform")
    botocores = JSONSerializer().serialize_to_request(params, made.meta.service_model.operation_model(operation))
    ours = made._request(operation, params, {})
    assert json.loads(ours["body"]) == json.loads(botocores["body"])
    assert ours["headers"] | botocores["headers"] == ours["headers"]


@given(access=TEXTS, secret=TEXTS, token=st.none() | TEXTS, body=st.binary(), port=st.integers(1, 65535))
def test_a_request_is_signed_as_botocore_signs_it(
    access: str, secret: str, token: str | None, body: bytes, port: int
) -> None:
    credentials = ReadOnlyCredentials(access, secret, token)
    headers = {"X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Type": "application/x-amz-json-1.0"}
    for scheme in ("http", "https"):
        url = f"{scheme}://dynamodb.example:{port}/"
        theirs = AWSRequest("POST", url, headers, body)
        SigV4Auth(credentials, "dynamodb", "eu-central-1").add_auth(theirs)
        now = datetime.strptime(theirs.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        request = {"url": url, "headers": headers, "body": body}
        ours = item_protocol.signature(credentials, "eu-central-1", "dynamodb", request, now)
        assert ours == {name: theirs.headers[name] for name in ours}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", {}),
        (b'{"Item": {"B": {"S": "B"}, "BS": {"L": []}}}', {"Item": {"B": {"S": "B"}, "BS": {"L": []}}}),
        (b'{"Item":{"b":{"B":"AP8="},"m":{"M":{"x":{"L":[{"BS":["YQ=="]}]}}}}}', None),
        (b'{"Item": {"pk": {"S": "\\ud83d"}}}', {"Item": {"pk": {"S": "\ud83d"}}}),
    ],
)
def test_an_answer_is_read_as_it_was_written(body: bytes, said: dict[str, Any] | None) -> None:
    binary = {"Item": {"b": {"B": b"\x00\xff"}, "m": {"M": {"x": {"L": [{"BS": [b"a"]}]}}}}}
    assert item_protocol.read(body) == (binary if said is None else said)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b'{"Item": {'])
def test_an_answer_that_is_no_json_object_is_an_error_of_botocores(body: bytes) -> None:
    with pytest.raises(ResponseParserError):
        item_protocol.read(body)


def test_a_refusal_is_the_error_that_botocore_makes_of_it() -> None:
    body = b'{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":{}}'
    answer = SimpleNamespace(status_code=400, headers={"x-amzn-requestid": "7"}, content=body, raw=None)
    made, errors = client.make_client("platform"), []
    made.meta.events.register_last("before-send.dynamodb", lambda **_: answer)
    for call in (made._make_api_call, super(item_protocol.ItemCalls, made)._make_api_call):
        with pytest.raises(made.exceptions.ConditionalCheckFailedException) as refused:
            call("GetItem", {"TableName": "T", "Key": {"pk": {"S": "x"}}})
        errors.append(refused.value)
    ours, botocores = ({k: v for k, v in e.response.items() if k != "ResponseMetadata"} for e in errors)
    assert isinstance(errors[0], ClientError)
    assert ours == botocores


def test_a_process_without_credentials_is_told_so() -> None:
    made = client.make_client("platform")
    made._request_signer._credentials = None
    with pytest.raises(NoCredentialsError):
        made._make_api_call("GetItem", {"TableName": "T", "Key": {"pk": {"S": "x"}}})


def test_requests_go_to_the_stated_endpoint_or_to_that_of_the_region(settings: LazySettings) -> None:
    settings.DYNAMODB_ENDPOINT_URL = ""
    assert _endpoint() == f"https://dynamodb.{settings.AWS_REGION}.amazonaws.com/"
    settings.DYNAMODB_ENDPOINT_URL = "http://127.0.0.1:9"
    assert _endpoint() == "http://127.0.0.1:9/"


def _endpoint() -> str:
    """Return where a new client sends its requests."""
    return str(client.make_client("platform")._request("GetItem", {}, {})["url"])
