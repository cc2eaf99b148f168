"""Forms of sign-in, passwords and new accounts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError

from portal import plain_text
from tenants.sign_in.accounts import User
from tenants.sign_in.stored import folded

_NO_EMAIL = {"required": "Enter your e-mail address."}
_EMAIL = forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})

# Browsers offer passkeys of this site beside the addresses that they know.
_EMAIL_OR_PASSKEY = forms.EmailInput(attrs={"autocomplete": "username webauthn", "autofocus": True})


class UnambiguousAddressField(forms.EmailField):
    """Take an e-mail address that is no other one in lower case."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            if text:
                folded(text)
        except ValueError as error:
            raise ValidationError(str(error)) from error
        return text


class SignInForm(forms.Form):
    email = UnambiguousAddressField(label="E-mail", max_length=254, widget=_EMAIL_OR_PASSKEY, error_messages=_NO_EMAIL)
    password = forms.CharField(
        label="Password",
        error_messages={"required": "Enter your password."},
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    # Any text passes: nobody can mend a hidden field, and views.py goes only to an address of our own.
    next = forms.Field(required=False, widget=forms.HiddenInput)


class PasswordResetForm(forms.Form):
    email = UnambiguousAddressField(label="E-mail", max_length=254, widget=_EMAIL, error_messages=_NO_EMAIL)


class NewPasswordForm(forms.Form):
    """A new password, twice. The user is needed to refuse passwords like the own name."""

    new_password1 = forms.CharField(
        label="New password",
        error_messages={"required": "Enter a password."},
        strip=False,
        max_length=1000,
        help_text="At least 10 characters, and not one of the common ones.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    new_password2 = forms.CharField(
        label="Confirm password",
        error_messages={"required": "Enter the password again."},
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)

    def clean_new_password1(self) -> str:
        password: str = self.cleaned_data["new_password1"]
        password_validation.validate_password(password, self.user)
        return password

    def clean_new_password2(self) -> str:
        second: str = self.cleaned_data["new_password2"]
        first = self.cleaned_data.get("new_password1")
        if first is not None and first != second:
            raise ValidationError("The passwords do not match.")
        return second


class PasswordChangeForm(NewPasswordForm):
    """The same for somebody signed in, who must know the old one."""

    old_password = forms.CharField(
        label="Current password",
        error_messages={"required": "Enter your current password."},
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    field_order = ("old_password", "new_password1", "new_password2")

    def clean_old_password(self) -> str:
        password: str = self.cleaned_data["old_password"]
        if not self.user.check_password(password):
            raise ValidationError("That is not your current password.")
        return password


class NewAccountForm(NewPasswordForm):
    """Name and password of somebody who was invited and has no account yet."""

    name = forms.CharField(
        label="Your name",
        error_messages={"required": "Enter your name."},
        max_length=100,
        help_text="As your colleagues see it.",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order = ("name", "new_password1", "new_password2")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].label = "Password"  # there is no old one

    def clean_name(self) -> str:
        name = " ".join(self.cleaned_data["name"].split())
        if fault := plain_text.name_fault(name):
            raise ValidationError(fault)
        return name


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
