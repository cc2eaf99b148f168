"""Delete what a trial has made: on a local engine and with DEBUG on, and but for scratch items nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.conf import settings

from portal.dynamo import placement
from portal.dynamo.store import Store
from portal.errors import Forbidden
from portal.schema import holdings
from portal.schema.holdings import Stage
from proofs.isolation import keys as proof_keys
from tickets.purging.erasing import Eraser
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS


def refuse_in_production() -> None:
    """Raise Forbidden unless DEBUG is on and the engine is a local one."""
    if not settings.DEBUG or not settings.DYNAMODB_ENDPOINT_URL:
        raise Forbidden("This writes and deletes at will: it needs DEBUG=1 and a local engine.")


def delete_scratch(repository: Store, sort_keys: Iterable[str]) -> None:
    """Delete what the proof of isolation wrote under the key that is its own."""
    pk = {"S": proof_keys.proof(repository.tenant_id)}
    scratch = [{"pk": pk, "sk": {"S": sort_key}} for sort_key in sort_keys]
    repository.as_role("lifecycle").delete_raw(TICKETS, scratch)


def delete_summary(tenant_id: str, number: int) -> None:
    """Tell the stream of a deleted ticket: its summary has gone."""
    refuse_in_production()
    key = {"pk": {"S": ticket_keys.ticket(tenant_id, number)}, "sk": {"S": ticket_keys.SUMMARY}}
    Store("lifecycle", tenant_id).delete_raw(TICKETS, [key])


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
