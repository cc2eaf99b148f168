"""Write the articles and ready answers of the demonstration. Later runs leave what people have written there."""

from __future__ import annotations

from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.articles import article_changes, articles, sections
from tickets.articles.articles import Text
from tickets.ready_answers import answer_changes, answer_reading
from tickets.ready_answers.answer_reading import Given
from tickets.seeding import cast


def write(tenant: TenantContext, slug: str, *, by: Actor) -> None:
    """Publish the articles that the desk does not have yet, by title."""
    known = {row.title for row in articles.rows(tenant)}
    places = {section.name: section.id for section in sections.listed(tenant)}
    for one in cast.load("articles.toml").get(slug, ()):
        if one["title"] in known:
            continue
        if one["section"] not in places:
            places[one["section"]] = sections.add(tenant, one["section"], by=by).id
        text = Text(one["title"], one["body"], places[one["section"]], one.get("public", True))
        made = article_changes.create(tenant, text, by=by)
        article_changes.publish(tenant, int(made.number), text, edit=int(made.edit), by=by)
    shortcuts = {row.shortcut for row in answer_reading.listed(tenant, shared=True)[0]}
    for one in cast.load("answers.toml").get(slug, ()):
        if one["shortcut"] not in shortcuts:
            given = Given(**one | {"tags": tuple(one.get("tags", ()))})
            answer_changes.create(tenant, given, shared=True, by=by)
