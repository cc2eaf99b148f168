"""Write the mail to an owner whose export is ready. It leads to the page, and holds no link that opens the file."""

from __future__ import annotations

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext

from portal import clock, plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix, locales
from tenants.lifecycle.closing_mails import NAME_LIMIT
from tenants.membership.members import Member
from tenants.tenancy import context
from tenants.tenancy.request import page_for_mail
from tenants.tenancy.stored import TenantItem
from tickets.desk_export.stored import ExportItem


def ready(tenant: TenantItem, owner: Member, item: ExportItem) -> OutgoingMail:
    """Return the mail that says until when the file can be fetched, and where."""
    desk = plain_text.without_controls(tenant.name, limit=NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        url = page_for_mail(reverse("tickets:desk_export"))
    until = clock.parse(item.expires_at)
    reader = context.for_system(tenant)
    with locales.shown_in(owner.locale_at(reader)):
        return OutgoingMail(
            to=owner.email,
            subject=gettext("The export of %(desk)s is ready") % {"desk": desk},
            text=render_to_string("tickets/mail/export_ready.txt", {"tenant_name": desk, "until": until, "url": url}),
            kind="desk_export",
            about=f"export/{item.export_id}",
            tenant_id=tenant.tenant_id,
            queues=reader.queues,
            worth_until=until,
        )
