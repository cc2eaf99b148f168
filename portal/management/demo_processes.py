"""Say which processes the demo keeps alive: the web server, and the workers whose commands are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import get_commands

from portal.engines.endpoint import LOOPBACK, free_port, port_obstacle
from portal.engines.supervisor import Command

DRAIN_SECONDS: Final = 10  # that the stream worker may take to count what the last requests wrote
RECEIVER_PORT: Final = 8410
CREATE_QUEUES: Final = "create_queues"  # a command of an app above, if it is installed


def _lines() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield a name, and the command with its options, for each worker: the first is the first to be started and the
    last to be stopped, so that each still sees what those behind it leave."""
    yield "development receiver", ("webhook_receiver",)
    yield "stream worker", ("run_stream", "--drain", str(DRAIN_SECONDS), "--metrics", "0")
    for number in range(1, settings.DELIVERY_WORKERS + 1):
        name = "delivery worker" if settings.DELIVERY_WORKERS == 1 else f"delivery worker {number}"
        yield name, ("run_delivery", "--worker", str(number), "--metrics", "0")
    yield "dispatcher", ("run_dispatch", "--metrics", "0")


def manage(*arguments: str) -> list[str]:
    """Return the command line of a management command."""
    return [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), *arguments]


def workers(environ: MutableMapping[str, str]) -> list[Command]:
    """Return the workers whose commands there are, and name in `environ` where the development receiver is."""
    there = {name: line for name, line in _lines() if line[0] in get_commands()}
    port = free_port() if port_obstacle(RECEIVER_PORT) else RECEIVER_PORT
    environ.setdefault("WEBHOOK_RECEIVER", f"http://{LOOPBACK}:{port}")
    quiet = {"LOG_LEVEL": "WARNING", **environ}
    return [Command(name, manage(*line), quiet) for name, line in there.items()]


def web_server(environ: MutableMapping[str, str], options: dict[str, Any]) -> Command:
    """Return the web server, with the port, processes and threads of the demo's options."""
    gunicorn = [sys.executable, "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "portal.wsgi"]
    gunicorn += ["--chdir", str(settings.BASE_DIR), "--bind", f"{LOOPBACK}:{options['port']}"]
    gunicorn += ["--workers", str(options["workers"]), "--threads", str(options["threads"])]
    return Command("web server", [*gunicorn, "--log-level", "warning"], environ)
