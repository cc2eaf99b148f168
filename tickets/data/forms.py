"""Check what owners enter who look for a person, or erase one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.errors import Invalid
from tenants.sign_in.forms import UnambiguousAddressField
from tenants.sign_in.stored import folded
from tenants.tenancy.redaction import SecretWords


class PersonForm(forms.Form):
    address = UnambiguousAddressField(
        label=_("E-mail address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
        error_messages={
            "required": _("Enter an e-mail address."),
            "invalid": _("That is not an e-mail address."),
        },
    )


class ErasureForm(forms.Form):
    """Take the address once more, typed by hand, and whether texts are to be changed and files removed."""

    texts = forms.BooleanField(
        label=_("Replace the address in texts, too"),
        required=False,
        help_text=_("In titles, tags, descriptions, comments, and names of keys and endpoints. Names stay there."),
    )
    sent_files = forms.BooleanField(
        label=_("Remove the files that they sent"),
        required=False,
        help_text=_(
            "Their contents and previews are deleted. Their names stay, without the address if you chose that."
        ),
    )
    typed_address = forms.CharField(
        label=_("Type the address to confirm"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, address: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._address = address

    def clean_typed_address(self) -> str:
        try:
            typed = folded(self.cleaned_data["typed_address"])
        except ValueError:
            typed = ""
        if typed != self._address:
            raise forms.ValidationError(_("This is not the address. Type it as it stands above."))
        return typed


class RedactionForm(forms.Form):
    """Take the words that are to be taken out of a ticket, each phrase in a line."""

    words = forms.CharField(
        label=_("Words to take out"),
        help_text=_("One word, phrase or paragraph in each line. Upper and lower case are the same."),
        error_messages={"required": _("Enter the words that are to be taken out.")},
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_words(self) -> SecretWords:
        try:
            return SecretWords.parse(self.cleaned_data["words"])
        except Invalid as error:
            raise forms.ValidationError(error.message) from error
