"""Check what admins enter about API keys."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock
from portal.schema import keys
from portal.web import locales
from tenants.api_keys import scopes
from tenants.api_keys.key_changes import KeyChoice, KeyChoiceInvalid
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_GRACES = {
    "0": gettext_lazy("not at all: it ends at once"),
    "1": gettext_lazy("for an hour"),
    "24": gettext_lazy("for a day"),
    "168": gettext_lazy("for a week"),
}


def _day_field(label: _StrPromise) -> forms.DateField:
    return forms.DateField(
        label=label,
        required=False,
        help_text=gettext_lazy(
            "The key works until this day ends in your time zone. Without a day it works until it is revoked."
        ),
        error_messages={"invalid": gettext_lazy("Enter a day.")},
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )


def _day_of(stamp: str) -> date:
    """Return the day of a stored moment in the reader's zone."""
    return locales.current().local(clock.parse(stamp)).date()


def _end_of(day: date | None, *, key: ApiKeyItem | None = None) -> datetime | None:
    """Return the end of a day, or the moment at which the key ends already where that is on this day."""
    if day is None:
        return None
    ends = clock.parse(key.expires_at) if key and key.expires_at else None
    locale = locales.current()
    if ends and locale.local(ends).date() == day:
        return ends
    return clock.day_ends(day, locale.zone)


class KeyForm(forms.Form):
    """Take what a key is for and what it may do. `choice` is what the form holds, once it is valid.

    A new key has a `request_id`, so that a form that is sent twice makes one; an existing one the `version` that the
    form showed.
    """

    name = forms.CharField(
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("What the key is for. Histories show it as who did something."),
        error_messages={"required": gettext_lazy("Enter a name.")},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        help_text=gettext_lazy("What the key may do. Choose no more than its system needs."),
        choices=[(scope.value, format_lazy("{} ({})", gettext_lazy(scope.summary), scope.value)) for scope in Scope],
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": gettext_lazy("Choose at least one scope."),
            "invalid_choice": gettext_lazy("There is no scope “%(value)s”."),
        },
    )
    expires_on = _day_field(gettext_lazy("Last day"))
    addresses = forms.CharField(
        label=gettext_lazy("Network addresses"),
        required=False,
        help_text=gettext_lazy(
            "From where it may be used: one address or network per line, such as 203.0.113.0/24. "
            "Without any it may be used from everywhere."
        ),
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    origins = forms.CharField(
        label=gettext_lazy("Origins"),
        required=False,
        help_text=gettext_lazy(
            "Pages whose scripts may use it, one per line, such as https://app.example.com. "
            "Whoever opens such a page can read the key. Without any, no browser may use it."
        ),
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    request_id = forms.CharField(required=False, widget=forms.HiddenInput)
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    choice: KeyChoice

    def __init__(self, *args: Any, key: ApiKeyItem | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._key = key

    @classmethod
    def of(cls, key: ApiKeyItem) -> KeyForm:
        values = {
            "name": key.name,
            "scopes": key.scopes,
            "expires_on": _day_of(key.expires_at) if key.expires_at else None,
            "addresses": "\n".join(key.addresses),
            "origins": "\n".join(key.origins),
            "version": int(key.version),
        }
        return cls(initial=values)

    def clean_name(self) -> str:
        return " ".join(self.cleaned_data["name"].split())

    def clean_request_id(self) -> str:
        request_id: str = self.cleaned_data["request_id"]
        if request_id and not keys.TENANT_ID.match(request_id):
            raise forms.ValidationError(_("This form is damaged. Open it again."))
        return request_id

    def clean(self) -> None:
        fields = self.cleaned_data
        try:
            self.choice = KeyChoice(
                name=fields.get("name", ""),
                scopes=scopes.named(fields.get("scopes", ())),
                expires_at=_end_of(fields.get("expires_on"), key=self._key),
                addresses=_lines(fields.get("addresses", "")),
                origins=_lines(fields.get("origins", "")),
            )
        except KeyChoiceInvalid as error:
            # What a field itself has refused was left out above, and has its message.
            refused = set(self.errors)
            for fault in error.faults:
                if fault.field not in refused:
                    self.add_error(fault.field, fault.message)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in re.split(r"[\n,;]", text))))


class RollForm(forms.Form):
    """Take for how long the old key still works, and how long the new one will. `version` is the old one's."""

    grace = forms.ChoiceField(
        label=gettext_lazy("The old key still works"),
        initial="24",
        choices=_GRACES.items(),
        error_messages={
            "required": gettext_lazy("Choose one of these."),
            "invalid_choice": gettext_lazy("Choose one of these."),
        },
    )
    expires_on = _day_field(gettext_lazy("Last day of the new key"))
    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)

    @classmethod
    def of(cls, key: ApiKeyItem) -> RollForm:
        """Return the form that gives a key's successor as many days as the key had."""
        last = None
        if key.expires_at:
            # By days, as the form counts: the last day is a whole one, and by hours each successor would get one more.
            last = _day_of(clock.stamp()) + (_day_of(key.expires_at) - _day_of(key.created_at))
        return cls(initial={"grace": "24", "expires_on": last, "version": int(key.version)})

    @property
    def chosen_grace(self) -> timedelta:
        """Return for how long the old key still works."""
        return timedelta(hours=int(self.cleaned_data["grace"]))

    @property
    def chosen_end(self) -> datetime | None:
        """Return when the new key ends, None where it does not."""
        return _end_of(self.cleaned_data["expires_on"])
