"""Forms about the tags of a desk."""

from __future__ import annotations

from typing import Final

from django import forms
from django.utils.translation import gettext_lazy

from tickets.desk_setup.tag_colours import NAMES
from tickets.ticket.fields import TAG_LIMIT

COLOURS: Final = [("", gettext_lazy("None")), *((str(hue), gettext_lazy(name)) for hue, name in enumerate(NAMES))]


class RenameTagForm(forms.Form):
    """The name that a tag gets; that of another tag merges the two."""

    to = forms.CharField(
        label=gettext_lazy("New name"),
        max_length=TAG_LIMIT,
        help_text=gettext_lazy("The name of another tag merges the two."),
        error_messages={"required": gettext_lazy("Enter a name.")},
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )


class ColourForm(forms.Form):
    """The hue of a tag, "" for none."""

    colour = forms.ChoiceField(
        label=gettext_lazy("Colour"),
        required=False,
        choices=COLOURS,
        widget=forms.RadioSelect,
    )
