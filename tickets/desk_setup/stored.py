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
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Stage, declare_holding, own_partition
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import Check, RowForm

SETUP: Final = "SETUP"
_SLA: Final = "SLA"
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
    is that of tickets/custom_fields, with the kinds of tickets, `tag_colours` and `groups` are of `setup.py`.
    `sla` names the version of the targets that holds: tickets/sla/policy_versions.py.
    """

    table = SETUPS

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    version = NumberAttribute(default=1)
    custom_fields = BinaryAttribute(legacy_encoding=False, null=True)
    tag_colours = BinaryAttribute(legacy_encoding=False, null=True)
    groups = BinaryAttribute(legacy_encoding=False, null=True)
    sla = BinaryAttribute(legacy_encoding=False, null=True)


class SlaPolicyItem(Item):
    """One version of a desk's targets for answers and solutions, which never changes: `policy` is a packed text."""

    table = SETUPS

    tenant_id = UnicodeAttribute(hash_key=True)
    part = UnicodeAttribute(range_key=True)
    policy = BinaryAttribute(legacy_encoding=False)


def sla_version(number: int) -> str:
    return keys.joined(_SLA, keys.whole_number(number, "a version", least=1))


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


def _sla_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    return keys.tenant(tenant_id), sla_version(int(keys.split(item["part"]["S"])[1]))


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
            RowForm(
                SlaPolicyItem,
                _sla_key,
                begins=_SLA,
                checks={"policy": lambda value: _checks["sla_policy"](unpack(value))},
            ),
        ),
    )
)


declare_keys(SETUPS, {"setup": "<tenant>, SETUP", "targets": "<tenant>, SLA#<version>"})
