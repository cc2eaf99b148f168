"""Form about merging tickets."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

_NUMBER: Final = re.compile(r"#?([1-9][0-9]{0,14})")


class NumberField(forms.CharField):
    """The number of a ticket, with or without its sign in front."""

    default_error_messages: ClassVar[Any] = {
        "required": gettext_lazy("Enter the number of a ticket."),
        "number": gettext_lazy("Enter a number, such as 12."),
    }

    def clean(self, value: str | None) -> int:
        found = _NUMBER.fullmatch((super().clean(value) or "").strip())
        if found is None:
            raise ValidationError(self.error_messages["number"], code="number")
        return int(found[1])


class MergeTicketsForm(forms.Form):
    """The ticket that stays. `confirmed` is its number again once both were shown."""

    into = NumberField(
        label=gettext_lazy("Merge into ticket number"),
        max_length=40,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "size": 12}),
    )
    confirmed = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
