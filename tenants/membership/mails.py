"""Send mails beside the request, so that its duration tells nobody whether an account exists."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from portal import plain_text
from tenants.identity import accounts
from tenants.identity.models import User
from tenants.identity.reset_links import RESET_LINKS
from tenants.membership import invite_storage
from tenants.membership.items import InviteItem
from tenants.tenancy.roles import Role

SUBJECT_NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
INVITER_NAME_LIMIT: Final = 60  # characters of the inviter's name in a mail
log = logging.getLogger("pooldesk.mail")
# Threads start at first use, so a forked web worker has its own.
_sender = ThreadPoolExecutor(1, thread_name_prefix="mail")


def send_password_reset(address: str, link: str) -> None:
    """Look the address up, and mail a link that works once within an hour if an active account has the address.

    `link` has the placeholders UID and TOKEN. All of it happens in another thread; failures are logged.
    """
    _sender.submit(_logged, address, link)


def send_invitation(invite: InviteItem, *, tenant_name: str, url: str) -> None:
    """Mail an invitation's link, in another thread. A failure is logged; the invitation can be sent again.

    Names that the tenant chose are cut and cleaned, so that a mail cannot be turned into an advertisement or a false
    warning. The subject holds the name of the tenant alone.
    """
    desk = plain_text.without_controls(tenant_name, limit=SUBJECT_NAME_LIMIT)
    context = {"invite": invite, "tenant_name": desk, "url": url, "days": invite_storage.LIFETIME.days}
    context |= {"role": Role(invite.role)}
    context["inviter"] = plain_text.without_controls(invite.invited_by_name, limit=INVITER_NAME_LIMIT)
    subject = f"Invitation to {desk} on Pooldesk"
    _sender.submit(_invitation_logged, subject, invite.email, context)


def _invitation_logged(subject: str, address: str, context: dict[str, Any]) -> None:
    try:
        _send("invitation", subject, address, context)
    except Exception:
        log.exception("An invitation could not be sent.")


def wait_until_sent() -> None:
    """Wait until all mails so far have been handed over. For tests and for a clean stop."""
    _sender.submit(lambda: None).result()


def _logged(address: str, link: str) -> None:
    try:
        user = accounts.find_by_email(address)
        if user is not None and user.is_active:
            _send_reset(user, link)
    except Exception:
        log.exception("A password reset mail could not be sent.")


def _send_reset(user: User, link: str) -> None:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = RESET_LINKS.make_token(user)
    url = link.replace("UID", uid).replace("TOKEN", token)
    context = {"user": user, "url": url, "minutes": settings.PASSWORD_RESET_TIMEOUT // 60}
    _send("password_reset", "Choose a new password for Pooldesk", user.email, context)


def _send(template: str, subject: str, address: str, context: dict[str, Any]) -> None:
    """Send one mail, as text and HTML from templates/tenants/mail. The subject is made one line."""
    message = EmailMultiAlternatives(
        subject=" ".join(subject.split()),
        body=render_to_string(f"tenants/mail/{template}.txt", context),
        to=[address],
    )
    message.attach_alternative(render_to_string(f"tenants/mail/{template}.html", context), "text/html")
    message.send()
