"""Start and stop a local DynamoDB engine: a server process of its own, on loopback only.

Two kinds: ``ministack`` (from PyPI, the embedded default) and ``dynamodb-local`` (AWS's own, in
Java, for scale and benchmarks). Nothing but this module knows which one runs: everybody else gets
an endpoint URL. Django is not imported here, because the test suite needs its engine before
``django.setup()``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, MutableMapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, Self
from urllib.parse import urlsplit

from portal.engines import dynamodb_local
from portal.engines.dynamodb_local import dynamodb_local_available
from portal.engines.endpoint import ACCESS_KEY, LOOPBACK, REGION, answers, free_port, has_queues, port_obstacle
from portal.engines.processes import Child, acquire_lock, inspect_lock, lock_note, release_lock

__all__ = ["ENGINES", "Engine", "EngineError", "dynamodb_local_available", "running_engine", "start_engine"]

START_SECONDS = 240
STOP_SECONDS = 60
LOG_LINES = 15
LOCK_NAME = "lock"


class EngineError(RuntimeError):
    """A local engine cannot start, or could not save. The message says what to do about it."""


class Engine:
    """One engine. ``start`` returns when it answers, ``stop`` when its state is saved.

    ``state_dir`` None keeps everything in memory. A state directory belongs to one engine at a
    time. ``report`` gets a sentence when something takes long. Made by ``start_engine``.
    """

    kind = ""

    def __init__(
        self,
        *,
        port: int | None = None,
        state_dir: Path | None = None,
        log_path: Path | None = None,
        report: Callable[[str], object] = print,
    ) -> None:
        self._port_is_fixed = bool(port)
        self.port = port or free_port()
        self.state_dir = Path(state_dir).resolve() if state_dir else None
        self._wanted_log_path = log_path
        self.report = report
        self._owner = os.getpid()
        self._child: Child | None = None
        self._lock: IO[str] | None = None

    @property
    def endpoint_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def name(self) -> str:
        return f"engine {self.kind}"

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def __enter__(self) -> Self:
        return self if self._child else self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def answers(self) -> bool:
        """Tell whether it serves what it is for."""
        return answers(self.port)

    def poll(self) -> int | None:
        """Return the exit status of an engine that ended by itself, else None."""
        return self._child.poll() if self._child else None

    def start(self) -> Self:
        """Start it, after a death at the same port.

        Raises EngineError: port taken, state in use or unreadable, ended at once, no answer in time.
        """
        self._scratch = tempfile.TemporaryDirectory(prefix="pooldesk-engine-", ignore_cleanup_errors=True)
        self.log_path = Path(self._wanted_log_path or (self.state_dir or Path(self._scratch.name)) / "engine.log")
        try:
            if self._port_is_fixed and (obstacle := port_obstacle(self.port)):
                raise EngineError(f"The engine's port {obstacle}; choose another with ENGINE_PORT=<number>.")
            if self._was_killed():
                self.report(f"The {self.name} was killed the last time. {self.lost_data()}")
            self._lock_state()
            self.log_path.parent.mkdir(parents=True, exist_ok=True)
            if self.log_path.exists():  # how the last one ended may stand in it
                self.log_path.replace(self.log_path.with_name(f"{self.log_path.name}.1"))
            with self.log_path.open("wb") as log:
                self._child = Child(
                    self.kind,
                    self._command(),
                    env=os.environ | self._environment(),
                    output=log,
                    # It inherits the lock: while one whose parent was killed still saves, nobody may load.
                    pass_fds=[self._lock.fileno()] if self._lock else [],
                )
            self._wait_until_it_answers()
            if complaint := self._complaint():
                raise EngineError(f"The saved data cannot be read; move {self.state_dir} away.\n{complaint}")
        except BaseException:
            # Not stopped: an engine that could not load must not save over what it could not read.
            if self._child:
                self._child.kill()
            self._clean_up()
            raise
        return self

    def clear_up(self) -> None:
        """End what a dead engine has left running and let its data go."""
        if self._child:
            self._child.kill()
        self._clean_up()

    def lost_data(self) -> str:
        return "It saves each write, so nothing is lost."

    def stop(self) -> None:
        """Save and end; safe to call twice. Raises EngineError if the state was not saved."""
        if self._child is None or self._owner != os.getpid():  # a fork must not end its parent's engine
            return
        slow = f"Waiting for {self.kind} to {'save its data' if self.state_dir else 'end'} ..."
        ended = self._child.stop(seconds=STOP_SECONDS, on_slow=lambda: self.report(slow))
        complaint = self._complaint() if ended else f"It did not end within {STOP_SECONDS} s and was killed."
        self._clean_up()
        if self.state_dir and complaint:
            raise EngineError(f"The engine did not save its data in {self.state_dir}.\n{complaint}")

    def _command(self) -> Sequence[str | Path]:
        """Return what to execute; fetch it first where needed."""
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return {}

    def _complaint(self) -> str:
        """Return the lines of the log that say that state was not loaded or not saved."""
        return ""

    def _saved_at(self) -> float:
        """Return when the state was saved last, in seconds since the epoch; 0.0 for never."""
        raise NotImplementedError

    def _was_killed(self) -> bool:
        """Tell whether the last engine on this data ended without saving: its note stands, and nobody holds it."""
        if self.state_dir is None:
            return False
        note, held = inspect_lock(self.state_dir / LOCK_NAME)
        return bool(note) and not held and self._saved_at() < (self.state_dir / LOCK_NAME).stat().st_mtime

    def _lock_state(self) -> None:
        if self.state_dir is None:
            return
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self._lock = acquire_lock(self.state_dir / LOCK_NAME)
        if self._lock is None:
            address = running_engine(self.state_dir)
            share = f", or share it with DYNAMODB_ENDPOINT_URL={address}" if address else ""
            raise EngineError(f"Another engine is using the data in {self.state_dir}; stop that one first{share}.")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if (status := self.poll()) is not None:
                raise EngineError(f"{self.kind} ended at once with exit status {status}.\n{self._tail()}")
            if time.monotonic() > deadline:
                raise EngineError(f"{self.kind} did not answer within {START_SECONDS} s.\n{self._tail()}")
            time.sleep(0.05)
        if self._lock:
            self._lock.write(self.endpoint_url)
            self._lock.flush()

    def _tail(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join(["The end of its log:", *lines]) if lines else "Its log is empty."

    def _clean_up(self) -> None:
        self._child = None
        if self._lock:
            release_lock(self._lock)
            self._lock = None
        self._scratch.cleanup()


class Ministack(Engine):
    """The embedded default. It works in memory and saves when it ends by SIGTERM, and only then."""

    kind = "ministack"
    services = "dynamodb,dynamodbstreams,sqs,s3,sts,iam,cloudformation,lambda,logs"
    state_file = "dynamodb.json"

    def _command(self) -> Sequence[str | Path]:
        return [sys.executable, "-P", "-m", "ministack"]

    def _environment(self) -> dict[str, str]:
        return {
            "BIND_HOST": LOOPBACK,
            "GATEWAY_PORT": str(self.port),
            "SERVICES": self.services,
            "MINISTACK_REGION": REGION,
            # Of signed addresses and forms it looks at the signature, whatever AUTH says.
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": ACCESS_KEY,
            "PERSIST_STATE": "1" if self.state_dir else "0",
            "STATE_DIR": str(self.state_dir or self._scratch.name),
            # Objects are files, each written when it is put.
            "S3_PERSIST": "1" if self.state_dir else "0",
            "S3_DATA_DIR": str((self.state_dir or Path(self._scratch.name)) / "objects"),
            "TMPDIR": self._scratch.name,
            "LOG_LEVEL": "WARNING",
            "AUTH": "false",
            "USE_SSL": "0",
            # Both would listen beyond loopback.
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            # Where it finds Docker, it removes the containers of every other ministack at its start.
            "DOCKER_HOST": "unix:///nonexistent",
        }

    def _saved_at(self) -> float:
        state = self.state_dir / self.state_file if self.state_dir else None
        return state.stat().st_mtime if state and state.exists() else 0.0

    def lost_data(self) -> str:
        saved_at = self._saved_at()
        if not saved_at:
            return "It saves only when it is stopped, and had not been before: all data are lost."
        when = datetime.fromtimestamp(saved_at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"It saves only when it is stopped: what was written after {when} is lost."

    def _complaint(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if " ERROR " in line and "persist" in line.lower())


class DynamoDBLocal(Engine):
    """AWS's own engine. It saves on each write."""

    kind = "dynamodb-local"

    def _saved_at(self) -> float:
        return time.time()

    def _wait_until_it_answers(self) -> None:
        super()._wait_until_it_answers()
        if self.state_dir:
            dynamodb_local.index_stream_records(self.state_dir)

    def _command(self) -> Sequence[str | Path]:
        try:
            home = dynamodb_local.install(self.report)
        except dynamodb_local.InstallError as error:
            raise EngineError(str(error)) from error
        return dynamodb_local.command(
            home, host=LOOPBACK, port=self.port, state_dir=self.state_dir, scratch=self._scratch.name
        )


