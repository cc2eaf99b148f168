"""Read the setup of a desk, and change one part of it; and two such parts: the colours of tags, and the desk's groups.

A page has it from the item that is read with the desk itself (`context.declare_item`), in no round trip more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid
from portal.schema import keys
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.desk_setup.stored import PARTS, ROOM, SETUP, SetupItem, declare_part, pack, unpack
from tickets.ticket.custom_values import GROUP_ID

NAME: Final = "setup"  # of the item in a context
CHANGED: Final = gettext_noop("Somebody else has just changed these settings. Please check and try again.")


@dataclass(frozen=True)
class DeskSetup:
    """The setup of a desk in one version, 0 where nothing is stored. `parts` are texts by their names."""

    version: int = 0
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)

    @classmethod
    def of_item(cls, item: SetupItem | None) -> DeskSetup:
        """Return what is stored, or the setup of a desk that has changed nothing."""
        if item is None:
            return cls()
        return cls(int(item.version), {name: unpack(getattr(item, name)) for name in PARTS})

    def part(self, name: str) -> str:
        """Return the text of one part, "" where it is empty."""
        return self.parts.get(name, "")


def of(tenant: TenantContext) -> DeskSetup:
    """Return the setup of a desk as its context has it: no read in a request of a page, else the first time one
    GetItem."""
    if NAME not in tenant.items:
        tenant.items[NAME] = tenant.repository.get(SetupItem, keys.tenant, sort=SETUP)
    found = tenant.items[NAME]
    if not isinstance(found, DeskSetup):
        found = tenant.items[NAME] = DeskSetup.of_item(found)
    return found


def read(tenant: TenantContext) -> DeskSetup:
    """Return the setup of a desk as of now, for somebody who changes it: one consistent GetItem."""
    return DeskSetup.of_item(tenant.repository.get(SetupItem, keys.tenant, sort=SETUP, consistent=True))


def change(
    tenant: TenantContext,
    part: str,
    text: str,
    *,
    seen: DeskSetup,
    by: Actor,
    told: tuple[Mapping[str, Any], Mapping[str, Any]],
    also: Callable[[Transaction], None] = lambda transaction: None,
) -> None:
    """Store the text of one part, "" for none, with an audit row of what was before and after (`told`). `also` adds to
    the transaction.

    It holds only for the setup that was `seen`. Raises Conflict where that has changed since, or the actor's role has,
    and Invalid where all parts together are larger than ROOM.
    """
    packed = pack(text) if text else b""
    others = sum(len(pack(other)) for name, other in seen.parts.items() if name != part and other)
    if (needed := others + len(packed)) > ROOM:
        raise Invalid(
            _(
                "This needs %(needed)s bytes, and the settings that all pages of a desk read have %(room)s together. "
                "Shorten names, help texts, choices or templates."
            )
            % {"needed": f"{needed:,}", "room": f"{ROOM:,}"}
        )
    attribute = SetupItem.get_attributes()[part]
    action = attribute.set(packed) if packed else attribute.remove()
    is_seen = SetupItem.version == seen.version if seen.version else SetupItem.tenant_id.does_not_exist()
    transaction = Transaction()
    item = SetupItem(tenant.tenant_id, SETUP)
    transaction.update(item, [action, SetupItem.version.set(seen.version + 1)], condition=is_seen)
    also(transaction)
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_SETUP_CHANGED, by, *told)
    recording.commit(transaction, [entry], refused=Conflict(_(CHANGED)))
    tenant.items.pop(NAME, None)


COLOURS: Final = "tag_colours"
MOST_COLOURED: Final = 100  # coloured tags of a desk
COLOUR_NAMES: Final = (
    gettext_noop("Teal"),
    gettext_noop("Blue"),
    gettext_noop("Violet"),
    gettext_noop("Pink"),
    gettext_noop("Red"),
    gettext_noop("Orange"),
    gettext_noop("Olive"),
    gettext_noop("Green"),
)


def hues(tenant: TenantContext, tags: Iterable[str]) -> tuple[str, ...]:
    """Return the hue of each of these tags, "" for one without a colour."""
    colours = colours_of(tenant)
    return tuple([colours.get(tag, "") for tag in tags]) if colours else ()


def colours_of(tenant: TenantContext) -> Mapping[str, str]:
    """Return the hues of all coloured tags by their names; no read in a request of a page."""
    text = of(tenant).part(COLOURS)
    return _parsed(text) if text else {}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Mapping[str, str]:
    return {str(tag): str(hue) for tag, hue in json.loads(text).items()}


def change_colours(tenant: TenantContext, changes: Mapping[str, str], *, by: Actor) -> bool:
    """Give tags these hues, "" for none, and tell whether that changed anything. Raises Invalid, and Conflict where
    others change the setup at the same time."""
    if any(hue and hue not in map(str, range(len(COLOUR_NAMES))) for hue in changes.values()):
        raise Invalid(_("There is no such colour."), field="colour")
    seen = read(tenant)
    before = dict(_parsed(seen.part(COLOURS))) if seen.part(COLOURS) else {}
    after = {tag: hue for tag, hue in (before | dict(changes)).items() if hue}
    if after == before:
        return False
    if len(after) > MOST_COLOURED:
        raise Invalid(_("Up to %(most)s tags can have a colour.") % {"most": MOST_COLOURED}, field="colour")
    text = json.dumps(after, ensure_ascii=False, separators=(",", ":"), sort_keys=True) if after else ""
    told = tuple({f"colour of {tag}": _name(of.get(tag, "")) for tag in changes} for of in (before, after))
    change(tenant, COLOURS, text, seen=seen, by=by, told=(told[0], told[1]))
    return True


def _is_stored_text(text: str) -> bool:
    return all(hue in map(str, range(len(COLOUR_NAMES))) for hue in _parsed(text).values())


declare_part(COLOURS, _is_stored_text)


browsing.declare_values(browsing.codes({name: name for name in (*COLOUR_NAMES, "none")}), "colour of ")


def _name(hue: str) -> str:
    return COLOUR_NAMES[int(hue)] if hue else "none"


# --- groups ---

# Which groups a desk has: their members and the changes of groups are in tickets/groups. A group that was deleted stays
# here under its id, so that the tickets which had it remain readable.
GROUPS: Final = "groups"


class Assigning(StrEnum):
    """The way by which tickets of a group get an assignee."""

    HAND = "hand"
    TURN = "turn"
    LOAD = "load"


@dataclass(frozen=True)
class AgentGroup:
    """A group of agents. New tickets for which no group is given come into the default one.

    `assigns` is an Assigning, or a word of a newer version, which is as HAND here; `more` is what a newer version has
    stored of it, and is written back as it is.
    """

    id: str
    name: str
    assigns: str = Assigning.HAND.value
    is_default: bool = False
    is_archived: bool = False
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)


@lru_cache(maxsize=512)
def parsed_groups(text: str) -> tuple[AgentGroup, ...]:
    """Read what `written_groups` wrote, "" for nothing. Raises ValueError, TypeError or KeyError for anything else."""
    names = AgentGroup.__dataclass_fields__.keys() - {"more"}
    return tuple(
        AgentGroup(
            **{name: value for name, value in one.items() if name in names},
            more={name: value for name, value in one.items() if name not in names},
        )
        for one in (json.loads(text) if text else ())
    )


def written_groups(groups: Iterable[AgentGroup]) -> str:
    told = [
        {"id": one.id, "name": one.name, "assigns": one.assigns, **one.more}
        | {name: True for name in ("is_default", "is_archived") if getattr(one, name)}
        for one in groups
    ]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True) if told else ""


def _are_stored_groups(text: str) -> bool:
    """Tell whether a text is one that `written_groups` wrote: for rows that are brought in."""
    return all(GROUP_ID.match(one.id) and isinstance(one.name, str) for one in parsed_groups(text))


declare_part(GROUPS, _are_stored_groups)
