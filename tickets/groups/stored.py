"""Declare how groups are stored: a row for each agent who is in a group, is away or has a limit, and one of turns.

The names of groups stand in the desk's setup. The table is not placed: changes of agents are written by the platform
role with rows of the audit trail, and no transaction spans two placements.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from portal.dynamo.models import Item, Kinds
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Stage, declare_holding, declare_people, own_partition
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.membership import member_changes
from tenants.tenancy import context
from tickets.ticket.custom_values import GROUP_ID

MOST_CAPACITY: Final = 500  # open tickets
TURNS: Final = "TURNS"  # the sort key of the turns; that of an agent is the user id
GROUPS = Table("Support.Groups", "tenant", "tenant_id", "agent")

declare(
    GROUPS,
    grants=(
        Grant("tenant", GROUPS, ("BatchGetItem", "GetItem", "Query", "UpdateItem")),
        Grant("platform", GROUPS, ("BatchGetItem", "DeleteItem", "UpdateItem")),
    ),
)


class AgentItem(Item):
    """The groups of a member, and their availability. `capacity` is how many open tickets they can have before no more
    are assigned to them, missing for any number. On the day `away_until`, by the days of the desk, they are back;
    until then `stand_in` gets their turns. `version` grows with each change."""

    table = GROUPS

    tenant_id = UnicodeAttribute(hash_key=True)
    agent = UnicodeAttribute(range_key=True)
    groups = UnicodeSetAttribute(null=True)
    capacity = NumberAttribute(null=True)
    away_until = UnicodeAttribute(null=True)
    stand_in = UnicodeAttribute(null=True)
    version = NumberAttribute(default=1)


class TurnsItem(Item):
    """The latest assignments, as JSON: `last` has for each group the member whose turn it was, and `given` the latest
    tickets with their agents and seconds. `version` grows with each turn."""

    table = GROUPS

    tenant_id = UnicodeAttribute(hash_key=True)
    agent = UnicodeAttribute(range_key=True)
    last = UnicodeAttribute(default="{}")
    given = UnicodeAttribute(default="[]")
    version = NumberAttribute(default=1)


ROWS: Final = Kinds[AgentItem | TurnsItem]({"": AgentItem, TURNS: TurnsItem})


def of_member(desk_id: str, user_id: str) -> AgentItem:
    """Return the key of a member's row. Raises ValueError for what is no id of a person."""
    return AgentItem(keys.tenant(desk_id), keys.user(user_id))


# Somebody who comes back is put into groups anew.
member_changes.declare_own_item(of_member)

OWN_ITEM: Final = "own groups"  # of a context, for the whole page of the queue
context.declare_item(OWN_ITEM, AgentItem, "", at="tickets/")


# --- holdings ---


def _key(tenant_id: str, item: Raw) -> tuple[str, str]:
    agent: Any = item["agent"]["S"]
    if not keys.USER_ID.match(agent):
        raise ValueError("nobody has such an id")
    return keys.tenant(tenant_id), agent


def _is_day(text: str) -> bool:
    return date.fromisoformat(text).isoformat() == text


def _are_groups(values: Any) -> bool:
    return all(GROUP_ID.match(one) for one in values)


def _is_last(text: str) -> bool:
    return all(GROUP_ID.match(group) and keys.USER_ID.match(agent) for group, agent in json.loads(text).items())


def _is_given(text: str) -> bool:
    return all(
        isinstance(number, int) and keys.USER_ID.match(agent) and isinstance(at, int)
        for number, agent, at in json.loads(text)
    )


declare_holding(
    Holding(
        "groups",
        (GROUPS,),
        own_partition(GROUPS),
        Stage.OWN,
        forms=lambda: (
            RowForm(
                TurnsItem,
                lambda own, _: (keys.tenant(own), TURNS),
                begins=TURNS,
                checks={"last": _is_last, "given": _is_given},
            ),
            RowForm(
                AgentItem,
                _key,
                checks={
                    "groups": _are_groups,
                    "capacity": row_forms.between(1, MOST_CAPACITY),
                    "away_until": _is_day,
                    "stand_in": lambda value: keys.USER_ID.match(value) is not None,
                },
            ),
        ),
    )
)
declare_people("groups", "tickets.groups.people_in_groups")


declare_keys(GROUPS, {"group turns": "<tenant>, TURNS", "agent": "<tenant>, <person>"})
