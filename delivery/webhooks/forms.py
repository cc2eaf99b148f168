"""Check what admins enter about endpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from delivery.webhooks import endpoints, safe_addresses
from delivery.webhooks.endpoints import EndpointChoice
from delivery.webhooks.stored import EndpointItem
from portal import clock
from portal.errors import Invalid
from portal.schema import keys
from portal.web import locales


class EndpointForm(forms.Form):
    """Take the address of an endpoint and what it wants to be told. `choice` is what the form holds, once it is valid.

    A new endpoint has a `request_id`, so that a form that is sent twice makes one; an existing one the `version` that
    the form showed.
    """

    url = forms.CharField(
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("An https:// address that can be reached from the internet."),
        error_messages={"required": gettext_lazy("Enter an address.")},
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(label=gettext_lazy("Description"), required=False)
    event_types = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": gettext_lazy("Choose at least one event type."),
            "invalid_choice": gettext_lazy("There is no event type “%(value)s”."),
        },
    )
    request_id = forms.CharField(required=False, widget=forms.HiddenInput)
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    choice: EndpointChoice

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = '<span><span translate="no">{}</span>: {}</span>'  # one item beside its box
        choices = [(kind.name, format_html(named, kind.name, _(kind.summary))) for kind in endpoints.offered()]
        self.fields["event_types"].choices = choices  # type: ignore[attr-defined]  # a MultipleChoiceField

    @classmethod
    def of(cls, endpoint: EndpointItem) -> EndpointForm:
        values = {"url": endpoint.url, "description": endpoint.description, "event_types": endpoint.event_types}
        return cls(initial=values | {"version": int(endpoint.version)})

    def clean_request_id(self) -> str:
        request_id: str = self.cleaned_data["request_id"]
        if request_id and not keys.TENANT_ID.match(request_id):
            raise forms.ValidationError(_("This form is damaged. Open it again."))
        return request_id

    def clean(self) -> None:
        if self.errors:
            return
        try:
            self.choice = EndpointChoice(
                url=self.cleaned_data["url"],
                event_types=tuple(self.cleaned_data["event_types"]),
                description=self.cleaned_data["description"],
            )
        except Invalid as error:
            self.add_error(error.field, error.message)

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            endpoints.read_target(url)
        except Invalid as error:
            raise forms.ValidationError(error.message) from error
        return url[: safe_addresses.URL_LIMIT]


class SendSinceForm(forms.Form):
    """Take the moment, in the zone of the reader, from which on deliveries are sent again. A stamp is in UTC."""

    since = forms.DateTimeField(
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%fZ"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        error_messages={
            "invalid": gettext_lazy("Enter a day and a time."),
            "required": gettext_lazy("Enter a day and a time."),
        },
    )
    also_answered = forms.BooleanField(label=gettext_lazy("Also those that were delivered"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["since"].label = _("Since (%(zone)s)") % {"zone": locales.current().zone}

    def clean_since(self) -> datetime:
        since: datetime = self.cleaned_data["since"]
        if self.data.get("since", "").endswith("Z"):
            return since
        try:
            return since.replace(tzinfo=clock.zone_of(locales.current().zone)).astimezone(UTC)
        except OverflowError as error:  # of the first and the last year a zone leads out
            raise forms.ValidationError(_("Enter a day and a time.")) from error


class VersionForm(forms.Form):
    version = forms.IntegerField(min_value=1)
