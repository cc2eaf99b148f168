"""Declare moves of tenants, the last one of each and those before it, and the fences that a move puts up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)

from portal.dynamo import fencing
from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, declare
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.stored import JobItem, jobs
from tickets.ticket.stored import TICKETS

MOVES: Final = keys.part("MOVING")
PAST_MOVES: Final = "MOVED"


class MoveItem(JobItem):
    """A move of a tenant's content: the last one by the tenant's id, former ones by when they began.

    `state` is one of `move_notes`; `phase` is the step of `tenant_mover.py` that it is at, and `done` the last ticket
    number that the step has come to. `last_number` is how many numbers there were when copying began, `changes` how
    many entries of the log were copied after. `held_ms` is how long the hold of the switch lasted, `holds` how often
    writes were held. `digest` is that of the tickets as they were left, up to the one that is compared, and `wrong` the
    numbers of those that the new place lacks something of. `kept_until` is when the
    old copy may go. With `unchecked` it goes although it has something that the new place lacks, and with `lost` the
    place that is left or was not reached is asked no more.
    """

    move_id = UnicodeAttribute()
    from_place = UnicodeAttribute()
    to_place = UnicodeAttribute()
    by = UnicodeAttribute(default="")
    done = NumberAttribute(default=0)
    last_number = NumberAttribute(default=0)
    changes = NumberAttribute(default=0)
    holds = NumberAttribute(default=0)
    held_ms = NumberAttribute(default=0)
    grace_days = NumberAttribute(default=0)
    kept_until = UnicodeAttribute(default="")
    digest = UnicodeAttribute(default="")
    wrong: ListAttribute[Any] = ListAttribute(default=list)
    unchecked = BooleanAttribute(default=False)
    lost = BooleanAttribute(default=False)
    switched_at = UnicodeAttribute(default="")
    ended_at = UnicodeAttribute(default="")


class FenceItem(Item):
    """A fence or a gate of a move, or an entry of its log, which names the collections that were `changed`.

    `closed` is the attempt of the move that has closed a fence or gate. `holder` is the key of a gate.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    raised = NumberAttribute(null=True)
    closed = NumberAttribute(null=True)
    holder = UnicodeAttribute(null=True)
    changed = UnicodeSetAttribute(null=True)


declare(
    grants=(
        Grant("platform", DIRECTORY, ("GetItem",), "ReadMoves", leading_keys=MOVES),
        Grant("lifecycle", TICKETS, ("ConditionCheckItem", "PutItem", "UpdateItem"), "CopyTickets"),
    ),
)


_OF_THIS_PLACE = "it is about the placements of this installation"


def _fences(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, fencing.move_key(reader.tenant_id))


declare_holding(
    jobs("moves", MOVES, Stage.BESIDE, history=PAST_MOVES, left_out=_OF_THIS_PLACE),
    Holding("fences of moves", (TICKETS,), _fences, Stage.BESIDE, left_out=_OF_THIS_PLACE),
)


declare_keys(TICKETS, {"move log": "TENANT#<tenant>|MOVE, <part>"})
declare_keys(DIRECTORY, {"move": "MOVING, <tenant>", "past move": "MOVED#<tenant>, <time>"})
