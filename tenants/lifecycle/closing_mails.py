"""Write the mails that tell the owners of a desk that it was closed, or that this was undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from portal import clock, plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix, locales
from tenants.audit_trail.recording import Actor
from tenants.membership.members import Member
from tenants.tenancy import context
from tenants.tenancy.request import page_for_mail
from tenants.tenancy.stored import TenantItem

NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
REASON_LIMIT: Final = 500  # characters of what an operator wrote
MOST: Final = 20  # owners of one desk who are told: each mail is a member of the transaction that closes it


def to_owners(
    tenant: TenantItem,
    owners: Sequence[Member],
    *,
    by: Actor,
    closes_at: str,
    reason: str = "",
    request: HttpRequest | None = None,
) -> list[OutgoingMail]:
    """Return a mail for each owner; see `desk_closing.Write`. `request` is that of a page, which a command has not."""
    desk = _desk(tenant)
    until = clock.parse(closes_at) if closes_at else None
    more: dict[str, Any] = {"until": until, "has_grace": until and until > clock.now(), "reason": _quoted(reason)}
    kind = "desk_closed" if closes_at else "desk_reopened"

    def subject() -> str:
        if not until:
            return _("%(desk)s will not be deleted") % {"desk": desk}
        return _("%(desk)s may be deleted from %(day)s on") % {"desk": desk, "day": locales.current().day(until)}

    return _mails(tenant, owners, subject, "tenants/mail/closing.txt", kind, by=by, request=request, **more)


def of_deletion(
    tenant: TenantItem,
    owners: Sequence[Member],
    *,
    by: Actor,
    begins: datetime,
    reason: str,
    request: HttpRequest | None = None,
) -> list[OutgoingMail]:
    """Return a mail for each owner of a closed desk that says that an operator has ordered its deletion."""
    more: dict[str, Any] = {"begins": begins, "reason": _quoted(reason)}

    def subject() -> str:
        return _("%(desk)s is about to be deleted") % {"desk": _desk(tenant)}

    return _mails(tenant, owners, subject, "tenants/mail/deletion.txt", "desk_deletion", by=by, request=request, **more)


def _desk(tenant: TenantItem) -> str:
    return plain_text.named(tenant.name, limit=NAME_LIMIT)


def _quoted(reason: str) -> str:
    return plain_text.without_controls(reason, limit=REASON_LIMIT)


def _mails(
    tenant: TenantItem,
    owners: Sequence[Member],
    subject: Callable[[], str],
    template: str,
    kind: str,
    *,
    by: Actor,
    request: HttpRequest | None = None,
    **more: Any,
) -> list[OutgoingMail]:
    with desk_prefix.addresses_of(tenant.slug):
        url = page_for_mail(reverse("tickets:queue" if kind == "desk_reopened" else "tenants:close"), request)
    # An operator is no member whom the owners know: they read who runs the platform.
    by_owner = by.id in {owner.id for owner in owners}
    desk, told = context.for_system(tenant), {"tenant_name": _desk(tenant), "url": url, **more}

    def mail(owner: Member) -> OutgoingMail:
        with locales.shown_in(owner.locale_at(desk)):
            return OutgoingMail(
                to=owner.email,
                subject=subject(),
                text=render_to_string(template, told | {"who": by.email if by_owner else _("Your Pooldesk provider")}),
                kind=kind,
                about=f"desk/{tenant.tenant_id}",
                tenant_id=tenant.tenant_id,
                queues=desk.queues,
            )

    return [mail(owner) for owner in owners[:MOST]]
