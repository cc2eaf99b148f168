"""Show the public help centre to people outside the desk. Only public articles are ever read for them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import render

from portal.dynamo.client import alongside
from portal.errors import Invalid, NotFound
from portal.web.access import on_get
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import GuestRequest, absolute_url
from tickets.articles import articles, catalogue, presenters
from tickets.articles.article_search import ArticleHit, find_in, suggest_from
from tickets.articles.catalogue import Catalogue
from tickets.outside import looks, pages
from tickets.outside.looks import Looks
from tickets.outside.pages import desk_by_name as by_name
from tickets.public_form import form_settings
from tickets.public_form.form_settings import FormSettings

_TYPED: Final = 400  # characters of a query


@by_name
@on_get(get="article, help centre, looks, public form, slug", query="help centre", trips=3, reads=12)
def help_home(request: GuestRequest, slug: str) -> HttpResponse:
    """List the public articles by section, or those that `?q=` finds."""
    desk, typed = request.desk, request.GET.get("q", "").strip()[:_TYPED]
    known, (shown, has_form) = alongside(partial(_catalogue, desk), aside=partial(_settings, desk))
    values: dict[str, Any] = {"slug": slug, "has_form": has_form, "q": typed, "hits": [], "suggested": [], "groups": []}
    if typed:
        values["hits"] = presenters.public_hits(_found(known, desk, typed), slug)
        values["suggested"] = [] if values["hits"] else presenters.public_cards(suggest_from(known, typed), slug)
    else:
        values["groups"] = presenters.public_groups(known.groups, slug)
    return pages.page(request, "help/home.html", values, looks=shown)


def _catalogue(desk: TenantContext) -> Catalogue:
    """Read the public articles. Raises NotFound for a desk that has none: nobody learns that there is such a desk."""
    known = catalogue.read(desk, public=True)
    if not known.cards:
        raise NotFound
    return known


def _settings(desk: TenantContext) -> tuple[Looks, bool]:
    """Read the looks, and whether the public form is open: one BatchGetItem."""
    of_looks, of_form = desk.repository.get_all([looks.wanted(desk), form_settings.wanted(desk)])
    return Looks.of(desk, of_looks), FormSettings.of(of_form).is_on


def _found(known: Catalogue, desk: TenantContext, typed: str) -> list[ArticleHit]:
    try:
        return find_in(known, desk, typed, public=True)
    except Invalid:  # words that say nothing, such as "the"
        return []


@by_name
@on_get(get="article, help centre, looks, public form, slug", trips=3, reads=10)
def help_article(request: GuestRequest, slug: str, number: int, words: str = "") -> HttpResponse:
    """Show a public article. Its number alone says which: the words in its address may be those of a former title.

    One request, besides finding the desk.
    """
    desk = request.desk
    wanted = [looks.wanted(desk), form_settings.wanted(desk), articles.wanted(desk, number), catalogue.wanted(desk)]
    of_looks, of_form, item, centre = desk.repository.get_all(wanted, consistent=True)
    article = articles.for_guests(item)
    values = {
        "slug": slug,
        "has_form": FormSettings.of(of_form).is_on,
        "article": presenters.shown(article, catalogue.sections_of(centre) if centre else ()),
        "canonical": absolute_url(request, presenters.public_url(slug, int(article.number), article.title)),
    }
    return pages.page(request, "help/article.html", values, looks=Looks.of(desk, of_looks))


@by_name
@on_get(get="help centre, looks, slug", query="help centre", trips=2, reads=10)
def help_suggest(request: GuestRequest, slug: str) -> HttpResponse:
    """Offer articles for what somebody writes in the form: a piece of a page, empty where none fits."""
    known, shown = alongside(partial(_catalogue, request.desk), aside=partial(looks.looks_of, request.desk))
    found = suggest_from(known, request.GET.get("q", ""))
    with pages.language(request, shown):
        answer = render(request, "help/_suggested.html", {"suggested": presenters.public_cards(found, slug)})
    answer["Cache-Control"] = "no-store"
    return answer
