"""Forms of sign-in, passwords and new accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import plain_text
from tenants.sign_in.accounts import User
from tenants.sign_in.stored import folded

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_NO_EMAIL = {"required": gettext_lazy("Enter your e-mail address.")}
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


class PasswordField(forms.CharField):
    """Take a password as it is typed; `autocomplete` says which one a browser may fill in."""

    def __init__(
        self,
        label: StrOrPromise,
        required: StrOrPromise,
        *,
        autocomplete: str = "current-password",
        help_text: StrOrPromise = "",
    ) -> None:
        super().__init__(
            label=label,
            error_messages={"required": required},
            strip=False,
            max_length=1000,
            help_text=help_text,
            widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
        )


class CodeField(forms.CharField):
    """Take a code of an authenticator app or a recovery code."""

    def __init__(self, help_text: StrOrPromise, required: StrOrPromise) -> None:
        attrs = {"autocomplete": "one-time-code", "spellcheck": "false", "autocapitalize": "none"}
        widget, errors = forms.TextInput(attrs=attrs), {"required": required}
        super().__init__(label=_("Code"), max_length=60, help_text=help_text, error_messages=errors, widget=widget)


class NextField(forms.Field):
    """Take the address to go on to. Any text passes: nobody can mend a hidden field, and the views only go to an
    address of our own."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput)


class SignInForm(forms.Form):
    email = UnambiguousAddressField(
        label=gettext_lazy("E-mail"), max_length=254, widget=_EMAIL_OR_PASSKEY, error_messages=_NO_EMAIL
    )
    password = PasswordField(gettext_lazy("Password"), gettext_lazy("Enter your password."))
    next = NextField()


class PasswordResetForm(forms.Form):
    email = UnambiguousAddressField(
        label=gettext_lazy("E-mail"), max_length=254, widget=_EMAIL, error_messages=_NO_EMAIL
    )


class NewPasswordForm(forms.Form):
    """A new password, twice. The user is needed to refuse passwords like the own name."""

    new_password1 = PasswordField(
        gettext_lazy("New password"),
        gettext_lazy("Enter a password."),
        autocomplete="new-password",
        help_text=gettext_lazy("At least 10 characters, and not one of the common ones."),
    )
    new_password2 = PasswordField(
        gettext_lazy("Confirm password"), gettext_lazy("Enter the password again."), autocomplete="new-password"
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
            raise ValidationError(_("The passwords do not match."))
        return second


class PasswordChangeForm(NewPasswordForm):
    """The same for somebody signed in, who must know the old one."""

    old_password = PasswordField(gettext_lazy("Current password"), gettext_lazy("Enter your current password."))
    field_order = ("old_password", "new_password1", "new_password2")

    def clean_old_password(self) -> str:
        password: str = self.cleaned_data["old_password"]
        if not self.user.check_password(password):
            raise ValidationError(_("That is not your current password."))
        return password


class NewAccountForm(NewPasswordForm):
    """Name and password of somebody who was invited and has no account yet."""

    name = forms.CharField(
        label=gettext_lazy("Your name"),
        error_messages={"required": gettext_lazy("Enter your name.")},
        max_length=100,
        help_text=gettext_lazy("As your colleagues see it."),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order = ("name", "new_password1", "new_password2")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].label = _("Password")  # there is no old one

    def clean_name(self) -> str:
        name = " ".join(self.cleaned_data["name"].split())
        if fault := plain_text.name_fault(name):
            raise ValidationError(fault)
        return name


class SecondStepForm(forms.Form):
    """Take the code of the second step of signing in."""

    one_time_code = CodeField(
        gettext_lazy("Six digits from your authenticator app, or one of your recovery codes."),
        gettext_lazy("Enter a code."),
    )
    next = NextField()


class AuthenticatorForm(forms.Form):
    """Take the code that proves that an app has the secret."""

    one_time_code = CodeField(
        gettext_lazy("The six digits that the app shows now."), gettext_lazy("Enter the code that the app shows.")
    )


class ConfirmForm(forms.Form):
    """Take the password of somebody who is signed in."""

    password = PasswordField(gettext_lazy("Password"), gettext_lazy("Enter your password."))
