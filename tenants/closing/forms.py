"""Check what an owner types who closes a desk."""

from __future__ import annotations

from typing import Any

from django import forms


class CloseForm(forms.Form):
    """Take the desk's name, typed by hand, and the reason."""

    typed_name = forms.CharField(label="Name of the desk", widget=forms.TextInput(attrs={"autocomplete": "off"}))
    reason = forms.CharField(
        label="Reason",
        required=False,
        max_length=300,
        help_text="For the audit trail. You can leave it empty.",
    )

    def __init__(self, *args: Any, name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = name

    def clean_typed_name(self) -> str:
        typed = " ".join(self.cleaned_data["typed_name"].split())
        if typed != self._name:
            raise forms.ValidationError("This is not the name of the desk. Type it as it stands above.")
        return typed
