"""Check what people enter about second factors."""

from __future__ import annotations

from django import forms

_CODE = forms.TextInput(attrs={"autocomplete": "one-time-code", "spellcheck": "false", "autocapitalize": "none"})


class SecondStepForm(forms.Form):
    """Take the code of the second step of signing in."""

    one_time_code = forms.CharField(
        label="Code",
        max_length=60,
        help_text="Six digits from your authenticator app, or one of your recovery codes.",
        error_messages={"required": "Enter a code."},
        widget=_CODE,
    )
    # Any text passes: nobody can mend a hidden field, and the view goes only to an address of our own.
    next = forms.Field(required=False, widget=forms.HiddenInput)


class AuthenticatorForm(forms.Form):
    """Take the code that proves that an app has the secret."""

    one_time_code = forms.CharField(
        label="Code",
        max_length=60,
        help_text="The six digits that the app shows now.",
        error_messages={"required": "Enter the code that the app shows."},
        widget=_CODE,
    )


class ConfirmForm(forms.Form):
    """Take the password of somebody who is signed in."""

    password = forms.CharField(
        label="Password",
        error_messages={"required": "Enter your password."},
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
