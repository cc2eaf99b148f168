"""Check the settings of a desk, and the name that confirms its closing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tenants.lifecycle import desk_settings
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import ZONE


class DeskForm(forms.Form):
    """Take a tenant's name and slug."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=80, show_hidden_initial=True)
    slug = forms.SlugField(
        label=gettext_lazy("Short name"),
        max_length=40,
        show_hidden_initial=True,
        help_text=gettext_lazy("Lowercase letters, digits and hyphens. It appears in web addresses."),
        error_messages={"invalid": gettext_lazy(tenant_directory.SLUG_RULE)},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Browsers cut pasted text to the attribute without a word; a form that is refused loses nothing.
        for field in self.fields.values():
            field.widget.attrs.pop("maxlength")


class SignInDemandForm(forms.Form):
    """Take whether members need a second factor."""

    demanded = forms.BooleanField(
        label=gettext_lazy("Members need a second factor"),
        required=False,
        show_hidden_initial=True,
        help_text=gettext_lazy(
            "Who has none is led to add one at the next click, and does not get into the desk before. API keys "
            "go on working."
        ),
    )


class DefaultsForm(forms.Form):
    """Take defaults."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for default in desk_settings.declared_defaults():
            # The names of zones are the same in every language.
            widget = forms.Select(attrs={"translate": "no"} if default.name == ZONE else {})
            choice = forms.ChoiceField(label=str(default.label), choices=default.choices, required=False, widget=widget)
            choice.show_hidden_initial = True
            self.fields[default.name] = choice

    def clean(self) -> dict[str, str]:
        return {name: value for name, value in self.cleaned_data.items() if value}


class CloseForm(forms.Form):
    """Take the desk's name, typed by hand, and the reason."""

    typed_name = forms.CharField(
        label=gettext_lazy("Name of the desk"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=300,
        help_text=gettext_lazy("For the audit trail. You can leave it empty."),
    )

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = name

    def clean_typed_name(self) -> str:
        typed = " ".join(self.cleaned_data["typed_name"].split())
        if typed != self._name:
            raise forms.ValidationError(_("This is not the name of the desk. Type it as it stands above."))
        return typed
