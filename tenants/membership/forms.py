"""Check what people enter about members and invitations."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from portal import plain_text
from tenants.membership import invitations
from tenants.sign_in.stored import folded
from tenants.tenancy.roles import Role


class InviteForm(forms.Form):
    """Take e-mail addresses, one or a pasted list, and the role for all of them: none above one's own."""

    addresses = forms.CharField(
        label="E-mail addresses",
        max_length=20_000,
        help_text=f"One per line, or separated by commas. Up to {invitations.MOST_AT_ONCE} at once.",
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label="Role", initial=Role.AGENT.value)

    def __init__(self, role: Role, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(r.value, f"{r.label}: can {r.abilities}") for r in Role if role.at_least(r)]
        self.fields["role"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField
        # Browsers cut pasted text to the attribute without a word; a form that is refused loses nothing.
        self.fields["addresses"].widget.attrs.pop("maxlength")

    def clean_addresses(self) -> list[str]:
        addresses: list[str] = []
        wrong: list[str] = []
        for number, line in enumerate(self.cleaned_data["addresses"].splitlines(), 1):
            for address in filter(None, map(_address, re.split("[,;]", line))):
                if not _is_address(address):
                    wrong.append(f"Line {number}: \u201c{address[:100]}\u201d is not an e-mail address.")
                    continue
                try:
                    folded(address)
                    addresses.append(address)
                except ValueError as error:
                    wrong.append(f"Line {number}: \u201c{address[:100]}\u201d. {error}")
        if wrong:
            more = [f"And {len(wrong) - 10} more lines."] if len(wrong) > 10 else []
            raise ValidationError([*wrong[:10], *more, "No invitations were sent."])
        if not addresses:
            raise ValidationError("Enter at least one e-mail address.")
        if len(addresses) > invitations.MOST_AT_ONCE:
            raise ValidationError(
                f"You can invite up to {invitations.MOST_AT_ONCE} people at once. This list has {len(addresses)}."
            )
        return addresses


def _address(line: str) -> str:
    """Return the address in a line, which may be pasted as "Name <address>"."""
    match = re.search(r"<([^<>]+)>\s*$", line)
    return (match[1] if match else line).strip()


def _is_address(text: str) -> bool:
    """Tell whether a text is an e-mail address, written with the characters that mail is delivered by.

    Mail servers drop invisible characters from a domain and narrow wide ones. With those in it, an address would stand
    for a second account with the mailbox of another.
    """
    try:
        validate_email(text)
    except ValidationError:
        return False
    return unicodedata.normalize("NFKC", text) == text and not plain_text.has_controls(text)


class RoleForm(forms.Form):
    """Take the new role of a member."""

    role = forms.ChoiceField(choices=[(role.value, role.label) for role in Role])
