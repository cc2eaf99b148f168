"""Write the mails of identity and membership.

Where mail leaves by the outbox, an invitation's is written in the transaction of the invitation, and a password reset's
in the request that asks for it: with the same calls whether there is such an account or not. Where this process carries
mail itself, that happens beside the request, so that its duration tells nobody whether an account exists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from portal import clock, logs, plain_text
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.web import locales
from tenants.membership import invitations
from tenants.membership.stored import InviteItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import Profile, User
from tenants.sign_in.passwords import RESET_LINKS
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import page_for_mail

SUBJECT_NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
INVITER_NAME_LIMIT: Final = 60  # characters of the inviter's name in a mail
REASON_LIMIT: Final = 300  # characters of an operator's reason
log = logging.getLogger("pooldesk.mail")
# Threads start at first use, so a forked web worker has its own.
_sender = ThreadPoolExecutor(1, thread_name_prefix="mail")


def send_password_reset(address: str, link: str) -> None:
    """Look the address up, and mail a link that works once within an hour if an active account has the address.

    `link` has the placeholders UID and TOKEN. Raises Throttled and Unavailable where mail leaves by the outbox;
    else all of it happens in another thread, and failures are logged.
    """
    language = locales.current().language
    if outgoing.leaves_at_once():
        _sender.submit(_logged, address, link, language, caused_by=logs.request_id())
    else:
        _reset(address, link, language).send()


def invitation(invite: InviteItem, *, tenant: TenantContext, url: str) -> OutgoingMail:
    """Write the mail of an invitation's link, in the language of the desk, else in that of the page.

    Names that the tenant chose are cut and cleaned, so that a mail cannot be turned into an advertisement or a false
    warning. The subject holds the name of the tenant alone.
    """
    with locales.in_language(tenant.chosen_language or locales.current().language):
        return _invitation(invite, tenant=tenant, url=url)


def _invitation(invite: InviteItem, *, tenant: TenantContext, url: str) -> OutgoingMail:
    desk = plain_text.named(tenant.name, limit=SUBJECT_NAME_LIMIT)
    context = {"invite": invite, "tenant_name": desk, "url": url, "days": invitations.LIFETIME.days}
    context |= {"role": Role(invite.role)}
    context["until"] = clock.parse(invite.access_until) if invite.access_until else None
    context["purpose"] = plain_text.named(invite.purpose or "", limit=REASON_LIMIT)
    context["inviter"] = plain_text.named(invite.invited_by_name, limit=INVITER_NAME_LIMIT)
    return _mail(
        "invitation",
        _("Invitation to %(desk)s on Pooldesk") % {"desk": desk},
        context,
        to=invite.email,
        about=f"invitation/{invite.invite_id}",
        tenant_id=tenant.tenant_id,
        queues=tenant.queues,
        worth_until=clock.parse(invite.expires_at),
    )


def by_provider(request: HttpRequest | None, tenant: TenantContext) -> Callable[[InviteItem, str], OutgoingMail]:
    """Return what writes the mail of an invitation that an operator sends, by a page, or a command without request."""

    def write(invite: InviteItem, secret: str) -> OutgoingMail:
        url = page_for_mail(reverse("tenants:invitation", args=[secret]), request)
        return invitation(invite, tenant=tenant, url=url)

    return write


def send_beside(message: OutgoingMail) -> None:
    """Send a mail in another thread. A failure is logged; an invitation can be sent again."""
    _sender.submit(outgoing.send_all, [message])


def wait_until_sent() -> None:
    """Wait until all mails so far have been handed over. For tests and for a clean stop."""
    _sender.submit(lambda: None).result()


def _logged(address: str, link: str, language: str, *, caused_by: str) -> None:
    try:
        with logs.following(caused_by):
            message = _reset(address, link, language)
        if not message.decoy:
            message.send()
    except Exception:
        log.exception("A password reset mail could not be sent.")


def _reset(address: str, link: str, language: str) -> OutgoingMail:
    """Return the mail to whoever has the address; where no active account has it, one as long that reaches nobody."""
    found = accounts.find_by_email(address)
    is_known = found is not None and found.is_active
    user = found if found is not None and is_known else User(id=accounts.new_id(), email=address, name=address)
    with locales.shown_in(Profile.parse(user.profile).locale(language=language)):
        return password_link(user, link, decoy=not is_known)


def password_link(user: User, link: str, *, reason: str = "", decoy: bool = False) -> OutgoingMail:
    """Write the mail of a link by which this person chooses a new password, once within an hour.

    `reason` is an operator's, where one has the link sent.
    """
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    url = link.replace("UID", uid).replace("TOKEN", RESET_LINKS.make_token(user))
    lifetime = settings.PASSWORD_RESET_TIMEOUT
    told = plain_text.without_controls(reason, limit=REASON_LIMIT)
    return _mail(
        "password_reset",
        _("Choose a new password for Pooldesk"),
        {
            "user": user,
            "name": plain_text.named(user.name, limit=INVITER_NAME_LIMIT) if not decoy else user.name,
            "url": url,
            "minutes": lifetime // 60,
            "reason": told,
        },
        to=user.email,
        about=f"account/{user.pk}",
        worth_until=clock.now() + timedelta(seconds=lifetime),
        decoy=decoy,
    )


def _mail(kind: str, subject: str, context: dict[str, Any], **how: Any) -> OutgoingMail:
    """Write one mail, as text and HTML from templates/tenants/mail."""
    text, html = (render_to_string(f"tenants/mail/{kind}.{ending}", context) for ending in ("txt", "html"))
    return OutgoingMail(kind=kind, subject=subject, text=text, html=html, **how)
