"""What the short ways through botocore leave out changes nothing of what is sent, and where."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.serialize import JSONSerializer
from django.conf import LazySettings

from portal.dynamo import client, item_protocol

TEXT = {
    "TableName": "T",
    "Item": {"pk": {"S": "\N{GRINNING FACE} \u2028"}, "n": {"N": "1"}, "m": {"M": {"b": {"BOOL": True}}}},
}
BINARY = {"TableName": "T", "Item": {"pk": {"S": "x"}, "data": {"B": b"\x00\xff"}, "more": {"BS": [b"a"]}}}
MEMBERS = {"TransactItems": [{"Put": TEXT}, {"Delete": {"TableName": "T", "Key": {"pk": {"S": "y"}}}}]}


@pytest.mark.parametrize(
    ("operation", "params"), [("PutItem", TEXT), ("PutItem", BINARY), ("TransactWriteItems", MEMBERS)]
)
def test_a_request_is_written_as_botocore_writes_it(operation: str, params: dict[str, Any]) -> None:
    model = client.connection("platform").client.meta.service_model.operation_model(operation)
    ours, botocores = item_protocol.ItemSerializer(), JSONSerializer()
    assert ours.serialize_to_request(params, model) == botocores.serialize_to_request(params, model)


def test_the_rules_of_endpoints_are_asked_where_none_is_stated(settings: LazySettings) -> None:
    settings.DYNAMODB_ENDPOINT_URL = ""
    assert _endpoint() == f"https://dynamodb.{settings.AWS_REGION}.amazonaws.com"
    settings.DYNAMODB_ENDPOINT_URL = "http://127.0.0.1:9"
    assert _endpoint() == "http://127.0.0.1:9"


def _endpoint() -> str:
    """Where a new client sends its requests."""
    made = client.make_client("platform")
    model = made.meta.service_model.operation_model("GetItem")
    endpoint: str = made._resolve_endpoint_ruleset(model, {"TableName": "T"}, {})[0]
    return endpoint