ENGINES: dict[str, type[Engine]] = {engine.kind: engine for engine in (Ministack, DynamoDBLocal)}


def engine_class(kind: str) -> type[Engine]:
    """Return the class of an engine by its name; raises EngineError with the choices."""
    if kind not in ENGINES:
        raise EngineError(f"There is no engine {kind!r}; choose one of {', '.join(ENGINES)} with ENGINE=<name>.")
    return ENGINES[kind]


def start_engine(
    kind: str = Ministack.kind,
    *,
    port: int | None = None,
    state_dir: Path | None = None,
    log_path: Path | None = None,
    report: Callable[[str], object] = print,
) -> Engine:
    """Start an engine, which ends with the object. ``port`` None or 0 takes a free one. Raises EngineError."""
    return engine_class(kind)(port=port, state_dir=state_dir, log_path=log_path, report=report).start()


def running_engine(state_dir: Path) -> str | None:
    """Return the endpoint of the engine that has ``state_dir`` open; None if there is none or it still starts."""
    return lock_note(state_dir / LOCK_NAME) or None


# --- queues beside an engine that has none: DynamoDB Local, or one that was given ---

QUEUES_FOLDER: Final = "queues"  # under that of the engine that they stand beside
QUEUES_VARIABLE: Final = "SQS_ENDPOINT_URL"


