"""Find a person's address in the texts of articles, and replace it where they are erased. No item names its writer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from itertools import chain
from typing import Final

from django.utils.translation import gettext_noop

from portal.dynamo.client import fan_out
from portal.dynamo.models import Kinds
from portal.dynamo.store import Transaction, chunked
from tenants.audit_trail import recording
from tenants.tenancy.context import TenantContext
from tenants.tenancy.personal_data import DeskPerson, NewName, PersonalData, PersonalPlace
from tickets.articles import article_changes, articles, stored
from tickets.articles.stored import DRAFT, PUBLISHED, VERSIONS, ArticleItem, DraftItem, PublishedItem, VersionItem

_TOGETHER: Final = 10  # articles that are read at the same time
_TEXTS: Final = Kinds[ArticleItem]({DRAFT: DraftItem, PUBLISHED: PublishedItem, VERSIONS: VersionItem})


def _texts_of(tenant: TenantContext, person: DeskPerson) -> Iterator[ArticleItem]:
    def texts(number: int) -> list[ArticleItem]:
        return [*tenant.repository.query_all(_TEXTS, stored.article, number, consistent=True)]

    for some in chunked((int(row.number) for row in articles.rows(tenant)), _TOGETHER):
        yield from chain.from_iterable(fan_out([partial(texts, number) for number in some]))


def _in_text(person: DeskPerson, names: Collection[str], item: ArticleItem) -> Iterator[PersonalPlace]:
    if person.mail.is_in(item.title) or person.mail.is_in(item.body):
        yield PersonalPlace(gettext_noop("article, its text"), is_text=True, excerpt=item.title)


def _replace(tenant: TenantContext, new: NewName, item: ArticleItem) -> None:
    """Replace the address in a text, also in one that is published. Raises TransactionRefused where somebody saves."""
    item.title = new.person.mail.replaced(item.title, new.name)[: articles.TITLE_LIMIT]
    item.body = new.person.mail.replaced(item.body, new.name)
    transaction = Transaction()
    if isinstance(item, DraftItem):
        transaction.put(item, condition=DraftItem.edit == int(item.edit))
        transaction.put(article_changes.row_of(tenant, item))
    else:
        transaction.put(item, condition=VersionItem.pk.exists())
    if isinstance(item, PublishedItem):
        article_changes.put_card(tenant, transaction, item)
    recording.commit(transaction, [])


PEOPLE: Final = PersonalData(_texts_of, _in_text, _replace)
