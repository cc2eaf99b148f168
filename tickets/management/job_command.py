"""Share what commands do that ask for long work on a tenant: carry it out, or look on while another process does."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

from django.core.management.base import CommandParser

from portal.errors import NotFound
from portal.management.command import PortalCommand, Progress, number, seconds
from tickets.jobs.leased_job import I, JobKind, LeasedJob, LeaseWatch, TakenOver

_LOOK_SECONDS: Final = 0.5


class JobCommand(PortalCommand):
    """A command that begins a job of one kind. `steps` says of each phase, as a sentence, what is done in it."""

    steps: ClassVar[Mapping[str, str]]
    doing: ClassVar[str]

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.me = uuid.uuid4().hex

    def add_job_arguments(self, parser: CommandParser, *, rate: float, what: str, settle: float) -> None:
        parser.add_argument(
            "--rate", type=number(0.1, 100_000, "a number of tickets from 0.1 to 100,000"), default=rate,
            metavar="TICKETS", help=f"to {what} in a second, at most (%(default)g)",
        )  # fmt: skip
        parser.add_argument(
            "--settle", type=seconds, default=settle, metavar="SECONDS",
            help="to wait until all processes know of a change (%(default)g); less is safe only where nobody works",
        )  # fmt: skip

    def carried_out(self, kind: JobKind[I], tenant_id: str, job: Callable[..., LeasedJob[I]]) -> I:
        """Carry a tenant's job out, or look on while somebody else does, and return it as it is in the end.

        `job` makes one of an item, with the options of LeasedJob.
        """
        watch, waits = LeaseWatch(), False
        with Progress(self, self.doing, None) as progress:
            while True:
                item = kind.last(tenant_id)
                if item is None:
                    raise NotFound("There is no such work any more.")
                if item.state not in kind.unfinished:
                    return item
                if item.holder == self.me or watch.is_free(item):
                    with suppress(TakenOver):  # another process was faster
                        self._run(job, item, progress)
                    continue
                if not waits:
                    progress.say("Another process carries it out.")
                waits = True
                self._report(item, progress)
                time.sleep(_LOOK_SECONDS)

    def _run(self, job: Callable[..., LeasedJob[I]], item: I, progress: Progress) -> None:
        def go_on() -> bool:
            self._report(work.item, progress)
            return True

        def say(phase: str) -> None:
            progress.step(f"{item.slug}: {self.steps[phase]}")

        work: LeasedJob[I] = job(item, me=self.me, say=say, advance=progress.advance, again=go_on)
        work.run()

    def _report(self, item: I, progress: Progress) -> None:
        progress.report(f"{item.slug}: {self.steps.get(item.phase, item.phase)}, {self.progress(item)}")

    def progress(self, item: Any) -> str:
        raise NotImplementedError
