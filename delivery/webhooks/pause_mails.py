"""Mail the owners of a desk when one of its endpoints was paused for them."""

from __future__ import annotations

import logging
from typing import Final

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse

from delivery.webhooks.items import EndpointItem
from portal import plain_text
from portal.web import desk_prefix
from tenants.membership import members
from tenants.tenancy.context import TenantContext

log = logging.getLogger("pooldesk.mail")
NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject


def tell_owners(tenant: TenantContext, endpoint: EndpointItem, because: str) -> None:
    """Mail each owner. A failure is logged: the page and the audit trail say the same."""
    desk = plain_text.without_controls(tenant.name, limit=NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        url = settings.PORTAL_BASE_URL + reverse("delivery:webhook", args=[endpoint.endpoint_id])
    context = {"tenant_name": desk, "endpoint": endpoint, "because": because, "url": url}
    text = render_to_string("webhooks/mail/paused.txt", context)
    for owner in members.owners_of(tenant.repository):
        try:
            EmailMessage(f"A webhook of {desk} was paused", text, to=[owner.email]).send()
        except OSError:
            log.exception("An owner could not be told that an endpoint was paused.")
