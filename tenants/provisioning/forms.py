"""Forms of a desk's settings."""

from __future__ import annotations

from typing import Any

from django import forms

from tenants.provisioning import defaults


class DeskForm(forms.Form):
    """A tenant's name and slug."""

    name = forms.CharField(label="Name", max_length=80)
    slug = forms.SlugField(
        label="Short name",
        max_length=40,
        help_text="a-z, 0-9 and hyphens. It tells this desk from others with the same name, in lists and commands.",
    )


class DefaultsForm(forms.Form):
    """What the desk presets: a choice for each of what is declared."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for default in defaults.declared():
            self.fields[default.name] = forms.ChoiceField(label=default.label, choices=default.choices)
