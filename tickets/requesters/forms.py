"""Forms about requesters."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django import forms
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tickets.requesters import requester_changes
from tickets.requesters.requester_changes import Details
from tickets.requesters.requesters import NAME_LIMIT, Requester

KNOWN: Final = "requester-known"  # the id of the sentence about who is typed
_OFFERED: Final = "requester-options"


class RequesterInput(forms.TextInput):
    """A text field whose browser offers people while somebody types; the server says beside it who that is."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        completes = {
            "list": _OFFERED,
            "autocomplete": "off",
            "spellcheck": "false",
            "dir": "auto",
            "placeholder": gettext("Name <address>"),
            "hx-get": reverse("tickets:requester_options"),
            "hx-trigger": "input changed delay:150ms, change",
            "hx-target": f"#{_OFFERED}",
            "hx-swap": "innerHTML",
            "hx-sync": "this:replace",
            "hx-push-url": "false",
            "data-quiet": "",
        }
        return super().get_context(name, value, {**completes, **(attrs or {})})


def requester_field(**kwargs: Any) -> forms.CharField:
    """Return the field in which one types a person outside the desk."""
    return forms.CharField(max_length=400, widget=RequesterInput, **kwargs)


class RequesterForm(forms.Form):
    """A new requester, or the values of one. `version` is empty for a new one."""

    name = forms.CharField(
        label=_("Name"), required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"})
    )
    addresses = forms.CharField(
        label=_("Mail addresses"),
        required=False,
        help_text=_("One in each line. Mail goes to the first; letters from each of them are taken as theirs."),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocapitalize": "off"}),
    )
    organisation = forms.CharField(
        label=_("Organisation"),
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto", "data-characters": NAME_LIMIT}),
    )
    language = forms.CharField(
        label=_("Language"),
        required=False,
        help_text=_("A code, such as en, de or pt-BR. Leave it empty if you do not know."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "size": 12}),
    )
    notes = forms.CharField(
        label=_("Notes"),
        required=False,
        help_text=_("For the agents of this desk only."),
        widget=forms.Textarea(attrs={"rows": 5, "dir": "auto", "data-characters": requester_changes.NOTES_LIMIT}),
    )
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)
    request_id = forms.RegexField(
        r"^[0-9a-f]{32}$", required=False, widget=forms.HiddenInput, initial=lambda: uuid.uuid4().hex
    )

    @classmethod
    def of(cls, person: Requester) -> RequesterForm:
        """Return the form that holds a person's values."""
        return cls(
            initial={
                "name": person.name,
                "addresses": "\n".join(person.addresses),
                "organisation": person.organisation,
                "language": person.language,
                "notes": person.notes,
                "version": person.version,
            }
        )

    @property
    def details(self) -> Details:
        """The values as the rules take them."""
        values = self.cleaned_data
        lines = [line.strip() for line in values["addresses"].replace(",", "\n").splitlines()]
        return Details(
            name=values["name"],
            organisation=values["organisation"],
            notes=values["notes"],
            language=values["language"],
            addresses=tuple(line for line in lines if line),
        )


class MergeForm(forms.Form):
    """The other person, who is merged into the one of the page."""

    other = requester_field(
        label=_("The other person"),
        help_text=_("Begin to type a name or an address, or enter an address."),
        error_messages={"required": _("Enter the address of the other person.")},
    )
    confirmed = forms.CharField(required=False, max_length=100, widget=forms.HiddenInput)
