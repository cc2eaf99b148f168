"""Declare the items of a desk's public form, in the table of its pages for people outside.

A form that was sent leaves its one-time id behind, so that nobody sends another text with the same proof of work. TTL
removes it after the form itself has run out.
"""

from __future__ import annotations

from typing import Any, Final

from pynamodb.attributes import BooleanAttribute, ListAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Stage, declare_holding
from portal.schema.row_forms import Check, RowForm
from tickets.outside.stored import OUTSIDE
from tickets.ticket import custom_values

FORM: Final = "FORM"
_SENT: Final = "SENT"
_SENT_PREFIX: Final = keys.beginning(_SENT)


def sent(nonce: str) -> str:
    """Return the sort key of a form that was sent, by its one-time id."""
    return keys.joined(_SENT, keys.part(nonce, "a one-time id"))


class FormItem(Item):
    """The settings of a desk's public form. `origins` are those of the sites that may show it in a frame.
    `own_fields` are the ids of the custom fields that it asks, `needed_fields` of those that it needs. `version` grows
    with each change."""

    table = OUTSIDE

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    is_on = BooleanAttribute(default=False)
    asks_name = BooleanAttribute(default=True)
    asks_priority = BooleanAttribute(default=False)
    takes_files = BooleanAttribute(default=True)
    intro = UnicodeAttribute(default="")
    next_steps = UnicodeAttribute(default="")
    origins: ListAttribute[Any] = ListAttribute(default=list)
    own_fields: ListAttribute[Any] = ListAttribute(default=list)
    needed_fields: ListAttribute[Any] = ListAttribute(default=list)
    version = NumberAttribute(default=1)


class SentFormItem(Item):
    """A form that was sent: the digest of what it held."""

    table = OUTSIDE

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    digest = UnicodeAttribute()
    expires_at = NumberAttribute()


def _are_fields(value: Any) -> bool:
    return all(custom_values.is_field_id(one["S"]) for one in value)


def _forms() -> tuple[RowForm, ...]:
    checks: dict[str, Check] = {
        "origins": row_forms.texts, "own_fields": _are_fields, "needed_fields": _are_fields
    }  # fmt: skip
    return (RowForm(FormItem, lambda own, _: (keys.tenant(own), FORM), begins=FORM, checks=checks),)


declare_holding(
    Holding(
        "public form",
        (OUTSIDE,),
        lambda reader: reader.query(OUTSIDE, reader.tenant_id, begins_with=FORM),
        Stage.OWN,
        forms=_forms,
    ),
    Holding(
        "public forms that were sent",
        (OUTSIDE,),
        lambda reader: reader.query(OUTSIDE, reader.tenant_id, begins_with=_SENT_PREFIX),
        Stage.OWN,
        left_out="each is forgotten a day after it was sent, and its ticket stays",
    ),
)


declare_keys(OUTSIDE, {"public form": "<tenant>, FORM", "sent form": "<tenant>, SENT#<nonce>"})
