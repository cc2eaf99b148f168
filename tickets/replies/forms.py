"""Take what admins enter about the mail of their desk."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from tenants.audit_trail import browsing
from tickets.replies import mail_settings
from tickets.replies.mail_settings import MailSettings
from tickets.replies.stored import HISTORY_CHOICES, LINK_DAYS_CHOICES

_WORDS: Final = {0: _("None"), 1: _("The last message")}
browsing.declare_values(browsing.codes({str(number): words for number, words in _WORDS.items()}), "history")
_ONE_A_LINE: Final = {"rows": 3, "spellcheck": "false"}


class MailForm(forms.Form):
    """The settings of a desk's mail. `version` is that of the settings that the form showed."""

    sender_name = forms.CharField(
        label=_("Name of the sender"),
        required=False,
        help_text=_("As your customers see it. Empty: the name of the desk."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    signature = forms.CharField(
        label=_("Signature"),
        required=False,
        help_text=_("Below each letter. Empty: the name of the desk."),
        widget=forms.Textarea(attrs={"rows": 4}),
        strip=False,
    )
    history = forms.TypedChoiceField(
        label=_("Earlier messages that a letter quotes"),
        coerce=int,
        choices=[
            (number, _WORDS.get(number, format_lazy(_("The last {count} messages"), count=number)))
            for number in HISTORY_CHOICES
        ],
        help_text=_("Internal notes are never among them."),
    )
    acknowledges = forms.BooleanField(label=_("Answer each new request with an acknowledgement"), required=False)
    acknowledgement = forms.CharField(
        label=_("Text of the acknowledgement"),
        required=False,
        help_text=format_lazy(
            _("Empty: “{text}” Automatic mail is never answered."), text=_(mail_settings.ACKNOWLEDGEMENT)
        ),
        widget=forms.Textarea(attrs={"rows": 3}),
        strip=False,
    )
    link_days = forms.TypedChoiceField(
        label=_("How long a link to a ticket works"),
        coerce=int,
        choices=[(days, format_lazy(_("{count} days"), count=days)) for days in LINK_DAYS_CHOICES],
        help_text=_("Each letter has a link to its ticket, where the requester reads and answers without a password."),
    )
    addresses = forms.CharField(
        label=_("Your own addresses that are forwarded here"),
        required=False,
        help_text=_("One in each line. Letters never go to them in copy, which would send them round in a circle."),
        widget=forms.Textarea(attrs=_ONE_A_LINE),
    )
    blocked = forms.CharField(
        label=_("Blocked senders"),
        required=False,
        help_text=_("One address in each line, or @example.com for a whole domain. Their letters become no tickets."),
        widget=forms.Textarea(attrs=_ONE_A_LINE),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    @classmethod
    def of(cls, settings: MailSettings) -> MailForm:
        initial: dict[str, Any] = {name: getattr(settings, name) for name in cls.base_fields}
        initial |= {name: "\n".join(getattr(settings, name)) for name in ("addresses", "blocked")}
        return cls(initial=initial)

    @property
    def values(self) -> dict[str, Any]:
        """The values as `mail_settings.change` takes them."""
        values = {name: value for name, value in self.cleaned_data.items() if name != "version"}
        return values | {name: values[name].splitlines() for name in ("addresses", "blocked")}


class LinksForm(forms.Form):
    """The order to end all links of requesters. `version` is that of the settings that the page showed."""

    version = forms.IntegerField(min_value=0)


class SenderForm(forms.Form):
    """The address of its own that a desk sends from."""

    domain_sender = forms.CharField(
        label=_("Send from"),
        required=False,
        help_text=_("An address of your own domain, such as support@example.com. Empty: the address of the desk."),
        widget=forms.TextInput(attrs={"inputmode": "email", "autocomplete": "off", "spellcheck": "false"}),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    @classmethod
    def of(cls, settings: MailSettings) -> SenderForm:
        return cls(initial={"domain_sender": settings.domain_sender, "version": settings.version})
