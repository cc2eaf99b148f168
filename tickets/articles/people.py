"""Find a person's address in the texts of articles, and replace it where they are erased. No item names its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from portal.dynamo.models import Kinds
from portal.dynamo.store import Transaction, chunked
from tenants.audit_trail import recording
from tenants.tenancy.context import TenantContext
from tickets.articles import article_changes, articles, stored
from tickets.articles.stored import DRAFT, PUBLISHED, VERSIONS, ArticleItem, DraftItem, PublishedItem, VersionItem

_TOGETHER: Final = 10  # articles that are read at the same time
_TEXTS: Final = Kinds[ArticleItem]({DRAFT: DraftItem, PUBLISHED: PublishedItem, VERSIONS: VersionItem})


def find(tenant: TenantContext, is_in: Callable[[str], bool]) -> Iterator[str]:
    """Yield the title of an article once for each of its texts in which a person is."""
    for items in _articles(tenant):
        yield from (item.title for item in items if is_in(item.title) or is_in(item.body))


def replace(tenant: TenantContext, is_in: Callable[[str], bool], replaced: Callable[[str], str]) -> Iterator[str]:
    """Replace a person in all texts of articles, published versions included, and yield the same titles.

    Raises TransactionRefused where somebody saves meanwhile.
    """
    for items in _articles(tenant):
        for item in items:
            if not (is_in(item.title) or is_in(item.body)):
                continue
            item.title = replaced(item.title)[: articles.TITLE_LIMIT]
            item.body = replaced(item.body)
            transaction = Transaction()
            if isinstance(item, DraftItem):
                transaction.put(item, condition=DraftItem.edit == int(item.edit))
                transaction.put(article_changes.row_of(tenant, item))
            else:
                transaction.put(item, condition=VersionItem.pk.exists())
            if isinstance(item, PublishedItem):
                article_changes.put_card(tenant, transaction, item)
            recording.commit(transaction, [])
            yield item.title


def _articles(tenant: TenantContext) -> Iterator[list[ArticleItem]]:
    def texts(number: int) -> list[ArticleItem]:
        return [*tenant.repository.query_all(_TEXTS, stored.article, number, consistent=True)]

    for some in chunked((int(row.number) for row in articles.rows(tenant)), _TOGETHER):
        yield from fan_out([partial(texts, number) for number in some])
