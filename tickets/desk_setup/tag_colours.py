"""Give tags of a desk colours, which stand in its setup: a part that says for each coloured tag its hue.

A hue is a number of the palette in static/css/variables.css, whose pairs are checked for contrast in both schemes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.errors import Invalid
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.desk_setup import setup
from tickets.desk_setup.stored import declare_part

PART: Final = "tag_colours"
MOST: Final = 100  # coloured tags of a desk
NAMES: Final = (
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
    colours = of(tenant)
    return tuple([colours.get(tag, "") for tag in tags]) if colours else ()


def of(tenant: TenantContext) -> Mapping[str, str]:
    """Return the hues of all coloured tags by their names; no read in a request of a page."""
    text = setup.of(tenant).part(PART)
    return _parsed(text) if text else {}


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Mapping[str, str]:
    return {str(tag): str(hue) for tag, hue in json.loads(text).items()}


def change(tenant: TenantContext, changes: Mapping[str, str], *, by: Actor) -> bool:
    """Give tags these hues, "" for none, and tell whether that changed anything. Raises Invalid, and Conflict where
    others change the setup at the same time."""
    if any(hue and hue not in map(str, range(len(NAMES))) for hue in changes.values()):
        raise Invalid(_("There is no such colour."), field="colour")
    seen = setup.read(tenant)
    before = dict(_parsed(seen.part(PART))) if seen.part(PART) else {}
    after = {tag: hue for tag, hue in (before | dict(changes)).items() if hue}
    if after == before:
        return False
    if len(after) > MOST:
        raise Invalid(_("Up to %(most)s tags can have a colour.") % {"most": MOST}, field="colour")
    text = json.dumps(after, ensure_ascii=False, separators=(",", ":"), sort_keys=True) if after else ""
    told = tuple({f"colour of {tag}": _name(of.get(tag, "")) for tag in changes} for of in (before, after))
    setup.change(tenant, PART, text, seen=seen, by=by, told=(told[0], told[1]))
    return True


def _is_stored_text(text: str) -> bool:
    return all(hue in map(str, range(len(NAMES))) for hue in _parsed(text).values())


declare_part(PART, _is_stored_text)


def _name(hue: str) -> str:
    return NAMES[int(hue)] if hue else "none"
