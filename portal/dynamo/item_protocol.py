"""Write item requests and read item responses without botocore's walks over every attribute.

PynamoDB builds requests as DynamoDB takes them, typed values included, and DynamoDB answers in JSON that is already
what botocore makes of it. Only binary attributes differ, which are base64 on the way; only the search index has any.
For a page of 50 rows the walk costs more than the network on loopback, so what has no binary attribute skips it.
"""

from __future__ import annotations

import json
from typing import Any

from botocore.parsers import JSONParser, ResponseParserFactory
from botocore.serialize import JSONSerializer

_ITEM_OUTPUTS = {
    "BatchGetItemOutput",
    "BatchWriteItemOutput",
    "DeleteItemOutput",
    "GetItemOutput",
    "GetRecordsOutput",
    "PutItemOutput",
    "QueryOutput",
    "TransactWriteItemsOutput",
    "UpdateItemOutput",
}


class ItemSerializer(JSONSerializer):  # type: ignore[misc]  # botocore has no types
    def serialize_to_request(self, parameters: dict[str, Any], operation_model: Any) -> dict[str, Any]:
        try:
            body = json.dumps(parameters)
        except TypeError:  # bytes, which are no JSON
            return super().serialize_to_request(parameters, operation_model)  # type: ignore[no-any-return]
        return {**super().serialize_to_request({}, operation_model), "body": body.encode()}


class ItemParser(JSONParser):  # type: ignore[misc]  # botocore has no types
    def _handle_json_body(self, raw_body: bytes, shape: Any) -> Any:
        # Inside a text the quote would be escaped, so these bytes can only be a type name.
        if shape.name in _ITEM_OUTPUTS and b'"B":' not in raw_body and b'"BS":' not in raw_body:
            return self._parse_body_as_json(raw_body)
        return super()._handle_json_body(raw_body, shape)


class ItemParserFactory(ResponseParserFactory):  # type: ignore[misc]  # botocore has no types
    def create_parser(self, protocol_name: str) -> Any:
        return ItemParser(**self._defaults) if protocol_name == "json" else super().create_parser(protocol_name)


def shorten(client: Any, endpoint_url: str) -> None:
    """Spare a botocore client what its requests need not: the walk, and rules of endpoints where one is stated.

    The rules find an endpoint of AWS by what each request names. Where one is stated they only ever find that.
    """
    if type(client._serializer) is JSONSerializer:
        client._serializer = ItemSerializer()
    if endpoint_url:
        client._ruleset_resolver = None
