"""Read the published articles of the help centre, those for the desk included: a key belongs to the desk."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Moment
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tenants.tenancy.request import absolute_url
from tickets.articles import article_search, articles, catalogue
from tickets.articles.catalogue import Card
from tickets.articles.presenters import public_url
from tickets.articles.stored import PublishedItem

router: Final = ApiRouter()

_PASSWORD: Final[dict[str, Any]] = {
    "number": 12,
    "title": "Reset your password",
    "section": "First steps",
    "visibility": "public",
    "published_at": "2026-11-20T09:30:00.000000Z",
    "url": "https://desk.example.com/help/acme/12-reset-your-password/",
}
_TEXT: Final = {"version": 3, "body": "Press **Forgot**."}
ArticleNumber = Annotated[int, Path(ge=1, lt=10**12)]


class ArticleOut(ApiModel, json_schema_extra={"example": _PASSWORD}):
    """A published article."""

    number: int
    title: str
    section: str | None
    visibility: str = Field(description="public, or desk for one that members alone read")
    published_at: Moment
    url: str | None = Field(description="where everybody reads it; null for one of the desk")

    @classmethod
    def values(cls, request: ApiRequest, one: Card | PublishedItem, sections: dict[str, str]) -> dict[str, Any]:
        """Return what the answer has of an article in the list or by itself."""
        number = int(one.number)
        path = public_url(request.acting.slug, number, one.title)
        return {
            "number": number,
            "title": one.title,
            "section": sections.get(one.section),
            "visibility": "public" if one.is_public else "desk",
            "published_at": one.published_at,
            "url": absolute_url(request, path) if one.is_public else None,
        }


class ArticleText(ArticleOut, json_schema_extra={"example": _PASSWORD | _TEXT}):
    """A published article with its text."""

    version: int = Field(description="grows with each publication")
    body: str = Field(description="Markdown")


class ArticlePage(ApiModel, json_schema_extra={"example": {"data": [_PASSWORD], "next": None}}):
    """A page of the published articles, by number."""

    data: list[ArticleOut]
    next: str | None = Field(description="the address of the next page")

    @classmethod
    def of(cls, request: ApiRequest, cards: list[Card], sections: dict[str, str], next_: str | None) -> Self:
        return cls(data=[ArticleOut(**ArticleOut.values(request, one, sections)) for one in cards], next=next_)


class ArticleQuery(ApiQuery):
    """Which articles."""

    q: str = Field("", max_length=400, description="words, as in a search; the best ten articles, in one page")
    after: int | None = Field(None, ge=1, lt=10**12, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


@router.declare("GET", "/articles", scope=Scope.TICKETS_READ, answers={200: ArticlePage}, sends={200: ("Link",)})
@costs(get="article, help centre", query="help centre", trips=2, reads=6)
def list_articles(request: ApiRequest, query: Query[ArticleQuery]) -> HttpResponse:
    """List the published articles by number, or those that a search finds."""
    known = catalogue.read(request.acting, public=False)
    names = {one.id: one.name for one in known.sections}
    if query.q:
        hits = article_search.find_in(known, request.acting, query.q, public=False)
        return answers.page(ArticlePage.of(request, [hit.card for hit in hits], names, None))
    rest = [known.cards[number] for number in sorted(known.cards) if number > (query.after or 0)]
    shown = rest[: query.limit]
    cursor = str(shown[-1].number) if len(rest) > len(shown) else None
    return answers.page(ArticlePage.of(request, shown, names, answers.next_url(request, cursor)))


@router.declare(
    "GET",
    "/articles/{number}",
    scope=Scope.TICKETS_READ,
    answers={200: ArticleText, 304: None},
    headers=answers.KNOWN,
)
@costs(get="article, help centre", trips=1, reads=3)
def read_article(request: ApiRequest, number: ArticleNumber) -> HttpResponse:
    """Read the published version of an article."""
    item, centre = request.acting.repository.get_all(
        [articles.wanted(request.acting, number), catalogue.wanted(request.acting)], consistent=True
    )
    found = articles.for_members(item)
    names = {one.id: one.name for one in catalogue.sections_of(centre)} if centre else {}
    values = ArticleOut.values(request, found, names)
    return answers.tagged(request, ArticleText(**values, version=int(found.version), body=found.body))
