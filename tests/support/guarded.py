"""A tenant client whose requests are caught before they leave, and requests of the two tenants to try on it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from portal.dynamo import client
from portal.isolation.guard import acting_for
from tenants.membership.stored import MEMBERS
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

A, B = "a" * 32, "b" * 32
TICKETS, MEMBERS = TICKETS.full_name, MEMBERS.full_name
OWN, FOREIGN = stored.ticket(A, 7), stored.ticket(B, 7)
OWN_STATUS, FOREIGN_STATUS = stored.tenant_status(A, "OPEN", 0), stored.tenant_status(B, "OPEN", 0)
SENT = SimpleNamespace(status_code=200, headers={}, content=b"{}", raw=None)

Params = dict[str, Any]


class Caught:
    """A tenant client that sends nothing. `sent` holds what it would have sent."""

    def __init__(self, made: Any = None) -> None:
        self.client = made or client.make_client("tenant")
        self.sent: list[Params] = []
        self.client.meta.events.register_last("before-send.dynamodb", self._catch)

    def _catch(self, request: Any, **_: Any) -> Any:
        self.sent.append(json.loads(request.body))
        return SENT

    def ask(self, operation: str, params: Params, tenant: str = A) -> None:
        with acting_for(tenant):
            self.client._make_api_call(operation, params)


def key(pk: str = OWN, sk: str = "SUMMARY") -> Params:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def get(pk: str = OWN, **more: Any) -> Params:
    return {"TableName": TICKETS, "Key": key(pk), **more}


def put(**item: Any) -> Params:
    return {"TableName": TICKETS, "Item": key() | item}


def update(expression: str, names: Params | None = None, **values: Any) -> Params:
    params: Params = get(UpdateExpression=expression)
    if names:
        params["ExpressionAttributeNames"] = names
    return params | {"ExpressionAttributeValues": {f":{n}": {"S": v} for n, v in values.items()}}


def query(value: str = OWN, *, condition: str = "#h = :h", name: str = "pk", **more: Any) -> Params:
    return {
        "TableName": TICKETS,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": {"#h": name},
        "ExpressionAttributeValues": {":h": {"S": value}},
        **more,
    }


def transaction(*members: Params) -> Params:
    return {"TransactItems": [*members], "ClientRequestToken": "t"}


def batch(*members: Params, table: str = TICKETS) -> Params:
    return {"RequestItems": {table: [*members]}}
