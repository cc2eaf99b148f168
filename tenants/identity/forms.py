"""Forms about accounts."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from tenants.identity.models import User
from tenants.membership import invites
from tenants.provisioning import defaults
from tenants.tenancy.roles import Role

_EMAIL = forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})


class SignInForm(forms.Form):
    email = forms.EmailField(label="E-mail", max_length=254, widget=_EMAIL)
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    next = forms.CharField(required=False, max_length=2000, widget=forms.HiddenInput)


class PasswordResetForm(forms.Form):
    email = forms.EmailField(label="E-mail", max_length=254, widget=_EMAIL)


class NewPasswordForm(forms.Form):
    """A new password, twice. The user is needed to refuse passwords like the own name."""

    new_password1 = forms.CharField(
        label="New password",
        strip=False,
        max_length=1000,
        help_text="At least 10 characters, and not one of the common ones.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    new_password2 = forms.CharField(
        label="The same again",
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
            raise ValidationError("The two passwords are not the same.")
        return second


class PasswordChangeForm(NewPasswordForm):
    """The same for somebody signed in, who must know the old one."""

    old_password = forms.CharField(
        label="Old password",
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
        max_length=100,
        help_text="As your colleagues see it.",
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order = ("name", "new_password1", "new_password2")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password1"].label = "Password"  # there is no old one

    def clean_name(self) -> str:
        return " ".join(self.cleaned_data["name"].split())


class InviteForm(forms.Form):
    """Addresses, one or a pasted list, and what they are invited as: nothing above the own role."""

    addresses = forms.CharField(
        label="E-mail addresses",
        max_length=20_000,
        help_text=f"One or more, one per line or with commas between them, up to {invites.MOST_AT_ONCE}.",
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label="Role", initial=Role.AGENT.value)

    def __init__(self, role: Role, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(r.value, f"{r.label}: {r.may}") for r in Role if role.at_least(r)]
        self.fields["role"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField

    def clean_addresses(self) -> list[str]:
        found: list[str] = []
        wrong: list[str] = []
        for number, line in enumerate(self.cleaned_data["addresses"].splitlines(), 1):
            for address in filter(None, map(_address, re.split("[,;]", line))):
                try:
                    validate_email(address)
                except ValidationError:
                    wrong.append(f"Line {number}: \u201c{address[:100]}\u201d is not an e-mail address.")
                else:
                    found.append(address)
        if wrong:
            more = [f"And {len(wrong) - 10} more."] if len(wrong) > 10 else []
            raise ValidationError([*wrong[:10], *more, "Nothing was sent yet."])
        if not found:
            raise ValidationError("Enter at least one address.")
        if len(found) > invites.MOST_AT_ONCE:
            raise ValidationError(f"At most {invites.MOST_AT_ONCE} together; these are {len(found)}.")
        return found


def _address(line: str) -> str:
    """The address in a line, also where it is pasted as "Name <address>"."""
    match = re.search(r"<([^<>]+)>\s*$", line)
    return (match[1] if match else line).strip()


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=[(role.value, role.label) for role in Role])


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


class AuditFilterForm(forms.Form):
    """Which rows of the audit trail, from the page's address."""

    actor = forms.CharField(required=False, max_length=64)
    entity = forms.CharField(required=False, max_length=120)
    first = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))