class QueueEngine(Ministack):
    """A ministack that has queues and objects alone. Messages that it loses are sent again from the outbox."""

    kind = "ministack for queues"
    services = "sqs,s3"
    state_file = "sqs.json"

    def answers(self) -> bool:
        return has_queues(self.port)


def find_queues(beside: Path, environ: MutableMapping[str, str]) -> bool:
    """Name in ``environ`` the queues that run beside the engine in this folder; False where none do."""
    address = running_engine(beside / QUEUES_FOLDER)
    if address:
        environ.setdefault(QUEUES_VARIABLE, address)
    return bool(address)


def needs_queues(endpoint_url: str, environ: MutableMapping[str, str]) -> bool:
    """Tell whether an engine on this machine has no queues of its own, and no other place for them is named."""
    port = urlsplit(endpoint_url).port
    return QUEUES_VARIABLE not in environ and port is not None and not has_queues(port)


def start_queues(
    folder: Path, *, log_path: Path, environ: MutableMapping[str, str], report: Callable[[str], object]
) -> QueueEngine:
    """Start queues beside the engine in this folder and name them in ``environ``. Raises EngineError."""
    engine = QueueEngine(state_dir=folder / QUEUES_FOLDER, log_path=log_path, report=report).start()
    environ[QUEUES_VARIABLE] = engine.endpoint_url
    return engine
