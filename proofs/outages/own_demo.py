"""Run a demo of the proof's own, as `make run` does, with its data in a temporary folder; kill what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management.base import CommandError

from portal.engines.endpoint import point_at
from portal.engines.engine_process import running_engine
from portal.engines.ports import free_port

_STOP_SECONDS: Final = 300
_START_SECONDS: Final = 300
_NOWHERE: Final = "http://127.0.0.1:9"
FILES: Final = {
    "manage.py": "import sys\nfrom django.core.management import execute_from_command_line as run\nrun(sys.argv)\n",
    "outage_settings.py": """
from pathlib import Path
from portal.settings import *
BASE_DIR = Path(__file__).parent
INSTALLED_APPS = ["few_data", *INSTALLED_APPS]
""",
    "few_data/management/commands/seed.py": """
from tickets.management.commands import seed
class Command(seed.Command):
    def work(self, options):
        super().work(options | {"tenants": 2, "users": 1, "tickets": 5})
""",
}
# What a process is called, and by which word of its command line it is known.
WEB, WORKER, ENGINE = "web server", "stream worker", "engine"
_WORDS: Final = {WEB: "portal.wsgi", WORKER: "run_stream"}
_ENGINES: Final = {"dynamodb-local": "LoopbackServer", "ministack": "ministack"}


class OwnDemo:
    """A demo that runs. `said` grows by what it prints."""

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder, self._engine = folder, engine
        self.port = free_port()
        self.said: list[str] = []
        self._running: subprocess.Popen[str] | None = None
        self._is_up = threading.Event()
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a management command on the engine that runs, to its end; it fails where none does."""
        environ = self._environ()
        point_at(running_engine(self._folder / "var" / self._engine) or _NOWHERE, environ)
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self._folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self) -> None:
        """Start it, and wait until it says where it is. Raises CommandError."""
        self._running = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--engine", self._engine, "--port", str(self.port)],
            cwd=self._folder,
            env=self._environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=(self._running,), daemon=True).start()
        if not self._is_up.wait(_START_SECONDS) or not self.runs:
            raise CommandError("The demo did not start: " + " ".join(self.said[-5:]))

    @property
    def runs(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def pids(self, kind: str) -> list[int]:
        """Return the process of a kind, and behind it the children that do the same work."""
        word = _WORDS.get(kind) or _ENGINES[self._engine]
        for pid in _children(self._running.pid) if self._running else []:
            if _is(pid, word):
                return [pid, *(child for child in _children(pid) if _is(child, word))]
        return []

    def stop(self) -> int:
        """Stop it as Ctrl-C does; its exit status."""
        if not self._running:
            return 0
        if self.runs:
            os.killpg(self._running.pid, signal.SIGINT)
        return self._running.wait(_STOP_SECONDS)

    def _listen(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.said.append(line.strip())
            if "Ctrl-C stops it" in line:
                self._is_up.set()
        self._is_up.set()

    def _environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DYNAMODB_"))}
        ours = {"PYTHONPATH": str(settings.BASE_DIR), "DJANGO_SETTINGS_MODULE": "outage_settings", "DEBUG": "1"}
        # Nothing is delivered here, and these people never pause.
        return kept | ours | {"DELIVERY_WORKERS": "0", "TENANT_RATES": "off"}


@contextmanager
def own_demo(folder: Path, engine: str, say: Callable[[str], object]) -> Iterator[OwnDemo]:
    """Start a demo with a few sample data, and stop it in the end. Raises CommandError."""
    demo = OwnDemo(folder, engine)
    say("Starting a demo ...")
    try:
        demo.start()
        yield demo
    finally:
        demo.stop()


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _is(pid: int, word: str) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    # The watch on the parent is a shell whose command line holds that of the process it stands beside.
    return not line.startswith("/bin/sh") and word in line
