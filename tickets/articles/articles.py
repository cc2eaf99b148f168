"""Read articles: what agents write, what readers see, and the versions that were published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.store import Page, Wanted
from portal.errors import Invalid, NotFound
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.articles import stored
from tickets.articles.stored import DRAFT, PUBLISHED, ArticleItem, DraftItem, PublishedItem, RowItem, VersionItem
from tickets.ticket import fields

_T = TypeVar("_T")

TITLE_LIMIT: Final = fields.TITLE_LIMIT
BODY_LIMIT: Final = fields.DESCRIPTION_LIMIT
VERSIONS_SHOWN: Final = 20
_NONE: Final = gettext_noop("There is no such article.")
_HIGHEST: Final = 10**12  # above it no number has a key


@dataclass(frozen=True)
class Text:
    """The values that people give an article. `section` is the id of one, "" for none."""

    title: str = ""
    body: str = ""
    section: str = ""
    is_public: bool = False

    @classmethod
    def of(cls, item: ArticleItem) -> Text:
        return cls(item.title, item.body, item.section, bool(item.is_public))

    def cleaned(self) -> Text:
        """Return them as they are stored. Raises Invalid, with the field."""
        title, body = plain_text.line(self.title), plain_text.block(self.body)
        if not title:
            raise Invalid(_("Enter a title."), field="title")
        within = locales.within
        title, body = within(title, TITLE_LIMIT, "title"), within(body, BODY_LIMIT, "body")
        return Text(title, body, self.section, self.is_public)


def draft(tenant: TenantContext, number: int) -> DraftItem:
    """Return an article as agents work on it: one consistent GetItem. Raises NotFound."""
    return _found(tenant.repository.get(DraftItem, stored.article, _known(number), sort=DRAFT, consistent=True))


def published(tenant: TenantContext, number: int) -> PublishedItem:
    """Return what readers see of an article: one GetItem. Raises NotFound."""
    return _found(tenant.repository.get(PublishedItem, stored.article, _known(number), sort=PUBLISHED, consistent=True))


def wanted(desk: TenantContext, number: int) -> Wanted:
    """Name what readers see of an article, for a page that reads it with other items. Raises NotFound."""
    return desk.repository.wanted(PublishedItem, stored.article, _known(number), sort=PUBLISHED)


def for_members(item: PublishedItem | None) -> PublishedItem:
    """Return an article that was read for the desk. Raises NotFound where none is published."""
    return _found(item)


def for_guests(item: PublishedItem | None) -> PublishedItem:
    """Return an article that was read for somebody outside. Raises NotFound where it is not for them."""
    if item is None or not item.is_public:
        raise NotFound(_(_NONE))
    return item


def version(tenant: TenantContext, number: int, version: int) -> VersionItem:
    """Return a version that was published: one GetItem. Raises NotFound."""
    sort = stored.version(_known(version))
    return _found(tenant.repository.get(VersionItem, stored.article, _known(number), sort=sort))


def versions(tenant: TenantContext, number: int, *, before: int = 0) -> Page[VersionItem]:
    """Return the newest versions, or those before one, newest first: one Query."""
    start = None
    if before:
        key = {"pk": tenant.repository.key(stored.article, _known(number)), "sk": stored.version(_known(before))}
        start = {name: {"S": text} for name, text in key.items()}
    return tenant.repository.query(
        VersionItem,
        stored.article,
        _known(number),
        begins_with=stored.VERSIONS,
        descending=True,
        limit=VERSIONS_SHOWN,
        start=start,
    )


def rows(tenant: TenantContext) -> Sequence[RowItem]:
    """Return a row for each article, drafts included: one Query for each MB."""
    return [*tenant.repository.query_all(RowItem, stored.centre, begins_with=stored.ROWS, consistent=True)]


def several(tenant: TenantContext, numbers: Sequence[int]) -> list[PublishedItem]:
    """Return those of up to 100 articles that are published: one BatchGetItem, none for nothing."""
    wanted = [(stored.article, (number,), PUBLISHED) for number in numbers]
    return [item for item in tenant.repository.get_many(PublishedItem, wanted) if item is not None] if wanted else []


def _known(number: int) -> int:
    if not 0 < number < _HIGHEST:
        raise NotFound(_(_NONE))
    return number


def _found(item: _T | None) -> _T:
    if item is None:
        raise NotFound(_(_NONE))
    return item
