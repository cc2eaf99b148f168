"""Systems read the published articles of their desk."""

from __future__ import annotations

from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.support.api_client import ApiClient
from tests.support.articles import published
from tickets.articles import article_changes, sections
from tickets.articles.articles import Text


def test_the_list_has_what_is_published_page_by_page(alice: TenantContext, client: ApiClient) -> None:
    assert client.ask("/articles").json() == {"data": [], "next": None}
    section = sections.add(alice, "First steps", by=SYSTEM)
    published(alice, "Reset your password", section=section.id)
    published(alice, "For us", public=False)
    article_changes.create(alice, Text("A draft"), by=SYSTEM)
    first = client.ask("/articles?limit=1").json()
    assert [one["title"] for one in first["data"]] == ["Reset your password"]
    assert first["data"][0]["section"] == "First steps"
    assert first["data"][0]["url"].endswith("/help/acme/1-reset-your-password/")
    second = client.call("GET", first["next"], api="").json()
    assert [(one["title"], one["visibility"], one["url"]) for one in second["data"]] == [("For us", "desk", None)]
    assert second["next"] is None


def test_articles_are_searched(alice: TenantContext, client: ApiClient) -> None:
    published(alice, "Hours", "We open at nine.")
    assert [one["number"] for one in client.ask("/articles?q=nine").json()["data"]] == [1]
    assert client.ask("/articles?q=elephant").json()["data"] == []
    assert client.ask("/articles?q=the").status_code == 422


def test_an_article_is_read_with_its_text(alice: TenantContext, client: ApiClient) -> None:
    published(alice, "Hours", "*Nine*")
    article_changes.save(alice, 1, Text("Hours", "A secret draft", "", True), edit=2, by=SYSTEM)
    answer = client.ask("/articles/1")
    assert (answer.json()["version"], answer.json()["body"]) == (1, "*Nine*")
    assert client.ask("/articles/1", If_None_Match=answer["ETag"]).status_code == 304
    article_changes.create(alice, Text("A draft"), by=SYSTEM)
    for number in (2, 9):
        assert client.ask(f"/articles/{number}").status_code == 404
