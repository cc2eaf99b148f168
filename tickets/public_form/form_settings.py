"""Read and change the settings of a desk's public form: whether it is open, what it asks for, its texts, its sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from portal.dynamo.store import Wanted
from portal.errors import Invalid
from portal.schema import keys
from portal.web import locales
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.custom_fields.definitions import CustomField, Definitions
from tickets.outside import looks
from tickets.public_form.stored import FORM, FormItem

TEXT_LIMIT: Final = 2000  # characters
MOST_ORIGINS: Final = 20
_SWITCHES: Final = ("is_on", "asks_name", "asks_priority", "takes_files")
_TEXTS: Final = ("intro", "next_steps")
_LISTS: Final = ("origins", "own_fields", "needed_fields")


@dataclass(frozen=True)
class FormSettings:
    """Settings of a public form; the defaults are those of a desk that has changed nothing.

    `own_fields` are the ids of the custom fields that it asks, `needed_fields` those of them that have to be filled in.
    """

    is_on: bool = False
    asks_name: bool = True
    asks_priority: bool = False
    takes_files: bool = True
    intro: str = ""
    next_steps: str = ""
    origins: tuple[str, ...] = ()
    own_fields: tuple[str, ...] = ()
    needed_fields: tuple[str, ...] = ()
    version: int = 0

    @classmethod
    def of(cls, item: FormItem | None) -> FormSettings:
        """Return what is stored, or the defaults where nothing is."""
        if item is None:
            return cls()
        values: dict[str, Any] = {name: getattr(item, name) for name in (*_SWITCHES, *_TEXTS)}
        values |= {name: tuple(getattr(item, name)) for name in _LISTS}
        return cls(**values, version=int(item.version))

    def asked(self, defined: Definitions) -> Iterator[tuple[CustomField, bool]]:
        """Yield the custom fields that the form asks, each with whether it has to be filled in."""
        for one in defined.in_use:
            if one.id in self.own_fields:
                yield one, one.id in self.needed_fields


def wanted(desk: TenantContext) -> Wanted:
    """Name the stored settings, for a page that reads them with other items."""
    return desk.repository.wanted(FormItem, keys.tenant, sort=FORM)


def read(desk: TenantContext) -> FormSettings:
    """Return the settings: one consistent GetItem."""
    return FormSettings.of(_item(desk))


def change(tenant: TenantContext, *, values: Mapping[str, Any], version: int, by: Actor) -> bool:
    """Store settings by the names of `FormSettings`, with an audit row; tell whether that changed anything.

    `version` is that of the settings which the person saw. Raises Invalid, and Conflict where they were changed since.
    """
    after, item = checked(values), _item(tenant)
    now = FormSettings.of(item)
    before = {name: getattr(now, name) for name in after}
    if after == before:
        return False
    looks.store_part(tenant, FormItem(tenant.tenant_id, FORM), item, before, after, version=version, by=by)
    return True


def _item(desk: TenantContext) -> FormItem | None:
    return desk.repository.get(FormItem, keys.tenant, sort=FORM, consistent=True)


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as they are stored. Raises Invalid, with the name of the value."""
    found: dict[str, Any] = {name: bool(values[name]) for name in _SWITCHES}
    unshown = _("This text has characters that no page can show.")
    for name in _TEXTS:
        found[name] = locales.typed_lines(values[name], limit=TEXT_LIMIT, field=name, unshown=unshown)
    found |= {name: tuple(values.get(name, ())) for name in ("own_fields", "needed_fields")}
    return found | {"origins": _origins(values["origins"])}


def _origins(lines: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(_origin(line.strip()) for line in lines if line.strip())
    if len(found) > MOST_ORIGINS:
        raise Invalid(_("Enter at most %(limit)s sites.") % {"limit": MOST_ORIGINS}, field="origins")
    return tuple(found)


def _origin(text: str) -> str:
    """Return the origin of a site's address, for a Content-Security-Policy. Raises Invalid."""
    problem = Invalid(
        _("%(value)s is no address of a site, such as https://www.example.com.") % {"value": text[:80]}, field="origins"
    )
    try:
        parts = urlsplit(text.lower())
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()
    except ValueError:
        raise problem from None
    is_local = host == "localhost" or host.startswith("127.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise problem if parts.scheme != "http" else Invalid(_("Only sites with https can show it."), field="origins")
    labels = host.split(".")
    if (
        parts.username is not None
        or not all(label and label.replace("-", "").isalnum() for label in labels)
        or (len(labels) < 2 and not is_local)
    ):
        raise problem
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")
