"""Write the mail of a rule to a member."""

from __future__ import annotations

from email.utils import formataddr, parseaddr
from typing import Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from delivery.mail.outbox_backend import MailContent
from portal import plain_text
from portal.web import desk_prefix, locales
from tenants.tenancy.request import page_for_mail
from tickets.rules.answering import RuleMail

_LIMIT: Final = 120  # characters of a name or a title


def mail(told: RuleMail) -> MailContent:
    """Return the mail: what the rule says, a link to the ticket, and why it came."""
    desk = plain_text.named(told.tenant.name, limit=60)
    number, title = int(told.summary.number), plain_text.without_controls(told.summary.title, limit=_LIMIT)
    with desk_prefix.addresses_of(told.tenant.slug):
        url = page_for_mail(reverse("tickets:ticket", args=[number]))
    name = plain_text.named(told.rule.name, limit=_LIMIT)
    with locales.shown_in(told.person.locale_at(told.tenant)):
        why = _("The rule “%(name)s” of %(desk)s sent this mail.") % {"name": name, "desk": desk}
    return MailContent(
        sender=formataddr((desk, parseaddr(settings.DEFAULT_FROM_EMAIL)[1])),
        to=[told.person.email],
        subject=f"[{desk}] #{number} {title}",
        body=f"{told.text}\n\n{url}\n\n-- \n{why}\n",
        headers={"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"},
    )
