"""Mail is sent beside the request, so that its duration tells nobody whether an account exists."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from tenants.identity import accounts
from tenants.identity.models import User
from tenants.membership import invites
from tenants.membership.items import InviteItem
from tenants.tenancy.roles import Role

log = logging.getLogger("pooldesk.mail")
# Threads start at first use, so a forked web worker has its own.
_sender = ThreadPoolExecutor(1, thread_name_prefix="mail")


def send_password_reset(address: str, link: str) -> None:
    """Look the address up and, if an active account has it, mail a link that works once within an hour.

    `link` has the placeholders UID and TOKEN. Everything happens in another thread; failures are logged.
    """
    _sender.submit(_logged, address, link)


def send_invitation(invite: InviteItem, *, tenant_name: str, url: str) -> None:
    """Mail an invitation's link, in another thread. A failure is logged; the invitation can be sent again."""
    context = {"invite": invite, "tenant_name": tenant_name, "url": url, "days": invites.LIFETIME.days}
    context |= {"role": Role(invite.role)}
    subject = f"{invite.invited_by_name} invites you to {tenant_name}"
    _sender.submit(_invitation_logged, subject, invite.email, context)


def _invitation_logged(subject: str, address: str, context: dict[str, Any]) -> None:
    try:
        _send("invitation", subject, address, context)
    except Exception:
        log.exception("An invitation could not be sent.")


def wait_until_sent() -> None:
    """Return when all mail given so far has been handed over. For tests and for a clean stop."""
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
    token = default_token_generator.make_token(user)
    url = link.replace("UID", uid).replace("TOKEN", token)
    context = {"user": user, "url": url, "minutes": settings.PASSWORD_RESET_TIMEOUT // 60}
    _send("password_reset", "Choose a new password for Pooldesk", user.email, context)


def _send(template: str, subject: str, address: str, context: dict[str, Any]) -> None:
    """Text and HTML from templates/tenants/mail. A subject is one line, whatever people call themselves."""
    message = EmailMultiAlternatives(
        subject=" ".join(subject.split()),
        body=render_to_string(f"tenants/mail/{template}.txt", context),
        to=[address],
    )
    message.attach_alternative(render_to_string(f"tenants/mail/{template}.html", context), "text/html")
    message.send()
