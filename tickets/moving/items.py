"""Store moves of tenants: PynamoDB models and nothing else."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, NumberAttribute, UnicodeAttribute

from tickets.jobs.items import JobItem


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
