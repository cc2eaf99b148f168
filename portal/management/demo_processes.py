"""Say which processes the demo keeps alive: the web server, and the workers whose commands are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import get_commands

from portal.engines.endpoint import LOOPBACK, free_port, port_obstacle
from portal.engines.supervisor import Command

DRAIN_SECONDS: Final = 10  # that the stream worker may take to count what the last requests wrote
RECEIVER_PORT: Final = 8410
MAIL_PORT: Final = 8025
MAIL_DOMAIN: Final = "desk.localhost"
MAIL_SERVER: Final = "mail server"
MAIL_PAGE: Final = "/mail"  # of the development receiver
# Commands of apps that may be installed.
CREATE_QUEUES: Final = "create_queues"
CREATE_BUCKET: Final = "create_bucket"


def _lines() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a name, and the command with its options, for each worker: the first is the first to be started and the
    last to be stopped, so that each still sees what those behind it leave. "{mail_port}" stands for a port."""
    yield "development receiver", ("webhook_receiver",)
    yield "stream worker", ("run_stream", "--drain", str(DRAIN_SECONDS), "--metrics", "0")
    for number in range(1, settings.DELIVERY_WORKERS + 1):
        name = "delivery worker" if settings.DELIVERY_WORKERS == 1 else f"delivery worker {number}"
        yield name, ("run_delivery", "--worker", str(number), "--metrics", "0")
    yield "dispatcher", ("run_dispatch", "--metrics", "0")
    yield MAIL_SERVER, ("receive_mail", "--port", "{mail_port}", "--metrics", "0")


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), *arguments]


def workers(environ: MutableMapping[str, str]) -> list[Command]:
    """Return the workers whose commands there are, and name in `environ` where the development receiver and the mail
    server are."""
    there = {name: line for name, line in _lines() if line[0] in get_commands()}
    environ.setdefault("WEBHOOK_RECEIVER", f"http://{LOOPBACK}:{_port(RECEIVER_PORT)}")
    environ.setdefault("MAIL_DOMAIN", getattr(settings, "MAIL_DOMAIN", "") or MAIL_DOMAIN)
    environ.setdefault("MAIL_RECEIVER", f"{LOOPBACK}:{_port(MAIL_PORT)}")
    mail_port = environ["MAIL_RECEIVER"].rpartition(":")[2]
    quiet = {"LOG_LEVEL": "WARNING", **environ}
    return [
        Command(name, manage(*(word.format(mail_port=mail_port) for word in line)), quiet)
        for name, line in there.items()
    ]


def _port(usual: int) -> int:
    """Return the usual port, or a free one where it is taken."""
    return free_port() if port_obstacle(usual) else usual


def mail_lines(environ: Mapping[str, str]) -> str:
    """Return the banner's lines on mail: how to write to a desk, and where to see what was sent."""
    return (
        f"  Mail in    acme@{environ['MAIL_DOMAIN']} and other desks, by SMTP at {environ['MAIL_RECEIVER']}\n"
        f"  Mail out   {environ['WEBHOOK_RECEIVER']}{MAIL_PAGE}: what was sent, and a form that writes to a desk\n"
    )


def web_server(environ: MutableMapping[str, str], options: dict[str, Any]) -> Command:
    """Return the web server, at the port of the demo's options."""
    gunicorn = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    gunicorn += ["--chdir", str(settings.BASE_DIR), "--bind", f"{LOOPBACK}:{options['port']}"]
    return Command("web server", [*gunicorn, "--log-level", "warning"], environ)
