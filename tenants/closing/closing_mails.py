"""Write the mails that tell the owners of a desk that it was closed, or that this was undone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse

from portal import clock, plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix
from tenants.audit_trail.recording import Actor
from tenants.membership.members import Member
from tenants.tenancy.items import TenantItem
from tenants.tenancy.request import page_for_mail

NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
MOST: Final = 20  # owners of one desk who are told: each mail is a member of the transaction that closes it


def to_owners(
    tenant: TenantItem, owners: Sequence[Member], *, by: Actor, closes_at: str, request: HttpRequest | None = None
) -> list[OutgoingMail]:
    """Return a mail for each owner; see `desk_closing.Write`. `request` is that of a page, which a command has not."""
    desk = plain_text.without_controls(tenant.name, limit=NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        url = page_for_mail(reverse("tenants:close"), request)
    # An operator is no member whom the owners know: they read who runs the platform.
    who = "Your Pooldesk provider" if by.id not in {owner.id for owner in owners} else by.email
    until = clock.parse(closes_at) if closes_at else None
    subject = f"{desk} may be deleted from {until:%-d %B %Y} on" if until else f"{desk} will not be deleted"
    context = {"tenant_name": desk, "who": who, "url": url, "until": until}
    text = render_to_string("tenants/mail/closing.txt", context)
    return [
        OutgoingMail(
            to=owner.email,
            subject=subject,
            text=text,
            kind="desk_closed" if closes_at else "desk_reopened",
            about=f"desk/{tenant.tenant_id}",
            tenant_id=tenant.tenant_id,
            queues=tuple(json.loads(tenant.queues)) if tenant.queues else (),
        )
        for owner in owners[:MOST]
    ]
