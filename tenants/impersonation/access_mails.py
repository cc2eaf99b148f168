"""Write the mails to the owners of a desk when an operator begins to act as one of its members."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from portal import plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix, locales
from tenants.membership import members
from tenants.membership.members import Member
from tenants.sign_in.impersonation_session import Impersonation
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import page_for_mail

NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
MOST: Final = 20  # owners of one desk who are told: each mail is a member of the transaction


def to_owners(
    tenant: TenantContext, impersonation: Impersonation, reason: str, *, request: HttpRequest
) -> list[OutgoingMail]:
    """Return a mail for each owner; `request` is the operator's. Costs one consistent Query."""
    desk = plain_text.named(tenant.name, limit=NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        url = page_for_mail(reverse("tenants:platform_access"), request)
    names = {
        who: plain_text.named(name, limit=NAME_LIMIT)
        for who, name in (("operator", impersonation.operator_name), ("member", impersonation.member_name))
    }
    context = {"tenant_name": desk, "acting": impersonation, "names": names, "reason": reason, "url": url}

    def mail(owner: Member) -> OutgoingMail:
        with locales.shown_in(owner.locale_at(tenant)):
            return OutgoingMail(
                to=owner.email,
                subject=_("Support acts as a member of %(desk)s") % {"desk": desk},
                text=render_to_string("tenants/mail/impersonation.txt", context),
                kind="impersonation",
                about=f"access/{impersonation.visit}",
                tenant_id=tenant.tenant_id,
                queues=tenant.queues,
            )

    return [mail(owner) for owner in members.owners_of(tenant.repository)[:MOST]]
