"""Mail is sent beside the request, so that its duration tells nobody whether an account exists."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from tenants import accounts
from tenants.models import User

log = logging.getLogger("pooldesk.mail")
# Threads start at first use, so a forked web worker has its own.
_sender = ThreadPoolExecutor(1, thread_name_prefix="mail")


def send_password_reset(address: str, link: str) -> None:
    """Look the address up and, if an active account has it, mail a link that works once within an hour.

    `link` has the placeholders UID and TOKEN. Everything happens in another thread; failures are logged.
    """
    _sender.submit(_logged, address, link)


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
    message = EmailMultiAlternatives(
        subject="Choose a new password for Pooldesk",
        body=render_to_string("tenants/mail/password_reset.txt", context),
        to=[user.email],
    )
    message.attach_alternative(render_to_string("tenants/mail/password_reset.html", context), "text/html")
    message.send()
