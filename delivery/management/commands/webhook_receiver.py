"""Receive webhooks on this machine and show them, for development."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.template.loader import render_to_string

from delivery.webhooks import development_receiver
from delivery.webhooks.development_receiver import Receiving
from portal.errors import Invalid
from portal.management.command import PortalCommand


class Command(PortalCommand):
    help = (
        "Receive webhooks on this machine, at WEBHOOK_RECEIVER: show what arrives, check the signatures by the secrets "
        "that its page is told, answer slowly or with errors on wish. Runs until it is stopped; for development."
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
            server = development_receiver.server(address.port, state, render=page_of)
        except OSError as error:
            raise CommandError(f"{settings.WEBHOOK_RECEIVER} cannot be used: {error.strerror}.") from error
        self.stdout.write(f"Send webhooks to {settings.WEBHOOK_RECEIVER}{development_receiver.HOOKS}")
        self.stdout.flush()
        with server:
            server.serve_forever()


def page_of(state: Receiving) -> str:
    """Return the page of the receiver as HTML."""
    with state.lock:
        url = f"{settings.WEBHOOK_RECEIVER}{development_receiver.HOOKS}"
        page = {"state": state, "arrivals": list(state.arrivals), "url": url}
    return render_to_string("webhooks/receiver.html", page)
