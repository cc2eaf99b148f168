"""Read and change how a desk's pages for people outside look: name, colour and language.

Source of the colours: WCAG 2.2, 1.4.3 (4.5:1 for text) and the definitions of relative luminance and contrast ratio.
"""

from __future__ import annotations

import base64
import colorsys
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.store import Transaction, Wanted
from portal.errors import Conflict, Invalid
from portal.plain_text import file_size
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.attachments import thumbnail
from tickets.outside.stored import COLOUR, LANGUAGES, LOGO, LOOKS, LogoItem, LooksItem

LEAST: Final = 4.6  # a little more than 4.5, which rounding may lose
_STEP: Final = 0.01
# The backgrounds of a page that are hardest to read on; see static/css/variables.css.
_LIGHT: Final = "#ecf1f1"
_DARK: Final = "#1a2427"
_INKS: Final = ("#ffffff", "#0e1416")


@dataclass(frozen=True)
class PageStyle:
    """A style sheet that sets a page's colour, and its source for a Content-Security-Policy."""

    css: str
    source: str


@lru_cache(maxsize=1024)
def style(colour: str) -> PageStyle:
    """Return the style sheet for a colour, such as #0a6a7b. One that cannot be read is moved, and keeps its hue."""
    light, dark = readable(colour, on=_LIGHT), readable(colour, on=_DARK)
    css = f":root{{{_variables(light)}}}@media screen and (prefers-color-scheme:dark){{:root{{{_variables(dark)}}}}}"
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return PageStyle(css, f"'sha256-{digest}'")


