"""Write the mails to the owners of a desk when one of its endpoints is paused for them."""

from __future__ import annotations

from typing import Final

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from delivery.webhooks.stored import EndpointItem
from portal import plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix, locales
from portal.web.locales import stored_text
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import page_for_mail

NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
MOST: Final = 20  # owners of one desk who are told: each mail is a member of the transaction that pauses


def to_owners(tenant: TenantContext, endpoint: EndpointItem, because: str) -> list[OutgoingMail]:
    """Return a mail for each owner. Costs one consistent Query."""
    desk = plain_text.named(tenant.name, limit=NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        url = page_for_mail(reverse("delivery:webhook", args=[endpoint.endpoint_id]))
    context = {"tenant_name": desk, "endpoint": endpoint, "url": url}
    mails = []
    for owner in members.owners_of(tenant.repository)[:MOST]:
        with locales.shown_in(owner.locale_at(tenant)):
            mails.append(
                OutgoingMail(
                    to=owner.email,
                    subject=_("A webhook of %(desk)s was paused") % {"desk": desk},
                    text=render_to_string("webhooks/mail/paused.txt", context | {"because": stored_text(because)}),
                    kind="webhook_paused",
                    about=f"webhook/{endpoint.endpoint_id}",
                    tenant_id=tenant.tenant_id,
                    queues=tenant.queues,
                )
            )
    return mails
