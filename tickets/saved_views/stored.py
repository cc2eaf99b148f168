"""Declare how saved views are stored: one item for those of the desk, and one for each member who has some.

The table is not placed: changes are written by the platform role with rows of the audit trail, and no transaction spans
two placements.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Stage, declare_holding, declare_people, own_partition
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.membership import member_changes
from tenants.tenancy import context

DESK: Final = "DESK"  # the owner of the views of the desk; those of a member have the user id
VIEWS = Table("Support.Views", "tenant", "tenant_id", "owner")

declare(
    VIEWS,
    grants=(
        Grant("tenant", VIEWS, ("BatchGetItem", "GetItem", "Query")),
        Grant("platform", VIEWS, ("BatchGetItem", "DeleteItem", "PutItem")),
    ),
)


class ViewsItem(Item):
    """The views of one owner, in their order. `views` is JSON: id, name and the list's query of each. `starred` is
    JSON, too: the ids of the views, also of the desk's, that this member has starred. `version` grows with each change.
    """

    table = VIEWS

    tenant_id = UnicodeAttribute(hash_key=True)
    owner = UnicodeAttribute(range_key=True)
    views = UnicodeAttribute(default="[]")
    starred = UnicodeAttribute(default="[]")
    version = NumberAttribute(default=1)


def of_member(desk_id: str, user_id: str) -> ViewsItem:
    """Return the key of a member's own views. Raises ValueError for what is no id of a person."""
    return ViewsItem(keys.tenant(desk_id), keys.user(user_id))


# They go with the membership: nobody else sees them, and a person who comes back begins anew.
member_changes.declare_own_item(of_member)

DESK_ITEM, OWN_ITEM = "views", "own views"  # of a context, for the whole page of the queue
context.declare_item(DESK_ITEM, ViewsItem, DESK, at="tickets/")
context.declare_item(OWN_ITEM, ViewsItem, "", at="tickets/")


# --- holdings ---


def _is_views(text: str) -> bool:
    told = json.loads(text)
    return isinstance(told, list) and all(row_forms.are_texts(one) and len(one) == 3 for one in told)


def _is_starred(text: str) -> bool:
    return row_forms.are_texts(json.loads(text))


def _key(tenant_id: str, item: Raw) -> tuple[str, str]:
    owner: Any = item["owner"]["S"]
    if owner != DESK and not keys.USER_ID.match(owner):
        raise ValueError("nobody has such an id")
    return keys.tenant(tenant_id), owner


_CHECKS: Final = {"views": _is_views, "starred": _is_starred}

declare_holding(
    Holding(
        "saved views",
        (VIEWS,),
        own_partition(VIEWS),
        Stage.OWN,
        forms=lambda: (RowForm(ViewsItem, _key, checks=_CHECKS),),
    )
)
declare_people("saved views", "tickets.saved_views.people_in_views")


declare_keys(VIEWS, {"saved views": ""})
