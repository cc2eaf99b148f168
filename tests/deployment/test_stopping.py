"""Processes end within 20 seconds of SIGTERM, so that a new version takes over without a request that fails."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from delivery.queues import consumer, message_handling
from portal.engines.endpoint import port_obstacle
from portal.management import worker_command
from portal.web import gunicorn_config
from tests.support.api_client import ApiClient, api_client
from tests.support.deployed import Process, Version
from tests.support.waiting import PATIENCE, wait_until
from tests.support.world import World

MOST_SECONDS = 20
PER_SECOND = 50
ENOUGH = 20  # requests of one server, to be in the midst of them
CLIENTS = 8
ROOM = {"WEB_THREADS": "32"}  # one desk gets half of the threads at a time, and here all clients are one desk's


def test_each_kind_of_process_gives_up_in_time() -> None:
    assert gunicorn_config.graceful_timeout <= MOST_SECONDS
    assert message_handling.DELIVERY_SECONDS < consumer.STOP_SECONDS < worker_command.STOP_SECONDS < MOST_SECONDS


HANGING = """
import os, signal, threading, django
django.setup()
from portal.engines.endpoint import port_obstacle
from portal.management import worker_command
worker_command.STOP_SECONDS = 0.1

class Command(worker_command.WorkerCommand):
    costs = None

    def work(self, options):
        with self.working({}):
            os.kill(os.getpid(), signal.SIGTERM)
            self.wait_for_signal()
            threading.Event().wait()  # for something that never ends

Command().handle()
"""


def test_a_worker_whose_work_does_not_end_ends_all_the_same_and_says_so() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], cwd=settings.BASE_DIR, capture_output=True, text=True, check=False,
        timeout=PATIENCE, env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert "Something did not end within 0.1 s of the signal; it is done again." in ended.stderr


class Traffic:
    """Clients behind a load balancer: it keeps connections to its servers, and chooses among those that are registered.

    Each request is sent once. `failed` has those without a good answer, `created` the numbers of new tickets.
    """

    def __init__(self, client: ApiClient) -> None:
        self._key = client.key
        self._servers: list[Process] = []
        self._stopping = threading.Event()
        self._numbers = itertools.count()
        self.answers: Counter[str] = Counter()  # by server
        self.failed: list[str] = []
        self.created: list[int] = []

    @contextmanager
    def flowing(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._client) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()

    def register(self, server: Process) -> None:
        self._servers = [*self._servers, server]

    def deregister(self, server: Process) -> None:
        self._servers = [one for one in self._servers if one is not server]

    def _client(self) -> None:
        connections: dict[str, http.client.HTTPConnection] = {}
        due = time.monotonic()
        while not self._stopping.is_set():
            due = max(due + CLIENTS / PER_SECOND, time.monotonic() - 1)
            self._stopping.wait(max(0.0, due - time.monotonic()))
            server = random.choice(self._servers)  # noqa: S311  # no secret
            connection = connections.get(server.url)
            if connection is None:
                connection = http.client.HTTPConnection(str(urlsplit(server.url).netloc), timeout=PATIENCE)
                connections[server.url] = connection
            self._ask(server, connection, next(self._numbers))
        for connection in connections.values():
            connection.close()

    def _ask(self, server: Process, connection: http.client.HTTPConnection, number: int) -> None:
        headers = {"Authorization": f"Bearer {self._key}", "Idempotency-Key": f"restart-{number:08}"}
        try:
            if number % 5 == 0:
                body = json.dumps({"title": f"Restarted {number}"})
                connection.request("POST", "/api/v1/tickets", body, {**headers, "Content-Type": "application/json"})
            elif number % 5 == 1:
                connection.request("GET", "/login/")
            else:
                connection.request("GET", "/api/v1/tickets", headers={"Authorization": headers["Authorization"]})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.failed.append(f"{number} at {server.url}: {error!r}")
            connection.close()
            return
        self.answers[server.url] += 1
        if answer.status not in (200, 201):
            self.failed.append(f"{number} at {server.url}: {answer.status} {content[:200]!r}")
        elif answer.status == 201:
            self.created.append(json.loads(content)["number"])


def test_a_rolling_restart_under_load_fails_no_request_and_writes_each_ticket_once(
    world: World, tmp_path: Path
) -> None:
    client = api_client(world)
    traffic = Traffic(client)
    with closing(Version("today", settings.BASE_DIR, {**os.environ, **ROOM}, tmp_path)) as version:
        # Before anybody asks: what is asked while they start is no part of a restart.
        servers, successors = ([version.web() for _ in range(2)] for _ in range(2))
        for server in (*servers, *successors):
            wait_until(lambda server=server: port_obstacle(server.port))
        for server in servers:
            traffic.register(server)
        with traffic.flowing():
            for old, new in zip(servers, successors, strict=True):
                before = traffic.answers[old.url]
                wait_until(lambda old=old, before=before: traffic.answers[old.url] > before + ENOUGH)
                traffic.register(new)
                traffic.deregister(old)
                assert version.stop(old) == 0, "by SIGTERM, while what was sent to it is at work"
                wait_until(lambda new=new: traffic.answers[new.url] > ENOUGH // 2)
    assert traffic.failed == []
    stored = client.ask("/tickets?limit=1").json()
    assert len(traffic.created) == len({*traffic.created}) == max(traffic.created), stored
