"""Declare the table of a desk's pages for people outside: their looks, and what each kind of page adds.

The settings are changed by the platform role, in the transaction of their audit row. The tenant writes
items that a page has to remember for a while, and TTL removes them.
"""

from __future__ import annotations

import base64
from typing import Final

from django.conf import settings
from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Stage, declare_holding
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm

LOOKS: Final = "LOOKS"
LOGO: Final = "LOGO"
LANGUAGES: Final = tuple(code for code, _ in settings.LANGUAGES)
COLOUR: Final = r"#[0-9a-f]{6}\Z"

OUTSIDE = Table("Support.Outside", "tenant", "tenant_id", "part", ttl="expires_at")

declare(
    OUTSIDE,
    grants=(
        Grant("tenant", OUTSIDE, ("BatchGetItem", "GetItem", "PutItem")),
        Grant("platform", OUTSIDE, ("UpdateItem",)),
    ),
)


class LooksItem(Item):
    """The looks of a desk's pages for people outside. `name` is "" for the desk's own, `colour` for the portal's.
    `logo` is the digest of the logo, "" without one. `version` grows with each change."""

    table = OUTSIDE

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute(default="")
    colour = UnicodeAttribute(default="")
    language = UnicodeAttribute(default=LANGUAGES[0])
    logo = UnicodeAttribute(default="")
    version = NumberAttribute(default=1)


class LogoItem(Item):
    """A desk's logo: a small WebP that we have made, in base64; missing where it was removed."""

    table = OUTSIDE

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    content = UnicodeAttribute(null=True)


def _forms() -> tuple[RowForm, ...]:
    checks = {
        "colour": lambda value: not value or row_forms.like(COLOUR)(value),
        "language": row_forms.one_of(*LANGUAGES),
    }
    return (RowForm(LooksItem, lambda own, _: (keys.tenant(own), LOOKS), begins=LOOKS, checks=checks),)


def _logo_forms() -> tuple[RowForm, ...]:
    checks = {"content": lambda value: base64.b64decode(value, validate=True)[8:12] == b"WEBP"}
    return (RowForm(LogoItem, lambda own, _: (keys.tenant(own), LOGO), begins=LOGO, checks=checks),)


declare_holding(
    Holding(
        "looks",
        (OUTSIDE,),
        lambda reader: reader.query(OUTSIDE, reader.tenant_id, begins_with=LOOKS),
        Stage.OWN,
        forms=_forms,
    ),
    Holding(
        "logo",
        (OUTSIDE,),
        lambda reader: reader.query(OUTSIDE, reader.tenant_id, begins_with=LOGO),
        Stage.OWN,
        forms=_logo_forms,
    ),
)


declare_keys(OUTSIDE, {"looks": "<tenant>, LOOKS", "logo": "<tenant>, LOGO"})
