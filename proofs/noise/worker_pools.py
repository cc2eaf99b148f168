"""Run a design's eight workers: the product's `Consumer`, as threads of this process or as processes that may die.

Workers that are processes wait for messages at the engine, as the product's do; those in threads are told by a bell.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, Protocol

from delivery.consuming.consumer import Consumer
from proofs.noise import worker_process
from proofs.noise.deeds import DeedHandler
from proofs.noise.designs import Design
from proofs.noise.trial_queues import TrialQueues
from proofs.noise.worker_notes import WorkerNotes
from proofs.noise.workload import RESTART_SECONDS, SLOTS, VISIBILITY_SECONDS, WORKERS

_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 2
_LOOK_SECONDS: Final = 0.1


class Pool(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class ThreadPool:
    """Eight consumers in this process."""

    def __init__(self, design: Design, transport: TrialQueues, ledger: WorkerNotes) -> None:
        self._consumers = [
            Consumer(
                transport,
                DeedHandler(partial(ledger.begin, worker), partial(ledger.end, worker)).handle,
                design.queues_served_by(worker),
                slots=SLOTS,
                poll_seconds=_POLL_SECONDS,
            )
            for worker in range(WORKERS)
        ]

    def start(self) -> None:
        for consumer in self._consumers:
            consumer.start()

    def stop(self) -> None:
        """Stop all at the same time. What hangs is left behind: the process of the trial ends soon."""
        stops: list[Callable[[], object]] = [partial(one.stop, seconds=_STOP_SECONDS) for one in self._consumers]
        threads = [threading.Thread(target=stop, daemon=True) for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class ProcessPool:
    """Eight consumers, each a process. Another takes the place of one that dies, after RESTART_SECONDS."""

    def __init__(self, design: Design, transport_name: str, ledger: WorkerNotes) -> None:
        self._design, self._name, self._ledger = design, transport_name, ledger
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([worker_process.__name__])
        self._running: dict[int, tuple[BaseProcess, Connection]] = {}
        self._due: dict[int, float] = {}  # by worker, when another takes its place
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        for worker in range(WORKERS):
            self._start(worker)
        for _, connection in self._running.values():
            connection.poll(_START_SECONDS)  # it says that it is there
        self._keeper.start()

    def stop(self) -> None:
        self._stopping.set()
        self._keeper.join()
        for process, connection in self._running.values():
            connection.close()
            process.kill()
        for process, _ in self._running.values():
            process.join()

    def _start(self, worker: int) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        specification = worker_process.Specification(
            self._name,
            self._design.queues,
            self._design.queues_served_by(worker),
            _POLL_SECONDS,
            VISIBILITY_SECONDS,
        )
        process = self._context.Process(target=worker_process.run, args=(theirs, specification), daemon=True)
        process.start()
        theirs.close()
        self._running[worker] = process, ours

    def _keep(self) -> None:
        """Note what the workers say, and replace those that die."""
        while not self._stopping.is_set():
            of = {connection: worker for worker, (_, connection) in self._running.items()}
            if not of:
                self._stopping.wait(_LOOK_SECONDS)
            ready = wait([*of], _LOOK_SECONDS)
            for connection, worker in of.items():
                if connection in ready:
                    self._read(worker, connection)
            for worker in [worker for worker, at in self._due.items() if at <= time.monotonic()]:
                del self._due[worker]
                self._start(worker)

    def _read(self, worker: int, connection: Connection) -> None:
        try:
            said = connection.recv()
        except (EOFError, OSError):
            process, _ = self._running.pop(worker)
            connection.close()
            process.join()
            self._ledger.died(worker)
            self._due[worker] = time.monotonic() + RESTART_SECONDS
            return
        if len(said) == worker_process.BEGUN:
            self._ledger.begin(worker, *said)
        elif len(said) == worker_process.ENDED:
            self._ledger.end(worker, *said)
