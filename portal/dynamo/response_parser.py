"""Read item responses without botocore's walk over every attribute.

DynamoDB answers in JSON that is already what botocore makes of it, typed values included; only binary
attributes differ, which botocore decodes from base64. Only the search index has any. For a page of 50 rows the walk
costs more than the network on loopback, so item responses without a binary attribute skip it.
"""

from __future__ import annotations

from typing import Any

from botocore.parsers import JSONParser, ResponseParserFactory

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


class ItemParser(JSONParser):  # type: ignore[misc]  # botocore has no types
    def _handle_json_body(self, raw_body: bytes, shape: Any) -> Any:
        # Inside a text the quote would be escaped, so these bytes can only be a type name.
        if shape.name in _ITEM_OUTPUTS and b'"B":' not in raw_body and b'"BS":' not in raw_body:
            return self._parse_body_as_json(raw_body)
        return super()._handle_json_body(raw_body, shape)


class ItemParserFactory(ResponseParserFactory):  # type: ignore[misc]  # botocore has no types
    def create_parser(self, protocol_name: str) -> Any:
        return ItemParser(**self._defaults) if protocol_name == "json" else super().create_parser(protocol_name)
