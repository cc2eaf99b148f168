"""Articles as templates show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Invalid
from portal.web import markdown
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest, absolute_url
from tickets.articles import article_search
from tickets.articles.article_search import ArticleHit
from tickets.articles.articles import Text
from tickets.articles.catalogue import Card, Section
from tickets.articles.stored import ArticleItem, DraftItem, PublishedItem, RowItem, VersionItem

_BESIDE: Final = 3  # articles above the tickets that a search finds
_NO_LABEL: Final = re.compile(r"[\[\]\\`*_<>]+")  # what would end the label of a link, or be markup in it
_AROUND: Final = 3  # lines that are shown around a change
_LINES: Final = 3_000  # of a text that is compared line by line, which takes longer than linear time


class ComparedLine(NamedTuple):
    """A line of a comparison: `kind` is "same", "gone", "new" or, for lines that are left out, "skipped"."""

    kind: str
    text: str


def url_of(number: int) -> str:
    """Return the address of an article for members of the desk in use."""
    return reverse("tickets:article", args=[number])


def listed(one: Card | RowItem) -> dict[str, Any]:
    number = int(one.number)
    made = {"number": number, "title": one.title, "url": url_of(number), "is_public": bool(one.is_public)}
    if isinstance(one, Card):
        return {**made, "is_draft": False, "is_changed": False, "at": clock.parse(one.published_at)}
    is_draft, is_changed = not int(one.published), bool(one.is_changed)
    return {**made, "is_draft": is_draft, "is_changed": is_changed, "at": clock.parse(one.edited_at)}


def groups(sections: Sequence[Section], found: Iterable[RowItem]) -> list[dict[str, Any]]:
    """Return all articles by section, in order, each by title. The last group has those without one."""
    ordered = sorted(found, key=lambda one: (one.title.casefold(), int(one.number)))
    known = {section.id for section in sections}
    made = [
        {"name": one.name, "about": one.about, "articles": [listed(row) for row in ordered if row.section == one.id]}
        for one in sections
    ]
    rest = [listed(row) for row in ordered if row.section not in known]
    return [*made, *([{"name": "", "about": "", "articles": rest}] if rest else [])]


def groups_of_readers(found: Iterable[tuple[Section | None, list[Card]]]) -> list[dict[str, Any]]:
    """Return published articles by section, as somebody sees them who does not write."""
    return [
        {
            "name": section.name if section else "",
            "about": section.about if section else "",
            "articles": [listed(card) for card in cards],
        }
        for section, cards in found
    ]


def shown(item: ArticleItem, sections: Sequence[Section] = ()) -> dict[str, Any]:
    number = int(item.number)
    return {
        "number": number,
        "title": item.title,
        "body": markdown.render(item.body),
        "is_empty": not item.body,
        "section": next((one.name for one in sections if one.id == item.section), ""),
        "is_public": bool(item.is_public),
        "url": url_of(number),
    }


def state(item: DraftItem) -> dict[str, Any]:
    """Return how far an article is: a draft, published, or changed since."""
    published = int(item.published)
    return {
        "edit": int(item.edit),
        "published": published,
        "versions": int(item.versions),
        "is_draft": not published,
        "is_changed": bool(published) and int(item.published_edit) != int(item.edit),
        "edited_at": clock.parse(item.edited_at),
    }


def version(item: VersionItem, *, current: int) -> dict[str, Any]:
    number = int(item.version)
    return {
        "number": number,
        "title": item.title,
        "is_public": bool(item.is_public),
        "at": clock.parse(item.published_at),
        "is_current": number == current,
        "url": reverse("tickets:article_version", args=[int(item.number), number]),
    }


def hits(found: Iterable[ArticleHit]) -> list[dict[str, Any]]:
    """Return articles that were found, for members of the desk in use."""
    return [
        {
            "title": one.title,
            "snippet": one.snippet,
            "url": url_of(one.card.number),
            "is_public": one.card.is_public,
        }
        for one in found
    ]


def beside_tickets(tenant: TenantContext, text: str) -> dict[str, Any]:
    """Return the articles that a search for tickets finds beside them, nothing for "": two round trips. Like a ticket,
    an article may be found a second after it was written."""
    try:
        found = article_search.find(tenant, text, public=False, at_once=False) if text else []
    except Invalid:  # the search for tickets says so
        found = []
    more = f"{reverse('tickets:articles')}?{urlencode({'q': text})}" if len(found) > _BESIDE else ""
    return {"articles": hits(found[:_BESIDE]), "more_articles": more}


def suggested(found: Iterable[Card], request: TenantRequest) -> list[dict[str, Any]]:
    """Return articles for an answer, each with the link that is put into it: to the public page where there is one."""
    slug = request.tenant.slug
    return [
        {
            "title": one.title,
            "url": (url := public_url(slug, one.number, one.title) if one.is_public else url_of(one.number)),
            "markdown": f"[{' '.join(_NO_LABEL.sub(' ', one.title).split())}]({absolute_url(request, url)})",
            "is_public": one.is_public,
        }
        for one in found
    ]


def public_url(slug: str, number: int, title: str) -> str:
    words = words_in_address(title)
    if words:
        return reverse("tickets:help_article_words", args=[slug, number, words])
    return reverse("tickets:help_article", args=[slug, number])


def public_url_of(item: ArticleItem, tenant: TenantContext) -> str:
    """Return where everybody reads an article, "" for a draft and for one of the desk."""
    is_open = isinstance(item, PublishedItem) and item.is_public
    return public_url(tenant.slug, int(item.number), item.title) if is_open else ""


def public_cards(found: Iterable[Card], slug: str) -> list[dict[str, Any]]:
    return [
        {"title": one.title, "lead": one.lead, "url": public_url(slug, one.number, one.title)}
        for one in found
        if one.is_public
    ]


def suggested_to_guests(desk: TenantContext, text: str) -> list[dict[str, Any]]:
    """Return the public articles that may answer what somebody writes: one request."""
    return public_cards(article_search.suggest(desk, text, public=True), desk.slug)


def public_groups(found: Iterable[tuple[Section | None, list[Card]]], slug: str) -> list[dict[str, Any]]:
    return [
        {
            "name": section.name if section else "",
            "about": section.about if section else "",
            "articles": public_cards(cards, slug),
        }
        for section, cards in found
    ]


def public_hits(found: Iterable[ArticleHit], slug: str) -> list[dict[str, Any]]:
    return [
        {"title": one.title, "snippet": one.snippet, "url": public_url(slug, one.card.number, one.card.title)}
        for one in found
        if one.card.is_public
    ]


def words_in_address(title: str) -> str:
    """Return a title as it stands in an address, "" for one that has no Latin letters: the number there decides."""
    return slugify(title)[:80].strip("-_")


def compared(before: Text, after: Text) -> dict[str, Any]:
    """Return what differs between two texts of an article."""
    return {
        "title": None if before.title == after.title else (before.title, after.title),
        "visibility": None if before.is_public == after.is_public else (_who(before), _who(after)),
        "lines": [*_differing(before.body.split("\n"), after.body.split("\n"))],
        "is_same": (before.title, before.body, before.is_public) == (after.title, after.body, after.is_public),
    }


def _who(text: Text) -> str:
    return _("Everybody") if text.is_public else _("Members of this desk")


def _differing(before: list[str], after: list[str]) -> Iterable[ComparedLine]:
    if before == after:
        return
    if max(len(before), len(after)) > _LINES:
        yield from (ComparedLine("gone", line) for line in before)
        yield from (ComparedLine("new", line) for line in after)
        return
    end = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_AROUND):
        if group[0][1] > end:
            yield ComparedLine("skipped", "")
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from (ComparedLine("same", line) for line in before[i1:i2])
            else:
                yield from (ComparedLine("gone", line) for line in before[i1:i2])
                yield from (ComparedLine("new", line) for line in after[j1:j2])
            end = i2
    if end < len(before):
        yield ComparedLine("skipped", "")
