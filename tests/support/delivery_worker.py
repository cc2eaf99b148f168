"""A worker in a process of its own, for tests that kill it.

What it delivers is a line in a file, tenant and destination. A destination with "kill" in its name kills the process in
the middle of the work, one with "hang" never returns, one with "slow" takes a second, one with "wait" waits for a file
`go_on`. What a dead worker had is seen again after three seconds instead of thirty.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
if not apps.ready:
    django.setup()

from django.core.management import call_command

from delivery.outbox import destinations
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.queues import consumer
from delivery.queues.consumer import Consumer


def main(file: Path) -> None:
    """Be the worker, until it is stopped or killed."""

    def deliver(work: Work) -> Outcome:
        with file.open("a") as lines:
            lines.write(f"begun {work.tenant_id} {work.destination}\n")
        if "kill" in work.destination:
            os.kill(os.getpid(), signal.SIGKILL)
        if "hang" in work.destination:
            threading.Event().wait()
        if "slow" in work.destination:
            time.sleep(1)
        while "wait" in work.destination and not file.with_name("go_on").exists():
            time.sleep(0.01)
        with file.open("a") as lines:
            lines.write(f"answered {work.tenant_id} {work.destination}\n")
        return Outcome("answered")

    def stop(of: Consumer, **given: float) -> bool:
        with file.open("a") as lines:
            lines.write("asked to end\n")
        return ending(of, **given)

    ending, Consumer.stop = Consumer.stop, stop  # type: ignore[method-assign]
    consumer.VISIBILITY_SECONDS = 3  # type: ignore[misc]
    consumer.POLL_SECONDS = 1  # the engine still hands messages to the poll of one that was killed
    consumer.EXTEND_SECONDS = 0.5  # type: ignore[misc]
    destinations.declare_destination("test_", deliver)
    call_command("run_delivery", "--worker", "1", "--of", "1", "--metrics", "0")