def readable(colour: str, *, on: str) -> str:
    """Return the nearest lightness of a colour that can be read on a background."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_rgb(colour))
    step = -_STEP if _luminance(on) > 0.5 else _STEP
    while contrast(colour, on) < LEAST and 0 < lightness + step < 1:
        lightness += step
        colour = _hex(colorsys.hls_to_rgb(hue, lightness, saturation))
    return colour


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _variables(colour: str) -> str:
    ink = max(_INKS, key=lambda one: contrast(one, colour))
    # Where the pointer is, the colour moves away from its ink, so that its text stays readable.
    hue, lightness, saturation = colorsys.rgb_to_hls(*_rgb(colour))
    away = max(0.0, lightness - 0.06) if ink == _INKS[0] else min(1.0, lightness + 0.06)
    hover = _hex(colorsys.hls_to_rgb(hue, away, saturation))
    values = {"accent": colour, "accent-hover": hover, "on-accent": ink, "focus": colour, "accent-line": colour}
    return ";".join(f"--{name}:{value}" for name, value in values.items()) + ";--accent-soft:var(--sunken)"


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red / 255, green / 255, blue / 255


def _hex(rgb: tuple[float, float, float]) -> str:
    return "#" + bytes(round(part * 255) for part in rgb).hex()


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(colour)]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


NAME_LIMIT: Final = 80  # characters
PICTURE_BYTES: Final = 1_000_000  # of a picture that becomes a logo
LOGO_BYTES: Final = 60_000  # of the logo
_CHANGED: Final = gettext_noop("Somebody else has just changed these settings. Please check and try again.")


@dataclass(frozen=True)
class Looks:
    """The looks of a desk's pages. `name` is what they call the desk; `colour` is "" for the portal's own.

    `logo` is the digest of the logo, "" without one, which is served at the address of `slug`.
    """

    name: str
    colour: str = ""
    language: str = LANGUAGES[0]
    logo: str = ""
    version: int = 0
    slug: str = ""

    @classmethod
    def of(cls, desk: TenantContext, item: LooksItem | None) -> Looks:
        """Return what is stored, or the looks of a desk that has changed nothing."""
        if item is None:
            return cls(desk.name, slug=desk.slug)
        name, version = item.name or desk.name, int(item.version)
        return cls(name, item.colour, item.language, item.logo, version, desk.slug)

    @property
    def style(self) -> PageStyle | None:
        return style(self.colour) if self.colour else None


def wanted(desk: TenantContext) -> Wanted:
    """Name the stored looks, for a page that reads them with other items by `repository.get_all`."""
    return desk.repository.wanted(LooksItem, keys.tenant, sort=LOOKS)


def looks_of(desk: TenantContext) -> Looks:
    """Return the looks of a desk: one GetItem. A page that reads more uses `wanted`."""
    return Looks.of(desk, desk.repository.get(LooksItem, keys.tenant, sort=LOOKS))


def change(
    tenant: TenantContext, *, values: Mapping[str, str], version: int, by: Actor, logo: bytes | None = None
) -> bool:
    """Store name, colour and language, with an audit row; tell whether that changed anything.

    `logo` is a picture as somebody sent it, b"" to have none, None to leave it as it is. `version` is that of the looks
    which the person saw. Raises Invalid, and Conflict where they were changed since.
    """
    item = tenant.repository.get(LooksItem, keys.tenant, sort=LOOKS, consistent=True)
    names = ("name", "colour", "language", "logo")
    stored = {name: getattr(item, name) for name in names} if item else {}
    before = {"name": "", "colour": "", "language": LANGUAGES[0], "logo": ""} | stored
    after, transaction = before | _checked(values), Transaction()
    if logo is not None:
        made = _made_anew(logo) if logo else ""
        after["logo"] = keys.digest(made) if made else ""
        content: Any = LogoItem.content
        transaction.update(LogoItem(tenant.tenant_id, LOGO), [content.set(made) if made else content.remove()])
    if after == before:
        return False
    empty = LooksItem(tenant.tenant_id, LOOKS)
    store_part(tenant, empty, item, before, after, version=version, by=by, transaction=transaction)
    return True


def _made_anew(picture: bytes) -> str:
    """Return a small picture of one that somebody sent, in base64. Raises Invalid for what is none."""
    problem = Invalid(_("Choose a picture as PNG, JPEG, WebP or GIF."), field="logo")
    if len(picture) > PICTURE_BYTES:
        raise Invalid(_("Choose a picture of at most %(value)s.") % {"value": file_size(PICTURE_BYTES)}, field="logo")
    try:
        made = thumbnail.make(picture)
    except TimeoutError:
        raise Invalid(_("The picture could not be read in time. Try again in a moment."), field="logo") from None
    if made is None:
        raise problem
    if len(made.content) > LOGO_BYTES:
        raise Invalid(_("This picture has too many details for a logo. Choose a simpler one."), field="logo")
    return base64.b64encode(made.content).decode()


def logo_of(desk: TenantContext) -> bytes | None:
    """Return the logo of a desk as WebP, None without one: one GetItem."""
    item = desk.repository.get(LogoItem, keys.tenant, sort=LOGO)
    return base64.b64decode(item.content) if item and item.content else None


def store_part(
    tenant: TenantContext,
    empty: Any,
    now: Any,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    version: int,
    by: Actor,
    transaction: Transaction | None = None,
) -> None:
    """Write attributes of one of the desk's settings items, with an audit row. Raises Conflict.

    `now` is the item as stored, None where there is none yet; `empty` is a new one with the same key. The members of a
    `transaction` are written with it.
    """
    stored_version = int(now.version) if now else 0
    if stored_version != version:
        raise Conflict(_(_CHANGED))
    model = type(empty)
    attributes = model.get_attributes()
    changed = {name: value for name, value in after.items() if value != before[name]}
    actions = [attributes[name].set(list(v) if isinstance(v, tuple) else v) for name, v in changed.items()]
    actions.append(model.version.set(stored_version + 1))
    is_seen = model.version == stored_version if stored_version else model.tenant_id.does_not_exist()
    transaction = transaction or Transaction()
    transaction.update(empty, actions, condition=is_seen)
    member_changes.require_role(transaction, tenant)
    rows = [{name.replace("_", " "): _told(values[name]) for name in changed} for values in (before, after)]
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_OUTSIDE_CHANGED, by, *rows)
    recording.commit(transaction, [entry], refused=Conflict(_(_CHANGED)))


def _told(value: Any) -> object:
    return ", ".join(value) if isinstance(value, tuple | list) else value


def _checked(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values as they are stored. Raises Invalid, with the name of the value."""
    name = " ".join(plain_text.without_controls(values["name"], limit=NAME_LIMIT + 1).split())
    if len(name) > NAME_LIMIT:
        raise Invalid(_("Use at most %(limit)s characters.") % {"limit": NAME_LIMIT}, field="name")
    colour = values["colour"].strip().lower()
    if colour and not re.match(COLOUR, colour):
        raise Invalid(_("Enter a colour as six digits, such as #0a6a7b."), field="colour")
    if values["language"] not in LANGUAGES:
        raise Invalid(_("Choose a language from the list."), field="language")
    return {"name": name, "colour": colour, "language": values["language"]}
