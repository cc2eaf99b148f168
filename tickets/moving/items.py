"""Store moves of tenants: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.tables import DIRECTORY


class MoveItem(Item):
    """A move of a tenant's content: the last one by the tenant's id, former ones by when they began.

    `state` is one of `move_notes`; `phase` is the step of `tenant_mover.py` that it is at, and `done` the last ticket
    number that the step has come to. `last_number` is how many numbers there were when copying began, `changes` how
    many entries of the log were copied after. `held_ms` is how long the hold of the switch lasted, `holds` how often
    writes were held, `digest` that of the tickets as they were left, and `trouble` what keeps it from going on.
    `holder` is whoever carries it out, "" for nobody, who raises `counter` as a sign of life. `kept_until` is when the
    old copy may go.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    slug = UnicodeAttribute()
    title = UnicodeAttribute()
    move_id = UnicodeAttribute()
    from_place = UnicodeAttribute()
    to_place = UnicodeAttribute()
    reason = UnicodeAttribute(default="")
    by = UnicodeAttribute(default="")
    state = UnicodeAttribute()
    phase = UnicodeAttribute()
    done = NumberAttribute(default=0)
    last_number = NumberAttribute(default=0)
    changes = NumberAttribute(default=0)
    holds = NumberAttribute(default=0)
    held_ms = NumberAttribute(default=0)
    grace_days = NumberAttribute(default=0)
    kept_until = UnicodeAttribute(default="")
    digest = UnicodeAttribute(default="")
    trouble = UnicodeAttribute(default="")
    holder = UnicodeAttribute(default="")
    counter = NumberAttribute(default=0)
    begun_at = UnicodeAttribute()
    switched_at = UnicodeAttribute(default="")
    ended_at = UnicodeAttribute(default="")
