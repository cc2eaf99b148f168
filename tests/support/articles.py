"""Articles as tests need them: written and published."""

from __future__ import annotations

from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tickets.articles import article_changes
from tickets.articles.articles import Text


def published(tenant: TenantContext, title: str, body: str = "", *, public: bool = True, section: str = "") -> int:
    """Publish a new article, and return its number."""
    text = Text(title, body, section, public)
    made = article_changes.create(tenant, text, by=SYSTEM)
    article_changes.publish(tenant, int(made.number), text, edit=int(made.edit), by=SYSTEM)
    return int(made.number)
