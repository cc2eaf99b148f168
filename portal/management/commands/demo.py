"""`manage.py demo`: the whole portal on one machine; what `make run` calls."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import time
from argparse import REMAINDER
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from django.conf import settings
from django.core.management import get_commands
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper

from portal.engines import discovery
from portal.engines import supervisor as supervision
from portal.engines.endpoint import LOOPBACK, point_at, port_obstacle
from portal.engines.engine_process import (
    ENGINES,
    LOCK_NAME,
    Engine,
    EngineError,
    engine_class,
    find_queues,
    needs_queues,
    running_engine,
    start_engine,
    start_queues,
)
from portal.engines.processes import Child, acquire_lock, release_lock
from portal.engines.supervisor import GaveUp, Job, StartError, Supervisor
from portal.management import demo_processes
from portal.management.demo_processes import CREATE_BUCKET, CREATE_QUEUES

POLL_SECONDS = 0.1
WEB_START_SECONDS = 240
CHILD_STOP_SECONDS = 60
SHOW_CURSOR = "\x1b[?25h"

BANNER = """
  Pooldesk   {portal}
  Engine     {engine}
  Public     {portal}/forms/acme/  {portal}/help/acme/  (in German: globex)
{mail}
  alice@example.com     owner of Acme, agent in Globex
  bob@example.com       agent in Acme
  charlie@example.com   owner of Globex only
  vera@example.com      viewer in Acme
  root@example.com      platform operator
  Password   {password}

  Ctrl-C stops it.
