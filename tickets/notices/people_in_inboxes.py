"""Find the inbox of a person, and delete it where they are erased. It names nobody but its member."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from django.utils.translation import gettext_noop

from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.notices import stored
from tickets.notices.stored import NoticeItem


def _items(tenant: TenantContext, person: DeskPerson) -> Iterator[NoticeItem]:
    for user_id in person.accounts:
        yield from tenant.repository.query_all(
            NoticeItem, keys.tenant, begins_with=stored.notices_of(user_id), consistent=True
        )


def _places(person: DeskPerson, names: Collection[str], item: NoticeItem) -> Iterator[PersonalPlace]:
    yield PersonalPlace(gettext_noop("notice in the inbox"), excerpt=f"#{int(item.number)}, {item.kind}")


def _delete(tenant: TenantContext, new: NewName, item: NoticeItem) -> None:
    tenant.repository.delete(item)


PEOPLE: Final = PersonalData(_items, _places, _delete)
