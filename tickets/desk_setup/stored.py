"""Declare the item of a desk's setup.

It is changed by the platform role, in the transaction of its audit row, and read by the same role with the desk itself.
The tenant reads it where no request has done so, such as in a worker.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Final

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys
from portal.schema.holdings import Holding, Stage, declare_holding, own_partition
from portal.schema.registry import Grant, declare
from portal.schema.row_forms import Check, RowForm
from portal.schema.tables import Table

SETUP: Final = "SETUP"
# Bytes of all parts as they are stored. With the key and the names of the attributes they are below 4 KB, which half a
# read unit pays for.
ROOM: Final = 3_900
_TEXT_LIMIT: Final = 200_000  # characters of a part, which a row of a file could claim

SETUPS = Table("Support.Setups", "tenant", "tenant_id", "part")

declare(
    SETUPS,
    grants=(
        Grant("tenant", SETUPS, ("GetItem",)),
        Grant("platform", SETUPS, ("BatchGetItem", "UpdateItem")),
    ),
)


class SetupItem(Item):
    """The setup of a desk; missing while nobody has changed anything. `version` grows with each change.

    Every other attribute is one part: a text, compressed by `pack`, missing where the part is empty. `custom_fields`
    is that of tickets/custom_fields, with the kinds of tickets, `tag_colours` that of `tag_colours.py`, and `groups`
    that of `group_names.py`.
    """

    table = SETUPS

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    version = NumberAttribute(default=1)
    custom_fields = BinaryAttribute(legacy_encoding=False, null=True)
    tag_colours = BinaryAttribute(legacy_encoding=False, null=True)
    groups = BinaryAttribute(legacy_encoding=False, null=True)


PARTS: Final = tuple(sorted(SetupItem.get_attributes().keys() - {"tenant_id", "part", "version"}))


def pack(text: str) -> bytes:
    """Return a text as a part stores it: definitions repeat words, and shrink to a third."""
    return zlib.compress(text.encode(), 9)


def unpack(stored: bytes | None) -> str:
    """Return the text of a stored part, "" of a missing one. Raises ValueError for what is none, or is too long."""
    if not stored:
        return ""
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(stored, _TEXT_LIMIT)
    except zlib.error as error:
        raise ValueError("this is no packed text") from error
    if not reader.eof:
        raise ValueError("this text is cut off or too long")
    return text.decode()


_checks: Final[dict[str, Check]] = {}


def declare_part(name: str, is_text: Check) -> None:
    """Say of which form the text of a part is: what is brought in from a file is checked by it."""
    _checks[name] = is_text


def _check(name: str, value: bytes) -> bool:
    return len(value) <= ROOM and bool(_checks[name](unpack(value)))


declare_holding(
    Holding(
        "setup",
        (SETUPS,),
        own_partition(SETUPS),
        Stage.OWN,
        forms=lambda: (
            RowForm(
                SetupItem,
                lambda own, _: (keys.tenant(own), SETUP),
                begins=SETUP,
                checks={name: partial(_check, name) for name in PARTS},
            ),
        ),
    )
)
