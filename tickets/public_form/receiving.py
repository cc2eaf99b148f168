"""Make a ticket of a public form that was sent. Its sender is as little confirmed as that of a forged letter.

The requester is found or made by the address that the form gives. The ticket says that nothing confirms it, and the
form's answer is the same whether the address is known, new or blocked. The acknowledgement goes to an address a few
times a day at most, and repeats nothing that the form said: the address may be a stranger's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.utils.translation import gettext as _

from portal import plain_text
from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.schema import keys
from tenants.membership import members
from tenants.sign_in import attempt_limits
from tenants.sign_in.attempt_limits import AttemptLimit
from tenants.sign_in.stored import folded
from tenants.tenancy.context import TenantContext
from tickets.attachments.attachments import FileRef
from tickets.desk import creating, letter_texts
from tickets.desk.letter_texts import FromLetter
from tickets.public_form import challenges
from tickets.public_form.challenges import Challenge
from tickets.replies import mail_settings
from tickets.requesters import requester_addresses, requesters
from tickets.ticket.fields import Channel

LETTERS_A_DAY: Final = 4  # acknowledgements that one address gets by forms of all desks
_DAY: Final = 24 * 3600


@dataclass(frozen=True)
class SentForm:
    """Hold a form that somebody outside has sent. Its values have the forms that `forms.GuestForm` has checked."""

    email: str
    subject: str
    body: str
    name: str = ""
    priority: str = ""
    language: str = ""
    files: Sequence[FileRef] = ()
    custom: Mapping[str, str] = field(default_factory=dict)  # values of custom fields by their ids

    @property
    def digest(self) -> str:
        """Return what makes it the same form when it comes again."""
        own = (f"{name}={value}" for name, value in self.custom.items())
        parts = (self.email, self.subject, self.body, self.name, self.priority, *(file.id for file in self.files), *own)
        return keys.digest("\0".join(parts))


class AlreadySent(Exception):
    """Another form was sent with the same challenge."""


def receive(desk: TenantContext, form: SentForm, challenge: Challenge) -> int:
    """Make the ticket and return its number, 0 where the desk has blocked the sender. The same form makes one ticket.

    Raises AlreadySent, and Invalid with the name of a field.
    """
    address = requester_addresses.normal(form.email, field="email")
    reads: list[Any] = [lambda: mail_settings.read(desk), lambda: members.by_address(desk.repository, address)]
    settings, claimed = fan_out(reads)
    if settings.is_own(desk.slug, address):
        raise Invalid(_("This is an address of the desk itself."), field="email")
    if not challenges.spend(desk, challenge, form.digest):
        raise AlreadySent
    if settings.is_blocked(address):
        return 0
    person = requesters.ensure(desk, address, name=form.name, language=form.language)
    marks = [letter_texts.UNCONFIRMED]
    if claimed is not None:
        marks.append(letter_texts.CLAIMS_MEMBER)
    if form.name and form.name != person.name:
        marks.append(f"{letter_texts.GIVEN_NAME}{plain_text.named(form.name, limit=80)}.")
    return creating.create(
        replace(desk, user_id=person.id, user_name=person.label),
        requester=person,
        channel=Channel.FORM,
        acknowledge=settings.acknowledges and _may_write_to(address),
        request_id=challenge.nonce,
        title=form.subject,
        description=form.body,
        files=form.files,
        letter=FromLetter("", marks=tuple(marks)),
        priority=form.priority,
        custom=form.custom,
    )


def _may_write_to(address: str) -> bool:
    local, _, domain = folded(address).rpartition("@")
    mailbox = f"{local.partition('+')[0] or local}@{domain}"  # ada+1@ and ada+2@ are one for many providers
    limit = AttemptLimit("form, letters", mailbox, LETTERS_A_DAY, seconds=_DAY)
    return attempt_limits.begin((limit,)).wait_minutes is None
