"""Declare what a verification keeps while it recounts, and the check of the search index with it."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tickets.ticket.stored import TICKETS
from tickets.verification import keys


def _recounts(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, keys.recounting(reader.tenant_id))


declare_holding(Holding("recounts", (TICKETS,), _recounts, Stage.BESIDE, left_out="a recount is made anew"))
