"""A torture: tickets are created by the API, each sent several times at once, while those who create them are killed.

Whoever sends a request sends it again until it is answered, as the clients of an API do. In the end there has to be one
ticket for each, and one answer, however often it was heard.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import random
import signal
import tempfile
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from api.door import idempotency
from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from proofs import cleanup
from proofs.counting import journal
from proofs.forked_child import ForkedChild
from proofs.replays import replay_server
from tenants.api_keys import key_changes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle
from tenants.tenancy import context
from tenants.tenancy.items import TenantItem
from tickets.ticket import keys as ticket_keys
from tickets.ticket.tables import TICKETS
from tickets.verification import recount

PATH: Final = "/api/v1/tickets"
MOST_COPIES: Final = 5
_CLAIM_SECONDS: Final = 1
_THREADS: Final = 4  # of each server
_ENVIRON: Final = {"TENANT_RATES": "off", "LOG_LEVEL": "ERROR"}
_STEP: Final = 0.02
_PATIENCE: Final = 120.0  # seconds, for one answer and for a server's start
_AGAIN: Final = (409, 429, 500, 503)  # statuses behind which a client sends again; 500 is counted as well
_WAYS: Final = {"before": signal.SIGUSR1, "behind": signal.SIGUSR2, "anywhere": signal.SIGKILL}


class ReplayTortureFailed(PortalError):
    """It could not be carried out: nothing is said about repetitions."""


@dataclass(frozen=True)
class ReplayPlan:
    seed: int
    posts: int
    kills: int
    servers: int = 2
    senders: int = 12


@dataclass
class ReplayTorture:
    """A running torture: its servers, and what its senders have heard."""

    plan: ReplayPlan
    folder: Path
    tenant: TenantItem | None = None
    key: str = ""
    key_id: str = ""
    key_prefix: str = ""
    servers: dict[Path, ForkedChild] = field(default_factory=dict)
    ports: list[int] = field(default_factory=list)
    answers: dict[int, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))
    statuses: Counter[int] = field(default_factory=Counter)
    heard: int = 0
    replayed: int = 0
    unheard: int = 0  # requests whose server died
    kills: Counter[str] = field(default_factory=Counter)
    turns: Iterator[int] = field(default_factory=count)  # of the servers: each gets its share of what is sent
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def tenant_id(self) -> str:
        return self.tenant.tenant_id if self.tenant else ""

    def start(self) -> None:
        """Start a server, which is asked from then on."""
        path = self.folder / f"server-{uuid.uuid4().hex}.jsonl"
        how = {"journal": str(path), "claim_seconds": _CLAIM_SECONDS, "threads": _THREADS}
        self.servers[path] = ForkedChild(
            "server", replay_server.main, json.dumps(how), output=path.with_suffix(".log"), loads=["portal.wsgi"]
        )

    def refresh(self) -> None:
        """Take the dead out, start as many anew, and see which ports are served."""
        for path, child in list(self.servers.items()):
            if child.poll() is not None:
                del self.servers[path]
                child.kill()
                self.start()
        self.ports = [line["port"] for path in self.servers for line in journal.lines(path)]


@contextmanager
def torture(plan: ReplayPlan) -> Iterator[ReplayTorture]:
    """Give a torture whose processes and tenant are gone in the end. Raises Forbidden as `cleanup` does."""
    cleanup.refuse_in_production()
    with (
        patch.dict(os.environ, _ENVIRON),  # which the servers find there
        tempfile.TemporaryDirectory(prefix="torture-") as folder,
        ExitStack() as stack,
    ):
        run = ReplayTorture(plan, Path(folder))
        stack.callback(_remove, run)
        yield run


def prepare(run: ReplayTorture) -> None:
    """Make the tenant and its key, and start the servers."""
    slug = f"torture-{uuid.uuid4().hex[:8]}"
    run.tenant = tenant_lifecycle.create(name="Torture", slug=slug, shards=1, by=SYSTEM)
    scopes = frozenset({Scope.TICKETS_READ, Scope.TICKETS_WRITE})
    item, run.key = key_changes.create(
        context.for_system(run.tenant),
        choice=KeyChoice(name="Torture", scopes=scopes),
        request_id=uuid.uuid4().hex,
        by=SYSTEM,
    )
    run.key_id, run.key_prefix = item.key_id, item.api_key_prefix
    for _ in range(run.plan.servers):
        run.start()
    _until(lambda: len(run.ports) == run.plan.servers, run, advance=lambda _: None)


def send(run: ReplayTorture, advance: Callable[[int], object]) -> None:
    """Send everything, several at a time, and kill whoever answers as often as is planned."""
    rng = random.Random(run.plan.seed)  # noqa: S311  # it has to be repeatable
    copies = [number for number in range(run.plan.posts) for _ in range(rng.randint(1, MOST_COPIES))]
    waiting: queue.Queue[int | None] = queue.Queue()
    threads = [threading.Thread(target=_send_all, args=(run, waiting), daemon=True) for _ in range(run.plan.senders)]
    for thread in threads:
        thread.start()
    # A kill waits for servers that are back, and what comes behind it waits for the kill: none is left out.
    moments = sorted(rng.choices(range(max(1, len(copies) - run.plan.senders)), k=run.plan.kills))
    given = 0
    for moment, way in zip(moments, cycle(_WAYS), strict=False):
        given = _give(waiting, copies, given, moment + run.plan.senders)
        _until(partial(_is_ripe, run, waiting, given - moment), run, advance)
        _kill(run, rng, way)
    _give(waiting, [*copies, *[None] * len(threads)], given, len(copies) + len(threads))
    _until(lambda: not any(thread.is_alive() for thread in threads), run, advance)


def _give(waiting: queue.Queue[int | None], copies: Sequence[int | None], start: int, end: int) -> int:
    for number in copies[start:end]:
        waiting.put(number)
    return max(start, min(end, len(copies)))


def _is_ripe(run: ReplayTorture, waiting: queue.Queue[int | None], behind: int) -> bool:
    return waiting.unfinished_tasks <= behind and len(run.ports) == run.plan.servers


def _kill(run: ReplayTorture, rng: random.Random, way: str) -> None:
    child = rng.choice(list(run.servers.values()))
    with suppress(ProcessLookupError):
        os.kill(child.pid, _WAYS[way])
        run.kills[way] += 1


def _send_all(run: ReplayTorture, waiting: queue.Queue[int | None]) -> None:
    while (number := waiting.get()) is not None:
        until = time.monotonic() + _PATIENCE
        while not _is_answered(run, number) and time.monotonic() < until:
            time.sleep(_STEP)
        waiting.task_done()


def _is_answered(run: ReplayTorture, number: int) -> bool:
    """Send one copy once; tell whether its answer is one to keep."""
    body = json.dumps({"title": f"Ticket {number}", "description": "It *broke*."})
    headers = {
        "Authorization": f"Bearer {run.key}",
        "Content-Type": "application/json",
        idempotency.HEADER: f"post-{number}",
    }
    ports = run.ports or [1]
    connection = http.client.HTTPConnection("127.0.0.1", ports[next(run.turns) % len(ports)], timeout=60)
    try:
        connection.request("POST", PATH, body, headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException):
        with run.lock:
            run.unheard += 1
        return False
    finally:
        connection.close()
    with run.lock:
        run.statuses[response.status] += 1
        run.replayed += response.headers.get("Idempotency-Replayed") == "true"
        if response.status in _AGAIN:
            return False
        run.answers[number][content] += 1
        return True


def figures(run: ReplayTorture) -> dict[str, Any]:
    """Hold what was heard against the tickets that there are."""
    titles = Counter(_titles(TenantRepository(run.tenant_id)))
    wanted = {f"Ticket {number}" for number in range(run.plan.posts)}
    return {
        "plan": asdict(run.plan),
        "tickets": titles.total(),
        "heard": run.heard,
        "replayed": run.replayed,
        "unheard": run.unheard,
        "kills": dict(run.kills),
        "statuses": {str(status): count for status, count in sorted(run.statuses.items())},
        "missing": sorted(wanted - titles.keys()),
        "doubled": sorted(title for title, times in titles.items() if times > 1),
        "unknown": sorted(titles.keys() - wanted),
        "answered_differently": sorted(number for number, answers in run.answers.items() if len(answers) > 1),
        "unanswered": sorted(set(range(run.plan.posts)) - run.answers.keys()),
        "faults": run.statuses[500],
    }


def is_broken(found: dict[str, Any]) -> list[str]:
    """Return the names of the figures that say that something is wrong."""
    empty = ("missing", "doubled", "unknown", "answered_differently", "unanswered", "faults")
    return [name for name in empty if found[name]]


def _titles(repository: TenantRepository) -> Iterator[str]:
    for several in recount.groups(recount.last_number(repository)):
        for numbers in several:
            for raw in repository.get_raw(TICKETS, ticket_keys.ticket, numbers, sort=ticket_keys.SUMMARY):
                yield raw["title"]["S"]


def _until(done: Callable[[], bool], run: ReplayTorture, advance: Callable[[int], object]) -> None:
    """Wait while answers come, and start servers anew. Raises ReplayTortureFailed when nothing comes for long."""
    until = time.monotonic() + 2 * _PATIENCE
    while not done():
        time.sleep(_STEP)
        run.refresh()
        heard = sum(answers.total() for answers in list(run.answers.values()))
        if heard > run.heard:
            advance(heard - run.heard)
            run.heard, until = heard, time.monotonic() + 2 * _PATIENCE
        if time.monotonic() > until:
            raise ReplayTortureFailed("The servers do not start, or answer nobody.")


def _remove(run: ReplayTorture) -> None:
    for child in run.servers.values():
        child.kill()
    if run.tenant is None:
        return
    cleanup.delete_tenant(run.tenant_id)
