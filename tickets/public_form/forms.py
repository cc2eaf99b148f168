"""Take what people outside a desk enter into its form, and what admins enter about it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from portal import plain_text
from portal.errors import Invalid
from portal.web.locales import LANGUAGES
from tickets.custom_fields.definitions import HIDDEN, REQUIRED, SHOWN, Definitions
from tickets.custom_fields.forms import ValueField, use_of_field
from tickets.outside.looks import NAME_LIMIT, PICTURE_BYTES, Looks
from tickets.outside.stored import LooksItem
from tickets.public_form.form_settings import FormSettings
from tickets.requesters import requester_addresses
from tickets.ticket.fields import DESCRIPTION_LIMIT, TITLE_LIMIT, Priority

TRAP: Final = "website"  # a field that no person sees and many programs fill in
_NAME_LIMIT: Final = 80  # characters
_LANGUAGES: Final = dict(settings.LANGUAGES)  # each by its own name
_OWN: Final = "of_"  # begins the name of a choice about a custom field


class GuestForm(forms.Form):
    """A request by somebody outside. Each desk chooses which of the optional fields it has, and of its own ones."""

    email = forms.CharField(
        label=_("Your email address"),
        help_text=_("Our answer goes to this address."),
        widget=forms.EmailInput(attrs={"autocomplete": "email", "spellcheck": "false"}),
    )
    name = forms.CharField(
        label=_("Your name"),
        required=False,
        max_length=_NAME_LIMIT,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    subject = forms.CharField(
        label=_("Subject"), max_length=TITLE_LIMIT, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    body = forms.CharField(label=_("Message"), widget=forms.Textarea(attrs={"rows": 8}))
    priority = forms.ChoiceField(
        label=_("How urgent is it?"),
        required=False,
        choices=[
            ("", _("Not stated")),
            (Priority.LOW, _("It can wait")),
            (Priority.NORMAL, _("Normal")),
            (Priority.HIGH, _("It hinders my work")),
            (Priority.URGENT, _("Nothing works at all")),
        ],
    )

    def __init__(self, settings: FormSettings, defined: Definitions, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, is_asked in (("name", settings.asks_name), ("priority", settings.asks_priority)):
            if not is_asked:
                del self.fields[name]
        own = {one.id: ValueField(one, required=needed, stored="") for one, needed in settings.asked(defined)}
        self.fields |= own
        self._own = tuple(own)

    @property
    def values(self) -> dict[str, Any]:
        """The values as `SentForm` takes them."""
        found = {name: value for name, value in self.cleaned_data.items() if name in self.base_fields}
        return {**found, "custom": {name: self.cleaned_data[name] for name in self._own if self.cleaned_data[name]}}

    def clean_email(self) -> str:
        try:
            return requester_addresses.normal(self.cleaned_data["email"])
        except Invalid:
            raise forms.ValidationError(_("Enter an email address, such as name@example.com.")) from None

    def clean_name(self) -> str:
        return _line(self.cleaned_data["name"])

    def clean_subject(self) -> str:
        return _line(self.cleaned_data["subject"])

    def clean_body(self) -> str:
        text: str = self.cleaned_data["body"].replace("\r\n", "\n").strip()
        if len(text) > DESCRIPTION_LIMIT:
            # Not by max_length, with which browsers cut what is pasted.
            raise forms.ValidationError(
                _("Use at most %(limit)s characters; this has %(count)s."),
                params={"limit": DESCRIPTION_LIMIT, "count": len(text)},
            )
        if plain_text.has_controls(text.replace("\n", " ").replace("\t", " ")):
            raise forms.ValidationError(_("Remove the characters that cannot be shown."))
        return text


def _line(text: str) -> str:
    shown = " ".join(text.split())
    if plain_text.has_controls(shown) or (shown and not plain_text.has_visible_text(shown)):
        raise forms.ValidationError(_("Remove the characters that cannot be shown."))
    return shown


class LooksForm(forms.Form):
    """The looks of a desk's pages for people outside."""

    looks_name = forms.CharField(
        label=_("Name on the pages"),
        required=False,
        max_length=NAME_LIMIT,
        help_text=_("Empty: the name of the desk."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    colour = forms.CharField(
        label=_("Colour"),
        required=False,
        help_text=_("Six digits, such as #0a6a7b. It is made a little darker or lighter where it could not be read."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "#0a6a7b"}),
    )
    language = forms.ChoiceField(
        label=_("Language"),
        choices=[(code, _LANGUAGES.get(code, code)) for code in LANGUAGES],
        help_text=_("Of the texts that you do not write. With ?lang=en or ?lang=de its address has the other one."),
    )
    logo = forms.FileField(
        label=_("Logo"),
        required=False,
        help_text=_("A picture as PNG, JPEG, WebP or GIF. A small copy of it is shown beside the name."),
        widget=forms.FileInput(attrs={"accept": "image/png,image/jpeg,image/webp,image/gif"}),
    )
    no_logo = forms.BooleanField(label=_("Remove the logo"), required=False)
    looks_version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    @classmethod
    def of(cls, looks: Looks, item: LooksItem | None) -> LooksForm:
        return cls(
            initial={
                "looks_name": item.name if item else "",
                "colour": looks.colour,
                "language": looks.language,
                "looks_version": looks.version,
            }
        )

    @property
    def values(self) -> dict[str, str]:
        """The values as `looks.change` takes them, without the logo."""
        data = self.cleaned_data
        return {"name": data["looks_name"], "colour": data["colour"], "language": data["language"]}

    @property
    def picture(self) -> bytes | None:
        """The logo as `looks.change` takes it."""
        chosen = self.cleaned_data["logo"]
        if chosen:
            return bytes(chosen.read(PICTURE_BYTES + 1))
        return b"" if self.cleaned_data["no_logo"] else None


class SettingsForm(forms.Form):
    """The settings of a public form, with a choice for each custom field. `version` is that of the settings shown."""

    is_on = forms.BooleanField(label=_("The form is open to everybody"), required=False)
    asks_name = forms.BooleanField(label=_("Name"), required=False)
    asks_priority = forms.BooleanField(label=_("How urgent it is"), required=False)
    takes_files = forms.BooleanField(label=_("Files"), required=False)
    intro = forms.CharField(
        label=_("Text above the form"),
        required=False,
        help_text=_("In the language of the page. Empty: no text."),
        widget=forms.Textarea(attrs={"rows": 3}),
        strip=False,
    )
    next_steps = forms.CharField(
        label=_("What happens next"),
        required=False,
        help_text=_("Shown once a message was sent. Empty: “We read your message and answer by email.”"),
        widget=forms.Textarea(attrs={"rows": 3}),
        strip=False,
    )
    origins = forms.CharField(
        label=_("Sites that may show the form"),
        required=False,
        help_text=_("One address in each line, such as https://www.example.com. Empty: no other site can show it."),
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)

    def __init__(self, defined: Definitions, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._own = {f"{_OWN}{one.id}": one.id for one in defined.in_use}
        for name, field in zip(self._own, defined.in_use, strict=True):
            self.fields[name] = use_of_field(field.name, self.initial.get(name, HIDDEN))

    @classmethod
    def of(cls, settings: FormSettings, defined: Definitions) -> SettingsForm:
        initial: dict[str, Any] = {name: getattr(settings, name) for name in cls.base_fields}
        own = {f"{_OWN}{one.id}": REQUIRED if needed else SHOWN for one, needed in settings.asked(defined)}
        return cls(defined, initial=initial | own | {"origins": "\n".join(settings.origins)})

    @property
    def own(self) -> list[forms.BoundField]:
        """The choices of the custom fields."""
        return [self[name] for name in self._own]

    @property
    def values(self) -> dict[str, Any]:
        """The values as `form_settings.change` takes them."""
        data = self.cleaned_data
        values = {name: data[name] for name in self.base_fields if name != "version"}
        own = {field_id: data[name] for name, field_id in self._own.items() if data[name] != HIDDEN}
        values |= {"own_fields": [*own], "needed_fields": [one for one, use in own.items() if use == REQUIRED]}
        return values | {"origins": values["origins"].splitlines()}
