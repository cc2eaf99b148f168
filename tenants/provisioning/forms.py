"""Check what owners enter in the settings of a desk."""

from __future__ import annotations

from typing import Any

from django import forms

from tenants.provisioning import defaults
from tenants.tenancy import tenant_directory


class DeskForm(forms.Form):
    """Take a tenant's name and slug."""

    name = forms.CharField(label="Name", max_length=80)
    slug = forms.SlugField(
        label="Short name",
        max_length=40,
        help_text="Lowercase letters, digits and hyphens. It appears in web addresses.",
        error_messages={"invalid": tenant_directory.SLUG_RULE},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Browsers cut pasted text to the attribute without a word; a form that is refused loses nothing.
        for field in self.fields.values():
            field.widget.attrs.pop("maxlength")


class SignInDemandForm(forms.Form):
    """Take whether members need a second factor."""

    demanded = forms.BooleanField(
        label="Members need a second factor",
        required=False,
        help_text="Who has none is led to add one at the next click, and does not get into the desk before. API keys "
        "go on working.",
    )


class DefaultsForm(forms.Form):
    """Take a default for each value that has one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for default in defaults.declared():
            self.fields[default.name] = forms.ChoiceField(label=default.label, choices=default.choices)
