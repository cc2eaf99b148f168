"""Create tickets by the API, each sent 1 to 5 times at once to two servers, and kill these before a transaction, right
behind one, and at any moment.

A sender sends its request again until it is answered, as the clients of an API do. In the end there has to be one
ticket for each request, and one answer, byte for byte, however often it was heard. Claims of the dead are shortened to
a second.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count as counting
from itertools import cycle
from typing import Any, ClassVar, Final

from api.edge import idempotency
from portal.dynamo.store import Store
from proofs import stored
from proofs.forked import Journal, lines
from proofs.harness import STEP, Torture, TortureFailed, count, signalled
from tenants.api_keys import key_changes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import context

PATH: Final = "/api/v1/tickets"
SERVERS: Final = 2
SENDERS: Final = 12
MOST_COPIES: Final = 5
_CLAIM_SECONDS: Final = 1  # for which a dead process's claim is waited for
_THREADS: Final = 4  # of each server
_PATIENCE: Final = 120.0  # seconds, for one answer and for a server's start
_AGAIN: Final = (409, 429, 500, 503)  # statuses behind which a client sends again; 500 is counted as well
_WAYS: Final = {"before": signal.SIGUSR1, "behind": signal.SIGUSR2, "anywhere": signal.SIGKILL}


def serve(told: Journal, seed: int) -> None:
    """Serve the portal until it is killed, or told to die right before or right behind its next transaction."""
    from django.core.wsgi import get_wsgi_application
    from waitress import create_server

    idempotency.CLAIM_SECONDS = _CLAIM_SECONDS  # type: ignore[misc]
    doomed, write = set[int](), Store.transact

    def transact(repository: Store, *args: Any, **kwargs: Any) -> None:
        if signal.SIGUSR1 in doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        write(repository, *args, **kwargs)
        if signal.SIGUSR2 in doomed:
            os.kill(os.getpid(), signal.SIGKILL)

    Store.transact = transact  # type: ignore[assignment, method-assign]
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: doomed.add(number))
    server = create_server(get_wsgi_application(), host="127.0.0.1", port=0, threads=_THREADS)
    told.write(port=server.effective_port)
    server.run()


class Replay(Torture):
    options: ClassVar = {"posts": count(1000, "N", "tickets"), "kills": count(30, "K", "of servers", 0)}
    must_be_empty = ("missing", "doubled", "unknown", "answered_differently", "unanswered", "faults")
    kept = "Each was done once, and answered alike each time."
    loads = ("portal.wsgi",)

    def work(self) -> None:
        self.ports: list[int] = []
        self.answers: dict[int, Counter[bytes]] = defaultdict(Counter)
        self.statuses: Counter[int] = Counter()
        self.heard = self.replayed = self.unheard = 0
        self._turns, self._lock = counting(), threading.Lock()  # each server gets its share of what is sent
        self.make_tenants()
        scopes = frozenset({Scope.TICKETS_READ, Scope.TICKETS_WRITE})
        choice = KeyChoice(name="Torture", scopes=scopes)
        tenant = context.for_system(self.tenants[0])
        _, self.key = key_changes.create(tenant, choice=choice, request_id=uuid.uuid4().hex, by=SYSTEM)
        for _ in range(SERVERS):
            self.start("server", serve)
        self._until(lambda: len(self.ports) == SERVERS, lambda _: None)
        with self.stage("Sending", None) as progress:
            self._send(progress.advance)

    def _send(self, advance: Callable[[int], object]) -> None:
        """Send everything, several at a time, and kill servers as often as is planned."""
        rng, plan = self.rng(), self.plan
        copies = [number for number in range(plan.posts) for _ in range(rng.randint(1, MOST_COPIES))]
        moments = sorted(rng.choices(range(max(1, len(copies) - SENDERS)), k=plan.kills))
        sent: list[Future[None]] = []
        with ThreadPoolExecutor(SENDERS) as senders:

            def give(up_to: int) -> None:
                sent.extend(senders.submit(self._send_until_answered, number) for number in copies[len(sent) : up_to])

            # A kill waits for servers that are back, and what comes behind it waits for the kill: none is left out.
            for moment, way in zip(moments, cycle(_WAYS), strict=False):
                give(moment + SENDERS)
                self._until(partial(self._is_ripe, sent, moment), advance)
                while not signalled(rng.choice(self.running["server"]), _WAYS[way]):
                    self.ports = []  # one that was to die has just done so: wait until all are back
                    self._until(lambda: len(self.ports) == SERVERS, advance)
                self.kills[way] += 1
            give(len(copies))
            self._until(lambda: all(one.done() for one in sent), advance)

    def _is_ripe(self, sent: list[Future[None]], moment: int) -> bool:
        return sum(one.done() for one in sent) >= moment and len(self.ports) == SERVERS

    def _until(self, done: Callable[[], bool], advance: Callable[[int], object]) -> None:
        """Wait while answers come, and start servers anew. Raises TortureFailed when nothing comes for long."""
        until = time.monotonic() + 2 * _PATIENCE
        while not done():
            time.sleep(STEP)
            self.replace_dead("server")
            told = [next(lines(process.journal), None) for process in self.running["server"]]
            self.ports = [line["port"] for line in told if line]
            heard = sum(answers.total() for answers in list(self.answers.values()))
            if heard > self.heard:
                advance(heard - self.heard)
                self.heard, until = heard, time.monotonic() + 2 * _PATIENCE
            if time.monotonic() > until:
                raise TortureFailed(f"The servers do not start, or answer nobody: {self.printed('server')}")

    def _send_until_answered(self, number: int) -> None:
        until = time.monotonic() + _PATIENCE
        while not self._is_answered(number) and time.monotonic() < until:
            time.sleep(STEP)

    def _is_answered(self, number: int) -> bool:
        """Send one copy once; tell whether its answer is one to keep."""
        body = json.dumps({"title": f"Ticket {number}", "description": "It *broke*."})
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            idempotency.HEADER: f"post-{number}",
        }
        ports = self.ports or [1]
        connection = http.client.HTTPConnection("127.0.0.1", ports[next(self._turns) % len(ports)], timeout=60)
        try:
            connection.request("POST", PATH, body, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            with self._lock:
                self.unheard += 1
            return False
        finally:
            connection.close()
        with self._lock:
            self.statuses[response.status] += 1
            self.replayed += response.headers.get("Idempotency-Replayed") == "true"
            if response.status in _AGAIN:
                return False
            self.answers[number][content] += 1
            return True

    def figures(self) -> dict[str, Any]:
        """Compare what was heard with the tickets that there are."""
        titles = Counter(summary.title for summary in stored.summaries(self.repository()))
        wanted = {f"Ticket {number}" for number in range(self.plan.posts)}
        return {
            "tickets": titles.total(),
            "heard": self.heard,
            "replayed": self.replayed,
            "unheard": self.unheard,
            "kills": dict(self.kills),
            "statuses": {str(status): times for status, times in sorted(self.statuses.items())},
            "missing": sorted(wanted - titles.keys()),
            "doubled": sorted(title for title, times in titles.items() if times > 1),
            "unknown": sorted(titles.keys() - wanted),
            "answered_differently": sorted(number for number, answers in self.answers.items() if len(answers) > 1),
            "unanswered": sorted(set(range(self.plan.posts)) - self.answers.keys()),
            "faults": self.statuses[500],
        }
