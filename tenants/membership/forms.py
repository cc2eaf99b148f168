"""Forms of members and invitations."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from tenants.membership import invites
from tenants.tenancy.roles import Role


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