"""


class StopAskedFor(Exception):
    """Somebody pressed Ctrl-C or sent SIGTERM."""


class SupervisedEngine:
    """An engine, started again at its address; ``recover`` then brings the rest in line with it."""

    def __init__(self, engine: Engine, recover: Callable[[], object], name: str = "engine") -> None:
        self._engine, self._recover, self.name = engine, recover, name
        self.poll, self.end = engine.poll, engine.clear_up

    def start(self) -> None:
        try:
            self._engine.stop()  # one that runs, but could not be brought in line
            self._engine.start()
        except EngineError as error:
            raise StartError(str(error)) from error
        self._recover()


# Commands that make aggregates and indexes right, should the engine have ended before they were: it forgets its stream.
# Each takes over from the one before, which may have died with the engine and left its mark.
_REPAIRS: Final = (("verify_aggregates", "--all", "--repair", "--take-over"), ("rebuild_search", "--all"))
# What needs a portal that runs, with its mail server.
_CONVERSATIONS: Final = (("seed_conversation",),)


class Command(BaseCommand):
    help = (
        "Start the engine, tables, sample data, workers and web server on this machine, until Ctrl-C. With a "
        "management command behind the options (demo seed --tenants 3), run that one instead, on the same data, "
        "whether a demo runs or not."
    )
    # The processes started from here make them, in the environment that they need.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="of the portal (8000)")
        parser.add_argument("--engine", default="ministack", help=f"{' or '.join(ENGINES)}; ministack, if not given")
        parser.add_argument("--engine-port", type=int, default=0, help="of the engine (a free one)")
        parser.add_argument("command", nargs=REMAINDER, help="management command and its arguments")

    def handle(self, *args: Any, **options: Any) -> None:
        command = options["command"]
        # What a joined command prints may be read by a program: nothing of ours stands before it.
        self._out = OutputWrapper(sys.stderr) if command else self.stdout
        try:
            engine_class(options["engine"])
        except EngineError as error:
            raise CommandError(str(error)) from None
        if not command and (obstacle := port_obstacle(options["port"])):
            raise CommandError(f"The portal's port {obstacle}; choose another with PORT=<number>.")
        base = f"http://{LOOPBACK}:{options['port']}"  # where links in mails lead, which workers send
        self.environ = {"DEBUG": "1", "PORTAL_BASE_URL": base, **os.environ}
        self.signal: int | None = None
        self.queues: Engine | None = None  # a second engine, where the first has no queues
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note_signal)
        status = 0
        try:
            with contextlib.ExitStack() as stack:
                engine = self._engine(stack, options["engine"], options["engine_port"], join=bool(command))
                if command:
                    status = self._run_in_terminal(command)
                else:
                    self._serve(stack, engine, options)
        except StopAskedFor:
            self._say("Stopped.")
        except (EngineError, GaveUp) as error:
            raise CommandError(str(error)) from None
        if status:
            sys.exit(status)

    def _engine(self, stack: contextlib.ExitStack, kind: str, port: int, *, join: bool) -> Engine | None:
        """Point ``self.environ`` at an engine that has the tables, and sample data unless a command ``join``s it; the
        engine, if it was started here."""
        engine = None
        var = Path(settings.BASE_DIR) / "var"
        if given := settings.DYNAMODB_ENDPOINT_URL:
            discovery.fill_in(given, self.environ)
            if not join:
                self._note_endpoint(stack, var / discovery.ENDPOINT, given)
        elif join and (running := running_engine(var / kind)):
            point_at(running, self.environ)
        else:
            log_path = var / "log" / f"{kind}.log"
            engine = start_engine(kind, port=port, state_dir=var / kind, log_path=log_path, report=self._say)
            stack.enter_context(engine)
            point_at(engine.endpoint_url, self.environ)
        self._queues(stack, var / (discovery.ENDPOINT if given else kind), join=join)
        self._manage("prepare_demo", *([] if join else ["--seed"]))
        return engine

    def _queues(self, stack: contextlib.ExitStack, beside: Path, *, join: bool) -> None:
        """Point ``self.environ`` at queues, where the engine has none: at those that run, or at new ones."""
        endpoint_url = self.environ["DYNAMODB_ENDPOINT_URL"]
        if CREATE_QUEUES not in get_commands() or not discovery.is_local(endpoint_url):
            return
        if (join and find_queues(beside, self.environ)) or not needs_queues(endpoint_url, self.environ):
            return
        log_path = Path(settings.BASE_DIR) / "var" / "log" / "queues.log"
        self.queues = start_queues(beside, log_path=log_path, environ=self.environ, report=self._say)
        stack.enter_context(self.queues)

    def _note_endpoint(self, stack: contextlib.ExitStack, folder: Path, address: str) -> None:
        """Write the engine file of an engine that is not ours, for the commands that are called meanwhile."""
        folder.mkdir(parents=True, exist_ok=True)
        if lock := acquire_lock(folder / LOCK_NAME):
            stack.callback(release_lock, lock)
            lock.write(address)
            lock.flush()

    def _serve(self, stack: contextlib.ExitStack, engine: Engine | None, options: dict[str, Any]) -> None:
        """Start all children, say where they are, and keep them alive; ends by StopAskedFor, CommandError or GaveUp."""
        supervisor = Supervisor(self._say)
        (Path(settings.BASE_DIR) / "var" / discovery.PORTAL).write_text(self.environ["PORTAL_BASE_URL"])
        workers = demo_processes.workers(self.environ)
        web_server = demo_processes.web_server(self.environ, options)
        has_mail = any(worker.name == demo_processes.MAIL_SERVER for worker in workers)
        repairs, conversations = self._jobs(_REPAIRS), self._jobs(_CONVERSATIONS if has_mail else ())
        if engine:
            supervisor.watch(SupervisedEngine(engine, lambda: self._recover(engine, workers, repairs + conversations)))
        if self.queues:
            supervisor.watch(SupervisedEngine(self.queues, self._recover_queues, "engine of the queues"))
        # The last is the first to be stopped, so that the workers still see what the last requests wrote.
        for command in (*workers, web_server):
            command.start()
            stack.callback(command.end)
            supervisor.watch(command)
        stack.callback(self._say, "\nStopping ...")
        self._wait_for_web(options["port"], supervisor)
        where = f" ({engine.kind}, data in {engine.state_dir})" if engine else ""
        self._say(
            BANNER.format(
                portal=f"http://{LOOPBACK}:{options['port']}",
                engine=self.environ["DYNAMODB_ENDPOINT_URL"] + where,
                mail=demo_processes.mail_lines(self.environ) if has_mail else "",
                password=settings.DEMO_PASSWORD,
            )
        )
        jobs = [*(repairs if engine else ()), *conversations]
        for job in jobs:
            stack.callback(job.end)
            job.begin()
        while True:
            self._sleep()
            supervisor.tend()
            for job in jobs:
                job.tend()

    def _recover(self, engine: Engine, workers: list[supervision.Command], jobs: list[Job]) -> None:
        """Bring tables, data, aggregates and search indexes in line with an engine that has just been started again.

        Raises StartError.
        """
        self._say(engine.lost_data())
        for worker in workers:
            worker.kill()  # some follow a stream that is no more
        try:
            self._manage("prepare_demo", "--seed")
        except CommandError as error:
            raise StartError(str(error)) from error
        for worker in workers:
            worker.start()
        for job in jobs:
            job.begin()

    def _recover_queues(self) -> None:
        """Make the queues anew, of which the outbox still has what was in them, and the bucket. Raises StartError."""
        try:
            self._manage(CREATE_QUEUES, "--wait")
            if CREATE_BUCKET in get_commands():
                self._manage(CREATE_BUCKET)
        except CommandError as error:
            raise StartError(str(error)) from error

    def _jobs(self, lines: Sequence[Sequence[str]]) -> list[Job]:
        """Return the jobs of these command lines, but those whose commands there are not."""
        logs = Path(settings.BASE_DIR) / "var" / "log"
        return [
            Job(name, demo_processes.manage(name, *options), self.environ, logs / f"{name}.log")
            for name, *options in lines
            if name in get_commands()
        ]

    def _sleep(self) -> None:
        """Sleep a moment; raises StopAskedFor after a signal."""
        time.sleep(POLL_SECONDS)
        if self.signal is not None:
            raise StopAskedFor

    def _wait_for_web(self, port: int, supervisor: Supervisor) -> None:
        """Wait until the web server answers anything at all: an error page is for the browser to show.

        A process that dies meanwhile would die again: raises CommandError, and StopAskedFor after a signal.
        """
        deadline = time.monotonic() + WEB_START_SECONDS
        while time.monotonic() < deadline:
            self._sleep()
            if death := supervisor.first_death():
                raise CommandError(death)
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=1)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/healthz")
                connection.getresponse()
                return
            connection.close()
        raise CommandError(f"The web server did not answer within {WEB_START_SECONDS} s.")

    def _manage(self, *arguments: str) -> None:
        """Run a management command to its end, out of reach of Ctrl-C. Raises StopAskedFor, CommandError."""
        output = None if self._out is self.stdout else sys.stderr.buffer
        child = Child(f"command {arguments[0]}", demo_processes.manage(*arguments), env=self.environ, output=output)
        while (status := child.poll()) is None:
            if self.signal is not None:
                child.stop(seconds=CHILD_STOP_SECONDS)
                if self._out.isatty():  # a progress bar that is cut off leaves it hidden
                    self._say(SHOW_CURSOR)
                raise StopAskedFor
            time.sleep(POLL_SECONDS)
        if status:
            raise CommandError(f"The {child.name} ended with exit status {status}.")

    def _run_in_terminal(self, command: list[str]) -> int:
        """Run it with our stdin, in reach of Ctrl-C; its exit status."""
        process = subprocess.Popen(demo_processes.manage(*command), env=self.environ)
        while (status := process.poll()) is None:
            if self.signal == signal.SIGTERM:
                process.terminate()
            time.sleep(POLL_SECONDS)
        return status if status >= 0 else 128 - status

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self.signal = number

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone: that must not keep the engine from saving
            self._out.write(text)
            self._out.flush()
