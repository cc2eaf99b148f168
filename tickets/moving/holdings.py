"""Declare what is noted of a tenant's moves, and what stands in their way while one is under way."""

from __future__ import annotations

from collections.abc import Iterator

from portal.dynamo import keys as move_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY
from tickets.moving import keys
from tickets.ticket.stored import TICKETS

_OF_THIS_PLACE = "it is about the placements of this installation"


def _moves(reader: Reader) -> Iterator[StoredItem]:
    yield from reader.query(DIRECTORY, keys.MOVES, begins_with=reader.tenant_id)
    yield from reader.query(DIRECTORY, keys.history(reader.tenant_id))


def _fences(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, move_keys.move(reader.tenant_id))


declare_holding(
    Holding("moves", (DIRECTORY,), _moves, Stage.BESIDE, left_out=_OF_THIS_PLACE),
    Holding("fences of moves", (TICKETS,), _fences, Stage.BESIDE, left_out=_OF_THIS_PLACE),
)
