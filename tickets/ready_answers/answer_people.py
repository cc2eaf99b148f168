"""Find a person in ready answers: their own ones, which an erasure deletes, and their address in texts of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from django.utils.translation import gettext_noop

from portal.dynamo.store import Transaction
from tenants.audit_trail import recording
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.ready_answers import answer_changes, answer_reading, stored
from tickets.ready_answers.stored import TEXTS, ReadyAnswerItem


def _texts(tenant: TenantContext, person: DeskPerson) -> Iterator[ReadyAnswerItem]:
    return tenant.repository.query_all(ReadyAnswerItem, stored.answers, begins_with=TEXTS, consistent=True)


def _places(person: DeskPerson, names: Collection[str], item: ReadyAnswerItem) -> Iterator[PersonalPlace]:
    if person.is_who(item.owner):
        yield PersonalPlace(gettext_noop("ready answer of their own"), excerpt=item.title)
    elif person.mail.is_in(item.title) or person.mail.is_in(item.body):
        yield PersonalPlace(gettext_noop("ready answer, its text"), is_text=True, excerpt=item.title)
    if person.is_who(item.resolver) and not person.is_who(item.owner):
        yield PersonalPlace(gettext_noop("ready answer that assigns tickets to them"), excerpt=item.title)


def _replace(tenant: TenantContext, new: NewName, item: ReadyAnswerItem) -> None:
    """Delete a person's own answer; replace them in another one. Raises TransactionRefused where somebody saves."""
    transaction = Transaction()
    if new.person.is_who(item.owner):
        answer_changes.remove(transaction, item)
    else:
        title, body = item.title, item.body
        if new.texts:
            title = new.person.mail.replaced(title, new.name)[: answer_reading.TITLE_LIMIT]
            body = new.person.mail.replaced(body, new.name)
        if new.person.is_who(item.resolver):
            item.resolver = ""
        answer_changes.rewrite(transaction, item, title=title, body=body)
    recording.commit(transaction, [])


PEOPLE: Final = PersonalData(_texts, _places, _replace)
