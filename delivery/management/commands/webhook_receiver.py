"""Receive webhooks on this machine and show them, and the mails that were sent, for development."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.template.loader import render_to_string

from delivery.webhooks import development_receiver
from delivery.webhooks.development_receiver import ReceiverPage, Receiving
from portal.errors import Invalid
from portal.mailing import development_mail
from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost


class Command(PortalCommand):
    costs = cost()
    help = (
        "Receive webhooks on this machine, at WEBHOOK_RECEIVER: show what arrives, check the signatures by the secrets "
        "that its page is told, answer slowly or with errors on wish. The page /mail shows the mails that were written "
        "to files, and writes letters to the desks. Runs until it is stopped; for development."
    )
    again = "The requests that it received are not stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--secret", action="append", default=[], help="a secret to check with, any number of times")

    def work(self, options: dict[str, Any]) -> None:
        address = urlsplit(settings.WEBHOOK_RECEIVER)
        if address.hostname != "127.0.0.1" or not address.port:
            raise Invalid("Set WEBHOOK_RECEIVER to an address of this machine with a port, as http://127.0.0.1:8410.")
        state = Receiving(secrets=list(options["secret"]))
        try:
            pages = {MAIL: ReceiverPage(mail_page, take_letter)}
            server = development_receiver.server(address.port, state, render=page_of, pages=pages)
        except OSError as error:
            raise CommandError(f"{settings.WEBHOOK_RECEIVER} cannot be used: {error.strerror}.") from error
        self.stdout.write(f"Send webhooks to {settings.WEBHOOK_RECEIVER}{development_receiver.HOOKS}")
        self.stdout.flush()
        with server:
            server.serve_forever()


def page_of(state: Receiving) -> str:
    with state.lock:
        url = f"{settings.WEBHOOK_RECEIVER}{development_receiver.HOOKS}"
        page = {"state": state, "arrivals": list(state.arrivals), "url": url}
    return render_to_string("webhooks/receiver.html", page)


# --- mail ---


MAIL: Final = "/mail"
_FORM: Final = ("sender", "to", "subject", "text", "answers", "references")


def mail_page(typed: Mapping[str, str] = MappingProxyType({}), problem: str = "") -> str:
    """Return the page of the mails that were sent, with a form that writes to a desk."""
    folder = getattr(settings, "EMAIL_FILE_PATH", None)
    usual = {"sender": "jane@example.org", "to": f"acme@{settings.MAIL_DOMAIN}"}
    page = {
        "folder": folder,
        "mails": development_mail.sent(Path(folder)) if folder else [],
        "typed": {name: typed.get(name, usual.get(name, "")) for name in _FORM},
        "problem": problem,
        "server": settings.MAIL_RECEIVER,
        "domain": settings.MAIL_DOMAIN,
    }
    return render_to_string("webhooks/sent_mails.html", page)


def take_letter(typed: Mapping[str, str]) -> str:
    """Send a letter to a desk; return the page that says why it was not taken, "" where it was."""
    values = {name: typed.get(name, "") for name in _FORM}
    try:
        letter = development_mail.letter(**values)
        development_mail.hand_in(
            settings.MAIL_RECEIVER, letter.as_bytes(), sender=values["sender"], recipients=[values["to"]]
        )
    except (Invalid, ValueError) as error:  # ValueError of a header that no letter can have
        return mail_page(values, error.message if isinstance(error, Invalid) else f"This is no letter: {error}")
    return ""
