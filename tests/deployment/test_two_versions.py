"""The last release and today's version work side by side on the same tables, queues and sessions, as in an upgrade
that replaces processes one by one, is interrupted by kills, and is rolled back: no request fails, and nothing is lost
or written twice.

`infra/last_release.txt` names the commit; LAST_RELEASE=<commit> tries another one.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings

from portal.engines.endpoint import LOOPBACK, point_at
from proofs.scenarios.persistent_people import NothingCameBack, PageAnswer, PlainBrowser, form_with
from tests.engine_plugin import QuickMinistack
from tests.support.deployed import PASSWORD, PEOPLE, Version, begin
from tests.support.waiting import PATIENCE, wait_until

TODAY: Final = Path(settings.BASE_DIR)
RECORD: Final = TODAY / "infra" / "last_release.txt"
PRIORITIES: Final = ("low", "high", "urgent", "normal")
IN_PROGRESS: Final = "idempotency_in_progress"
COMMENTS: Final = 2  # of each person, while the same processes run


class Balancer:
    """Gives each request the next one of the servers, and asks another one where nothing came back."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self._number = count()

    def ask(self, ask: Callable[[int], PageAnswer]) -> PageAnswer:
        answers: list[PageAnswer] = []

        def answered() -> bool:
            ports = self.ports
            try:
                answers.append(ask(ports[next(self._number) % len(ports)]))
            except NothingCameBack:  # it was killed, or does not listen yet
                return False
            return True

        wait_until(answered)
        return answers[0]


class Person(PlainBrowser):
    """Somebody with one session, whose pages and forms come from whichever server is next."""

    def __init__(self, balancer: Balancer) -> None:
        super().__init__(0)
        self._balancer = balancer

    def ask(self, path: str, form: dict[str, str] | None = None) -> PageAnswer:
        def at(port: int) -> PageAnswer:
            self._site = f"http://{LOOPBACK}:{port}"
            return super(Person, self).ask(path, form)

        return self._balancer.ask(at)


class Traffic:
    """What people and a system did, as they were told that it was done."""

    def __init__(self, balancer: Balancer, key: str) -> None:
        self._balancer, self._key = balancer, key
        self.failed: list[str] = []
        self.titles: dict[int, str] = {}
        self.bodies: dict[int, list[str]] = {}
        self.priorities: dict[int, str] = {}
        self.written = 0  # comments
        self._people = {name: Person(balancer) for name in PEOPLE}

    def sign_in(self) -> None:
        for name, person in self._people.items():
            self._send(person, "/login/", email=f"{name}@example.com", password=PASSWORD)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Let each person do a round, and wait for their end."""
        threads = [threading.Thread(target=self._work, args=(name,)) for name in PEOPLE]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()

    def _work(self, name: str) -> None:
        try:
            self._round(self._people[name])
        except Exception as error:
            self.failed.append(f"{name}: {error!r}")

    def _round(self, person: Person) -> None:
        """Write a ticket and comments, change the ticket, and read lists: by forms and by the API in turn."""
        title = f"Ticket {os.urandom(4).hex()}"
        if int(title[-1], 16) % 2:
            place = self._send(person, "/acme/tickets/new/", "title", title=title, priority="normal")
            number = int(place.rstrip("/").rpartition("/")[2])
        else:
            number = self.api("POST", "/tickets", {"title": title, "priority": "normal"}, 201)["number"]
        self.titles[number], self.bodies[number] = title, []
        for index in range(COMMENTS):
            body = f"{title}, comment {index}"
            if index == 1:
                self.api("POST", f"/tickets/{number}/comments", {"body": body}, 201)
            else:
                self._send(person, f"/acme/tickets/{number}/", "body", body=body)
            self.bodies[number].append(body)
            self.written += 1
            self.priorities[number] = PRIORITIES[index]
            self.api("PATCH", f"/tickets/{number}", {"priority": PRIORITIES[index]}, 200)
        for path in ("/acme/tickets/", "/acme/tickets/dashboard/", f"/acme/tickets/{number}/"):
            self._get(person, path)
        self.api("GET", "/tickets?limit=20", None, 200)

    def _get(self, person: Person, path: str) -> PageAnswer:
        answer = person.ask(path)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer}")
        return answer

    def _send(self, person: Person, path: str, *fields: str, **given: str) -> str:
        """Fill in a form of a page and send it; return where its answer leads."""
        form = form_with(self._get(person, path), path, *(fields or given))
        assert form is not None, path
        answer = person.ask(form.action, form.hidden | given)
        if answer.status != 302:
            raise AssertionError(f"POST {path}: {answer}")
        return answer.location

    def api(self, method: str, path: str, body: Any, expected: int) -> Any:
        """Call the API as a system does: what got no answer is sent again, with the same Idempotency-Key."""
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": os.urandom(16).hex()} if method == "POST" else {}
        data = None if body is None else json.dumps(body).encode()

        def at(port: int) -> PageAnswer:
            url = f"http://{LOOPBACK}:{port}/api/v1{path}"
            try:
                try:
                    answer = urllib.request.urlopen(
                        urllib.request.Request(url, data, headers, method=method), timeout=PATIENCE
                    )
                except urllib.error.HTTPError as error:
                    answer = error
                with answer:
                    said = PageAnswer(answer.status, "", answer.read().decode())
            except (OSError, http.client.HTTPException) as error:
                raise NothingCameBack(str(error)) from error
            if IN_PROGRESS in said.text:  # by whoever was killed over it, until it counts as dead
                raise NothingCameBack(said.text)
            return said

        answer = self._balancer.ask(at)
        if answer.status != expected:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.text[:300]}")
        return json.loads(answer.text)


Event = tuple[str, int, str]  # its type, the ticket, and the text of a comment


class Receiver(ThreadingHTTPServer):
    """Takes webhooks, and notes the ids under which each event came."""

    def __init__(self) -> None:
        super().__init__((LOOPBACK, 0), _Hook)
        self.ids: defaultdict[Event, set[str]] = defaultdict(set)


class _Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if isinstance(self.server, Receiver):
            of = event["type"], event["data"]["number"], event["data"].get("body", "")
            self.server.ids[of].add(self.headers["webhook-id"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the last release, in a folder of their own."""
    commit = os.environ.get("LAST_RELEASE") or RECORD.read_text().split()[-1]
    archive = tmp_path_factory.mktemp("release") / "code.tar"
    command = ["git", "archive", "--output", str(archive), commit]
    made = subprocess.run(command, cwd=TODAY, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"The last release is not in this copy's history: {made.stderr.strip()}")
    shutil.unpack_archive(archive, archive.parent / "code")
    return archive.parent / "code"


