"""Make and compare the mark on each page: a form from a page of another tenant, or of another person, is refused."""

from __future__ import annotations

from django.utils.crypto import constant_time_compare, salted_hmac


def make(user_id: str, tenant_id: str) -> str:
    """Return the mark of pages made for this person in this tenant. It can be compared, not read back."""
    return salted_hmac("tenants.page-mark", f"{user_id}|{tenant_id}", algorithm="sha256").hexdigest()[:24]


def matches(mark: str, user_id: str, tenant_id: str) -> bool:
    """Tell whether a mark is that of pages made for this person in this tenant."""
    return constant_time_compare(mark, make(user_id, tenant_id))
