"""Hold the processes of a torture of one tenant: they are started, listened to, missed when they die, and ended."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from proofs import cleanup
from proofs.counting import journal
from proofs.forked_child import ForkedChild
from tenants.tenancy.items import TenantItem
from tickets.counting import barrier
from tickets.counting.barrier import WorkerAway

DRAIN_SECONDS: Final = 240.0  # until a worker has applied everything
_LOOK_SECONDS: Final = 0.05


class TortureRun:
    """A running torture: its processes by their roles, the tenant, and the folder of what they tell.

    What cannot be carried out raises the error `failure`. `follower` is the role of whoever follows the stream.
    """

    failure: ClassVar[type[PortalError]]
    follower: ClassVar[str]

    def __init__(self, seed: int, folder: Path) -> None:
        self.folder = folder
        self.tenant: TenantItem | None = None
        self._seed, self._counter = seed, 0
        self._children: dict[str, list[ForkedChild]] = {}

    @property
    def tenant_id(self) -> str:
        return self.tenant.tenant_id if self.tenant else ""

    def rng(self) -> random.Random:
        self._counter += 1
        return random.Random(f"{self._seed} {self._counter}")  # noqa: S311  # it has to be repeatable

    def launch(
        self, role: str, work: Callable[[str, str], None], specified: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> ForkedChild:
        """Start a process that works by its role and what is made of its journal, seed and number, and return it."""
        seed = self.rng().randrange(10**9)
        path = self.folder / f"{role}-{self._counter}.jsonl"
        specification = specified({"journal": str(path), "seed": seed, "number": self._counter})
        child = ForkedChild(role, work, role, json.dumps(specification), output=path.with_suffix(".log"))
        self._children.setdefault(role, []).append(child)
        return child

    def told(self, role: str) -> list[dict[str, Any]]:
        """Return what the processes of a role have told, in the order in which they were started."""
        numbers = range(1, self._counter + 1)
        return [line for number in numbers for line in journal.lines(self.folder / f"{role}-{number}.jsonl")]

    def refuse_dead(self, *roles: str) -> None:
        """Raise the torture's failure where one of these processes has ended by itself."""
        for role in roles:
            if any(child.poll() is not None for child in self._children.get(role, [])):
                texts = [path.read_text(errors="replace").strip() for path in self.folder.glob(f"{role}-*.log")]
                raise self.failure(f"A {role} has ended: {' / '.join(text[-800:] for text in texts if text)}")

    def end(self, role: str, *, seconds: float = 0) -> None:
        """End the processes of a role at once, or let them finish for so many seconds."""
        for child in self._children.pop(role, []):
            if seconds:
                child.stop(seconds=seconds)
            else:
                child.kill()

    def wait_until(self, done: Callable[[], bool], *alive: str, seconds: float = DRAIN_SECONDS) -> None:
        """Wait, and raise the torture's failure when it lasts too long or one of these roles has a dead process."""
        until = time.monotonic() + seconds
        while not done():
            self.refuse_dead(*alive)
            if time.monotonic() > until:
                raise self.failure("The processes came to nothing.")
            time.sleep(_LOOK_SECONDS)

    def drain(self, repository: TenantRepository) -> None:
        """Wait until all that was written is counted. Raises the torture's failure."""
        try:
            barrier.wait_until_applied(repository, timeout=DRAIN_SECONDS, say=lambda _: None)
        except WorkerAway as away:
            raise self.failure(f"The {self.follower} came to no end.") from away

    def remove(self, what_is_its_own: Callable[[], None] = lambda: None) -> None:
        """End everybody, and delete the tenant with what it has, the follower last, because it writes too."""
        for role in set(self._children) - {self.follower}:
            self.end(role)
        if self.tenant is not None:
            repository = TenantRepository(self.tenant_id)
            cleanup.delete_content(self.tenant_id)
            with suppress(WorkerAway):
                barrier.wait_until_applied(repository, timeout=DRAIN_SECONDS, say=lambda _: None)
            self.end(self.follower, seconds=30)
            what_is_its_own()
            cleanup.delete_tenant(self.tenant_id)
        self.end(self.follower)
