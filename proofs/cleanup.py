"""Delete what a trial has made: on a local engine and with DEBUG on, and but for scratch items nowhere else.

The guard lets no role delete a ticket, and none shall for the sake of a trial. So this client is not guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings

from portal.dynamo import client, placement
from portal.dynamo.store import Store, batch_write
from portal.errors import Forbidden
from portal.isolation import guard
from portal.schema import holdings
from portal.schema.holdings import Stage
from proofs.isolation import keys as proof_keys
from tickets.purging.erasing import Eraser
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS

_connections: list[client.SharedConnection] = []


def refuse_in_production() -> None:
    """Raise Forbidden unless DEBUG is on and the engine is a local one."""
    if not settings.DEBUG or not settings.DYNAMODB_ENDPOINT_URL:
        raise Forbidden("This writes and deletes at will: it needs DEBUG=1 and a local engine.")


def _connection() -> client.SharedConnection:
    if not _connections:
        _connections.append(client.SharedConnection(_make_client))
    return _connections[0]


def _make_client(name: str) -> Any:
    site = placement.site(name)
    return client._create("dynamodb", client._session(site.endpoint_url), site.endpoint_url, site.region)


def _dispatch(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    refuse_in_production()
    answer: dict[str, Any] = _connection().dispatch(operation, request)
    return answer


def delete_scratch(repository: Store, sort_keys: Iterable[str]) -> None:
    """Delete what the proof of isolation wrote under the key that is its own; on an account, as the seed role."""
    pk = {"S": proof_keys.proof(repository.tenant_id)}
    keys_of_items = [{"pk": pk, "sk": {"S": sort_key}} for sort_key in sort_keys]
    with guard.acting_for(repository.tenant_id), placement.at(repository.placement):
        batch_write(_connection(), [(TICKETS.full_name, {"DeleteRequest": {"Key": key}}) for key in keys_of_items])


def delete_summary(tenant_id: str, number: int) -> None:
    """Tell the stream of a deleted ticket: its summary has gone."""
    key = {"pk": {"S": ticket_keys.ticket(tenant_id, number)}, "sk": {"S": ticket_keys.SUMMARY}}
    _dispatch("DeleteItem", {"TableName": TICKETS.full_name, "Key": key})


def delete_content(tenant_id: str) -> int:
    """Delete a tenant's tickets and what they name, and return how many items that were.

    The stream is told of them, so wait until it is applied before `delete_tenant`.
    """
    return _delete_stages(tenant_id, lambda stage: stage <= Stage.CONTENT)


def delete_tenant(tenant_id: str) -> int:
    """Delete all that any package declares to hold for a tenant whose stream nobody follows any more."""
    return _delete_stages(tenant_id, lambda stage: True)


def _delete_stages(tenant_id: str, is_wanted: Callable[[Stage], bool]) -> int:
    refuse_in_production()
    eraser = Eraser(tenant_id, [placement.POOL], sleep=lambda seconds: None)
    wanted = [holding for holding in holdings.holdings() if is_wanted(holding.stage)]
    return sum(eraser.clear(holding, deleted=lambda items: None) for holding in wanted)