@pytest.fixture
def versions(last_release: Path, receiver: Receiver, tmp_path: Path) -> Iterator[tuple[Version, Version]]:
    """The last release and today's, without processes, on an empty engine."""
    environ = dict(os.environ)
    with ExitStack() as ending:
        engine = ending.enter_context(QuickMinistack())
        point_at(engine.endpoint_url, environ)
        environ |= {"WEBHOOK_RECEIVER": f"http://{LOOPBACK}:{receiver.server_port}"}
        both = [Version(name, tree, environ, tmp_path) for name, tree in (("old", last_release), ("new", TODAY))]
        for version in both:
            ending.callback(version.close)
        yield both[0], both[1]


def everything(traffic: Traffic) -> dict[int, dict[str, Any]]:
    """Read all tickets, by the lists of the API."""
    found: dict[int, dict[str, Any]] = {}
    path = "/tickets?status=any&limit=100"
    while path:
        page = traffic.api("GET", path, None, 200)
        assert not found.keys() & {one["number"] for one in page["data"]}
        found |= {one["number"]: one for one in page["data"]}
        path = (page["next"] or "").partition("/api/v1")[2]
    return found


def assert_nothing_is_lost_or_doubled(traffic: Traffic, receiver: Receiver) -> None:
    stored = everything(traffic)
    assert len(traffic.titles) == 4 * len(PEOPLE)
    assert {number: one["title"] for number, one in stored.items()} == traffic.titles
    assert {number: one["priority"] for number, one in stored.items()} == traffic.priorities
    for number, bodies in traffic.bodies.items():
        entries = traffic.api("GET", f"/tickets/{number}/activity", None, 200)["data"]
        assert [entry["body"] for entry in entries if entry["kind"] == "comment"] == bodies
    told: set[Event] = {("ticket.created", number, "") for number in traffic.titles}
    told |= {("ticket.commented", number, body) for number, bodies in traffic.bodies.items() for body in bodies}
    wait_until(lambda: receiver.ids.keys() >= told)
    assert {event: len(ids) for event, ids in receiver.ids.items()} == dict.fromkeys(told, 1)


def test_two_versions_share_tables_queues_and_sessions_through_kills_and_a_rollback(
    versions: tuple[Version, Version], receiver: Receiver
) -> None:
    old, new = versions
    balancer = Balancer()
    traffic = Traffic(balancer, begin(old))

    balancer.ports = [old.start()]
    traffic.sign_in()
    hook = {"url": f"http://{LOOPBACK}:{receiver.server_port}/", "event_types": ["ticket.created", "ticket.commented"]}
    traffic.api("POST", "/webhooks", hook, 201)
    with traffic.flowing():
        new.run(["create_tables", "--upgrade"])

    balancer.ports = [*balancer.ports, new.start()]
    before = traffic.written
    with traffic.flowing():
        wait_until(lambda: traffic.written > before + 1 or traffic.failed)
        old.kill()
        balancer.ports = [old.start(), *balancer.ports[1:]]

    with traffic.flowing():
        new.kill()
        balancer.ports = balancer.ports[:1]

    balancer.ports = [*balancer.ports, new.start()]
    before = traffic.written
    with ExitStack() as stopping:
        with traffic.flowing():
            wait_until(lambda: traffic.written > before + 1 or traffic.failed)
            balancer.ports = balancer.ports[1:]
            stopping.enter_context(old.stopping())
        assert traffic.failed == []
        assert_nothing_is_lost_or_doubled(traffic, receiver)
    new.run(*([command, "--tenant", "acme"] for command in ("verify_aggregates", "verify_search", "verify_audit")))
