"""Keep how a person reads pages: zone, forms of dates and numbers, first day of the week, and language.

A profile is part of the account, which each request reads anyway. Copies are with the memberships, for those who write
to members without reading accounts: tenants/membership/own_profile.py.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from portal import zones
from portal.errors import Invalid
from portal.web import locales
from portal.web.locales import Locale

DESK: Final = "desk"  # as a zone: that of the desk, whatever the browser says
# Each language is named in itself, and so not marked.
LANGUAGES: Final[dict[str, str | Promise]] = {"": gettext_lazy("As the desk has it"), **dict(settings.LANGUAGES)}
WEEK_STARTS: Final = {"0": gettext_lazy("Monday"), "5": gettext_lazy("Saturday"), "6": gettext_lazy("Sunday")}
DATE_FORMS: Final[dict[str, str | Promise]] = {
    "words": gettext_lazy("26 Nov 2026, 15:04"),
    "dots": "26.11.2026, 15:04",
    "slashes": "26/11/2026, 15:04",
    "us": "11/26/2026, 3:04 pm",
    "iso": "2026-11-26, 15:04",
}
NUMBER_FORMS: Final = {
    "": gettext_lazy("As the language has it"),
    "comma": "1,234.5",
    "dot": "1.234,5",
    "space": "1 234,5",
    "apostrophe": "1\u2019234.5",
}

_CHOICES: Final[Mapping[str, Collection[str]]] = {
    "date_form": DATE_FORMS,
    "number_form": NUMBER_FORMS,
    "first_weekday": WEEK_STARTS,
    "language": LANGUAGES,
}


@dataclass(frozen=True)
class Profile:
    """Hold the choices of a person.

    `zone` is "" until one is chosen or found, and DESK for that of the desk; `language` is "" for that of the desk, and
    `number_form` for that of the language; `first_weekday` is 0 for Monday.
    """

    zone: str = ""
    date_form: str = "words"
    number_form: str = ""
    first_weekday: str = "0"
    language: str = ""

    @classmethod
    def parse(cls, text: str | None) -> Profile:
        """Read what `str` makes; None is a person who has chosen nothing. Values of a later version are left out."""
        return _parsed(text) if text else _NONE

    def __str__(self) -> str:
        """Write what differs from the profile of somebody who has chosen nothing, "" where nothing does."""
        chosen = {name: value for name, value in asdict(self).items() if value != getattr(_NONE, name)}
        return json.dumps(chosen, separators=(",", ":"), sort_keys=True) if chosen else ""

    def in_zone(self, zone: str) -> Profile:
        return replace(self, zone=zone)

    def check(self) -> None:
        """Raise Invalid, with the field, for a value that is no choice."""
        if self.zone not in ("", DESK) and self.zone not in zones.names():
            raise Invalid(gettext("Choose a time zone from the list."), field="zone")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise Invalid(gettext("Choose a value from the list."), field=name)

    @property
    def own_zone(self) -> str:
        """Return the zone that is the person's own, "" where that of the desk holds."""
        return "" if self.zone == DESK else self.zone

    def locale(self, desk_zone: str = "", language: str = locales.ENGLISH) -> Locale:
        """Return how pages of a desk in this zone, "" for one that has chosen none, are written for the person.

        `language` is that of a person who has chosen none.
        """
        return _locale(
            self.own_zone or desk_zone,
            self.date_form,
            self.number_form,
            self.first_weekday,
            self.language or language or locales.ENGLISH,
        )


_NONE: Final = Profile()


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Profile:
    told = json.loads(text)
    known = {name: value for name, value in told.items() if value in _CHOICES.get(name, ())}
    zone = told.get("zone", "")
    return Profile(zone=zone if zone == DESK or zone in zones.names() else "", **known)


@lru_cache(maxsize=1024)
def _locale(zone: str, date_form: str, number_form: str, first_weekday: str, language: str) -> Locale:
    return Locale(zone or zones.UTC_NAME, date_form, number_form, int(first_weekday), not zone, language)
