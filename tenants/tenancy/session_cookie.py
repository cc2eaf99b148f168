"""Write and read the session cookie: ids under one signature, which say what to read and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.core import signing

PINS: Final = 12  # desks in a cookie, which stays below 1.5 KB; one that fell out is looked up when it is opened again


@dataclass(frozen=True)
class Pin:
    """A desk that this session has opened, and the name in the address that it was opened under.

    `slug` is "" where the cookie is one of a former version, which held the id alone.
    """

    slug: str
    tenant_id: str


@dataclass(frozen=True)
class Ids:
    """The ids of a session cookie: session, account and the pinned desks, the last used one first."""

    session_key: str
    user_id: str
    pins: tuple[Pin, ...] = ()

    @property
    def tenant_id(self) -> str:
        """Return the desk that was used last, "" before one is chosen."""
        return self.pins[0].tenant_id if self.pins else ""

    def tenant_at(self, path: str) -> str:
        """Return the pinned desk that an address names, else the one used last."""
        named = first_word(path)
        return next((pin.tenant_id for pin in self.pins if named and pin.slug == named), self.tenant_id)


def first_word(path: str) -> str:
    """Return where an address names its desk, if it names one: no other address begins with a desk's name."""
    return path.lstrip("/").partition("/")[0]


def used(pins: tuple[Pin, ...], slug: str, tenant_id: str) -> tuple[Pin, ...]:
    """Return the pins with this desk as the last used one. It stays known by a name that it had before."""
    pin = Pin(slug, tenant_id)
    return (pin, *(other for other in pins if other.slug != slug))[:PINS]


def _signer() -> signing.Signer:
    # Made at use: the key may be missing while settings are being checked, and differs between tests.
    return signing.Signer(salt="pooldesk.session-cookie")


def write(ids: Ids) -> str:
    pins = [f"{pin.slug}~{pin.tenant_id}" for pin in ids.pins]
    return _signer().sign(".".join((ids.session_key, ids.user_id, *pins)))


def read(value: str) -> Ids | None:
    """Return the ids, or None for a cookie that we did not sign."""
    if len(value) > 1500:
        return None
    try:
        session_key, user_id, *pins = _signer().unsign(value).split(".")
    except (signing.BadSignature, ValueError):
        return None
    slugs_and_ids = (pin.rpartition("~") for pin in pins if pin)
    return Ids(session_key, user_id, tuple(Pin(slug, tenant_id) for slug, _, tenant_id in slugs_and_ids))
