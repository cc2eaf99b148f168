"""Write articles: create, save, publish, withdraw, restore and delete. Agents do all but the last; it takes an admin.

Each publication is a version, and stays. Saving names the edit that the writer has seen, so that nobody overwrites what
somebody else has saved meanwhile. The audit trail says who did it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Action, Transaction
from portal.errors import Conflict, Forbidden, Invalid, Overtaken, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry, ReadChange
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext
from tickets.articles import articles, catalogue, stored
from tickets.articles.articles import Text
from tickets.articles.stored import (
    CENTRE,
    DRAFT,
    PUBLISHED,
    CardItem,
    CentreItem,
    DraftItem,
    PublishedItem,
    RowItem,
    VersionItem,
)
from tickets.search import tokenizer
from tickets.search.index import fragments, postings
from tickets.search.index.fragments import Fragment
from tickets.search.index.postings import Places

ARTICLES_LIMIT: Final = 500  # of one desk: more do not fit into a catalogue that is read at once
LEAD_LENGTH: Final = 160  # characters
CHANGED: Final = gettext_noop("Somebody else has saved this article meanwhile.")
_CENTRE: Final = "help centre"
_MARKUP: Final = re.compile(
    r"^[ \t]{0,8}(?:[-+*]|\d{1,9}[.)])(?=[ \t])|[*_`#>|~]+|!?\[([^\[\]\n]{0,200})\]\([^()\s]{1,400}\)", re.MULTILINE
)


def create(tenant: TenantContext, text: Text, *, by: Actor) -> DraftItem:
    """Add an article, which is a draft until it is published. Raises Invalid, and Conflict where there are too many."""
    clean = text.cleaned()
    made: list[DraftItem] = []

    def build() -> ReadChange:
        centre = catalogue.read_centre(tenant)
        if int(centre.articles) >= ARTICLES_LIMIT:
            raise Conflict(
                _("A desk can have up to %(limit)s articles. Delete one that nobody needs any more.")
                % {"limit": ARTICLES_LIMIT}
            )
        number, now = int(centre.last) + 1, clock.stamp()
        key = tenant.repository.key(stored.article, number)
        item = DraftItem(key, DRAFT, number=number, created_at=now, edited_at=now)
        _take(item, clean, centre)
        transaction = Transaction()
        seen = CentreItem.last == int(centre.last) if int(centre.last) else CentreItem.last.does_not_exist()
        counted: list[Action] = [CentreItem.last.set(number), CentreItem.articles.add(1)]
        if not int(centre.last):
            seen |= CentreItem.last == 0
        transaction.update(_centre(tenant), counted, name=_CENTRE, condition=seen)
        transaction.put(item, condition=DraftItem.pk.does_not_exist())
        transaction.put(row_of(tenant, item))
        made[:] = [item]
        return transaction, [_entry(tenant, item, AuditAction.ARTICLE_CREATED, by)]

    commit(tenant, build, depending=[_CENTRE])
    return made[0]


def save(tenant: TenantContext, number: int, text: Text, *, edit: int, by: Actor) -> DraftItem:
    """Store the draft of an article; readers see the published version still. `edit` is the one that the writer saw.

    Raises NotFound, Invalid, and Overtaken where somebody else has saved meanwhile.
    """
    clean = text.cleaned()

    def change(item: DraftItem, transaction: Transaction) -> list[AuditEntry] | None:
        if Text.of(item) == clean:
            return None
        _take(item, clean, catalogue.read_centre(tenant))
        return [_entry(tenant, item, AuditAction.ARTICLE_CHANGED, by)]

    return _changed(tenant, number, edit, change)


def publish(tenant: TenantContext, number: int, text: Text, *, edit: int, by: Actor) -> DraftItem:
    """Store a text and show it to readers, as a new version. Nothing is written where they see just this already.

    Raises NotFound, Invalid, and Overtaken where somebody else has saved meanwhile.
    """
    clean = text.cleaned()

    def change(item: DraftItem, transaction: Transaction) -> list[AuditEntry] | None:
        if Text.of(item) == clean and int(item.published) and int(item.published_edit) == int(item.edit):
            return None
        was_published = bool(int(item.published))
        _take(item, clean, catalogue.read_centre(tenant))
        item.versions = item.published = int(item.versions) + 1
        item.published_edit = int(item.edit) + 1
        _show(tenant, transaction, item, was_published=was_published)
        after = {"version": str(int(item.published)), "visibility": "public" if item.is_public else "desk"}
        return [_entry(tenant, item, AuditAction.ARTICLE_PUBLISHED, by, after)]

    return _changed(tenant, number, edit, change)


def withdraw(tenant: TenantContext, number: int, *, by: Actor) -> DraftItem:
    """Show an article to readers no more; its draft and its versions stay. Raises NotFound, Overtaken."""

    def change(item: DraftItem, transaction: Transaction) -> list[AuditEntry] | None:
        if not int(item.published):
            return None
        item.published = item.published_edit = 0
        _hide(tenant, transaction, number)
        return [_entry(tenant, item, AuditAction.ARTICLE_WITHDRAWN, by)]

    return _changed(tenant, number, None, change)


def restore(tenant: TenantContext, number: int, version: int, *, edit: int, by: Actor) -> DraftItem:
    """Make the text of an older version the draft. Readers see it once that is published. Raises as `save` does."""
    older = articles.version(tenant, number, version)
    now = articles.draft(tenant, number)
    return save(tenant, number, Text(older.title, older.body, now.section, bool(now.is_public)), edit=edit, by=by)


def delete(tenant: TenantContext, number: int, *, by: Actor) -> None:
    """Delete an article with all of its versions. Raises NotFound, and Overtaken where somebody publishes meanwhile.

    The versions go first, so that whatever interrupts this leaves nothing that no article names.
    """
    if not tenant.is_admin:
        raise Forbidden(_("Only admins and owners can delete articles."))
    item = articles.draft(tenant, number)
    for last in range(int(item.versions), 0, -_DELETED_TOGETHER):
        some = Transaction()
        for version in range(last, max(0, last - _DELETED_TOGETHER), -1):
            some.delete(VersionItem(item.pk, stored.version(version)))
        member_changes.require_role(some, tenant)
        recording.commit(some, [], refused=Overtaken(_(CHANGED)))
    transaction = Transaction()
    transaction.delete(item, condition=(DraftItem.versions == int(item.versions)))
    transaction.delete(RowItem(tenant.repository.key(stored.centre), stored.row(number)))
    _hide(tenant, transaction, number, articles=-1)
    commit(tenant, lambda: (transaction.copy(), [_entry(tenant, item, AuditAction.ARTICLE_DELETED, by)]))


_DELETED_TOGETHER: Final = 15  # versions in a transaction, which holds 4 MB: the longest have 200 KB


# --- members of a transaction ---


def _changed(
    tenant: TenantContext,
    number: int,
    edit: int | None,
    change: Callable[[DraftItem, Transaction], list[AuditEntry] | None],
) -> DraftItem:
    """Write what `change` makes of the stored draft, with its audit rows; None writes nothing. Returns the draft."""
    told: list[DraftItem] = []

    def build() -> ReadChange | None:
        item = articles.draft(tenant, number)
        told[:] = [item]
        seen = int(item.edit)
        if edit is not None and edit != seen:
            raise Overtaken(_(CHANGED))
        transaction = Transaction()
        entries = change(item, transaction)
        if entries is None:
            return None
        item.edit, item.edited_at = seen + 1, clock.stamp()
        transaction.put(item, condition=DraftItem.edit == seen)
        transaction.put(row_of(tenant, item))
        return transaction, entries

    commit(tenant, build)
    return told[0]


def _take(item: DraftItem, text: Text, centre: CentreItem) -> None:
    """Give a draft its values. Raises Invalid for a section that there is not, unless the draft is in it already."""
    if text.section not in ("", item.section, *(one.id for one in catalogue.sections_of(centre))):
        raise Invalid(_("This section is gone. Choose another one."), field="section")
    item.title, item.body, item.section, item.is_public = text.title, text.body, text.section, text.is_public


def _show(tenant: TenantContext, transaction: Transaction, item: DraftItem, *, was_published: bool) -> None:
    now, version = clock.stamp(), int(item.published)
    number = int(item.number)
    text: dict[str, Any] = {
        "number": number,
        "title": item.title,
        "body": item.body,
        "section": item.section,
        "is_public": item.is_public,
        "version": version,
        "published_at": now,
    }
    shown = PublishedItem(item.pk, PUBLISHED, **text)
    transaction.put(shown)
    new = VersionItem.pk.does_not_exist()
    transaction.put(VersionItem(item.pk, stored.version(version), **text), condition=new)
    put_card(tenant, transaction, shown)
    if was_published:
        key = tenant.repository.key(stored.centre)
        transaction.delete(CardItem(key, stored.card(number, is_public=not item.is_public)))


def put_card(tenant: TenantContext, transaction: Transaction, item: PublishedItem) -> None:
    """Write the card of a published article, and with it a new edition of the catalogue."""
    number, is_public = int(item.number), bool(item.is_public)
    card = CardItem(
        tenant.repository.key(stored.centre),
        stored.card(number, is_public=is_public),
        number=number,
        title=item.title,
        lead=lead_of(item.body),
        section=item.section,
        is_public=is_public,
        published_at=item.published_at,
        words=words_of(item.title, item.body),
        words_version=tokenizer.VERSION,
    )
    transaction.put(card)
    transaction.update(_centre(tenant), [CentreItem.edition.set(stored.new_edition())])


def _hide(tenant: TenantContext, transaction: Transaction, number: int, *, articles: int = 0) -> None:
    key = tenant.repository.key(stored.centre)
    transaction.delete(PublishedItem(tenant.repository.key(stored.article, number), PUBLISHED))
    for is_public in (True, False):
        transaction.delete(CardItem(key, stored.card(number, is_public=is_public)))
    transaction.update(
        _centre(tenant), [CentreItem.edition.set(stored.new_edition()), CentreItem.articles.add(articles)]
    )


def _centre(tenant: TenantContext) -> CentreItem:
    return CentreItem(tenant.repository.key(stored.centre), CENTRE)


def row_of(tenant: TenantContext, item: DraftItem) -> RowItem:
    number = int(item.number)
    return RowItem(
        tenant.repository.key(stored.centre),
        stored.row(number),
        number=number,
        title=item.title,
        section=item.section,
        is_public=item.is_public,
        published=int(item.published),
        is_changed=bool(int(item.published)) and int(item.published_edit) != int(item.edit),
        edited_at=item.edited_at,
    )


def words_of(title: str, body: str) -> bytes:
    """Return the terms of an article with their postings, as a block of the search index is packed."""
    parts = {Places.TITLE: title, Places.DESCRIPTION: body}
    made = [Fragment(1, place, False, tokenizer.terms(text)) for place, text in parts.items()]
    return postings.pack_block((term, bytes([found[1]])) for term, found in fragments.inverted(made))


def lead_of(body: str) -> str:
    """Return the beginning of a text in Markdown, as a list shows it: without markup, cut behind a word."""
    plain = " ".join(_MARKUP.sub(r"\1", body[: 10 * LEAD_LENGTH]).split())
    if len(plain) <= LEAD_LENGTH:
        return plain
    return plain[: LEAD_LENGTH - 1].rpartition(" ")[0].rstrip(" ,.;:") + "\N{HORIZONTAL ELLIPSIS}"


def commit(tenant: TenantContext, build: Callable[[], ReadChange | None], *, depending: Sequence[str] = ()) -> None:
    """Write a change with its audit rows, if whoever makes it still has their role. Raises Overtaken."""

    def with_role() -> ReadChange | None:
        built = build()
        if built is not None and tenant.user_id:  # a command is nobody's
            member_changes.require_role(built[0], tenant)
        return built

    try:
        recording.commit_read(tenant.tenant_id, with_role, depending=depending)
    except TransactionRefused as refused:
        member_changes.blame_standing(tenant, refused)
        raise Overtaken(_(CHANGED)) from refused


def _entry(
    tenant: TenantContext, item: DraftItem, action: AuditAction, by: Actor, after: dict[str, str] | None = None
) -> AuditEntry:
    return AuditEntry(tenant.tenant_id, action, by, "article", str(int(item.number)), item.title, after=after or {})
