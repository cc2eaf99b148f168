"""`manage.py demo` in a small project of its own: what it starts, how it ends, what it says when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from portal.engines import dynamodb_local
from portal.engines.engine_process import running_engine
from portal.engines.processes import free_port, port_obstacle

FILES = {
    "manage.py": """
import sys
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
""",
    "demo_settings.py": """
import os
from pathlib import Path
BASE_DIR = Path(__file__).parent
SECRET_KEY = "demo"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["sample"]
ROOT_URLCONF = "sample.urls"
DYNAMODB_ENDPOINT_URL = os.environ.get("DYNAMODB_ENDPOINT_URL", "")
DELIVERY_WORKERS = 1
""",
    "sample/urls.py": """
import os
from django.http import JsonResponse
from django.urls import path
from sample import table
def page(request):
    return JsonResponse({"gunicorn": os.getppid(), "items": table.count()})
urlpatterns = [path("", page), path("healthz", page)]
""",
    "sample/table.py": """
import os
import boto3
def client():
    return boto3.client("dynamodb", endpoint_url=os.environ["DYNAMODB_ENDPOINT_URL"])
def create():
    if "Demo" not in client().list_tables()["TableNames"]:
        client().create_table(TableName="Demo", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}])
def add(key):
    client().put_item(TableName="Demo", Item={"pk": {"S": key}})
def count():
    return client().scan(TableName="Demo", Select="COUNT")["Count"]
""",
    "sample/management/commands/demo.py": "from portal.management.commands.demo import Command\n",
    "sample/management/commands/create_tables.py": """
from django.core.management.base import BaseCommand
from sample import table
class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("--wait", action="store_true")
    def handle(self, **options):
        table.create()
""",
    "sample/management/commands/run_stream.py": """
import os, signal, sys, time
from pathlib import Path
from django.core.management.base import BaseCommand
from sample import table
def stop(number, frame):
    Path("drained").write_text(f"{table.count()} items")
    sys.exit(0)
class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("--drain", type=float)
        parser.add_argument("--metrics", type=float)
    def handle(self, **options):
        if Path("broken").exists():
            sys.exit(7)
        signal.signal(signal.SIGTERM, stop)
        Path("worker").write_text(str(os.getpid()))
        assert options["drain"] == 10
        while True:
            time.sleep(0.1)
""",
    "sample/management/commands/seed.py": """
import os, time
from django.core.management.base import BaseCommand, CommandError
from sample import table
class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("--if-empty", action="store_true")
        parser.add_argument("--key", default="first")
    def handle(self, **options):
        if options["key"] == "bad":
            raise CommandError("There is no such key.")
        print("seeding", flush=True)
        time.sleep(float(os.environ.get("SEED_SECONDS", "0")))
        table.add(options["key"])
""",
}


def wait_until(holds: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Demo:
    """A project with one table, in a directory of its own."""

    def __init__(self, directory: Path, files: dict[str, str] = FILES) -> None:
        self.directory = directory
        self.port = free_port()
        self.options = ["--port", str(self.port), "--workers", "1"]
        self.running: subprocess.Popen[str] | None = None
        for name, text in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DYNAMODB_"))}
        self.environ = kept | {"PYTHONPATH": str(settings.BASE_DIR), "DJANGO_SETTINGS_MODULE": "demo_settings"}

    def start(self, *, until: str = "Ctrl-C") -> str:
        """What it printed up to that line, or all of it if it ended before."""
        self.running = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *self.options],
            cwd=self.directory,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return self.read(until=until)

    def read(self, *, until: str) -> str:
        """Return what it prints from now up to that line, or to its end."""
        assert self.running
        assert self.running.stdout is not None
        printed = ""
        for line in self.running.stdout:
            printed += line
            if until in line:
                break
        return printed

    def page(self) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=20) as answer:
            page: dict[str, int] = json.load(answer)
            return page

    def answers(self) -> bool:
        try:
            self.page()
        except OSError:
            return False
        return True

    def worker(self) -> int:
        """Return the id of the stream worker's process, waited for."""
        file = self.directory / "worker"
        wait_until(lambda: file.exists() and file.read_text() != "")
        return int(file.read_text())

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Signal the process group, as a terminal does; the exit status and the rest of the output."""
        assert self.running
        os.killpg(self.running.pid, number)
        rest, _ = self.running.communicate(timeout=60)
        return self.running.returncode, rest

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`manage.py demo` with arguments that make it end by itself."""
        return subprocess.run(
            [sys.executable, "manage.py", "demo", *arguments],
            cwd=self.directory,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    if demo.running and demo.running.poll() is None:
        demo.end(signal.SIGTERM)


def test_it_ends_in_order_and_finds_its_data_again(demo: Demo) -> None:
    banner = demo.start()
    assert f"http://127.0.0.1:{demo.port}" in banner
    assert "alice@example.com" in banner
    assert demo.page()["items"] == 1
    status, rest = demo.end(signal.SIGINT)
    assert status == 0
    assert rest.split() == ["Stopping", "...", "Stopped."]

    assert demo.call("seed", "--key", "second").returncode == 0

    demo.start()
    assert demo.page()["items"] == 2
    status, rest = demo.end(signal.SIGTERM)
    assert status == 0
    assert rest.split() == ["Stopping", "...", "Stopped."]


def test_a_command_joins_the_demo_that_runs(demo: Demo) -> None:
    demo.start()
    assert demo.call("seed", "--key", "second").returncode == 0
    assert demo.page()["items"] == 2


def test_a_command_that_fails_hands_on_its_status(demo: Demo) -> None:
    done = demo.call("seed", "--key", "bad")
    assert done.returncode == 1
    assert "There is no such key." in done.stderr


def test_a_second_demo_in_the_same_tree_is_explained(demo: Demo) -> None:
    demo.start()
    done = demo.call("--port", str(demo.port))
    assert done.returncode == 1
    assert f"The portal's port {demo.port} is taken; choose another with PORT=" in done.stderr
    done = demo.call("--port", str(free_port()))
    assert done.returncode == 1
    assert "Another engine is using the data" in done.stderr
    assert "Traceback" not in done.stderr
    assert demo.page()["items"] == 1


def test_an_unknown_engine_is_refused_with_the_choices(demo: Demo) -> None:
    done = demo.call("--engine", "sqlite")
    assert done.returncode == 1
    assert done.stderr == (
        "CommandError: There is no engine 'sqlite'; choose one of ministack, dynamodb-local with ENGINE=<name>.\n"
    )


def test_an_engine_that_is_given_is_used_and_left_running(demo: Demo) -> None:
    demo.environ["DYNAMODB_ENDPOINT_URL"] = settings.DYNAMODB_ENDPOINT_URL
    banner = demo.start()
    assert f"Engine     {settings.DYNAMODB_ENDPOINT_URL}\n" in banner
    before = demo.page()["items"]
    assert demo.call("seed", "--key", "one more").returncode == 0
    assert demo.page()["items"] == before + 1
    assert demo.end()[0] == 0
    assert [path.name for path in (demo.directory / "var").iterdir()] == ["endpoint"]


def test_the_stream_worker_is_stopped_while_the_engine_still_answers(demo: Demo) -> None:
    demo.start()
    assert demo.call("seed", "--key", "second").returncode == 0
    assert demo.end()[0] == 0
    assert (demo.directory / "drained").read_text() == "2 items"


def test_a_stream_worker_that_is_killed_is_started_again_and_pages_work_meanwhile(demo: Demo) -> None:
    demo.start()
    os.kill(demo.worker(), signal.SIGKILL)
    assert demo.page()["items"] == 1
    assert demo.read(until="runs again") == (
        "The stream worker died with signal 9; it is started again in 0.5 s.\nThe stream worker runs again.\n"
    )
    assert demo.end()[0] == 0
    assert (demo.directory / "drained").exists()


def test_a_web_server_that_is_killed_is_started_again(demo: Demo) -> None:
    demo.start()
    killed = demo.page()["gunicorn"]
    os.kill(killed, signal.SIGKILL)
    assert "The web server died with signal 9" in demo.read(until="runs again")
    wait_until(lambda: demo.answers() and demo.page()["gunicorn"] != killed)
    assert demo.end()[0] == 0


def killed_engine(demo: Demo) -> str:
    """Return what is said until the engine that was killed runs again."""
    demo.start()
    assert demo.call(*demo.options, "seed", "--key", "second").returncode == 0
    assert demo.running
    (engine,) = (
        pid
        for pid in children(demo.running.pid)
        if any(name in Path(f"/proc/{pid}/cmdline").read_text() for name in ("-m\0ministack", "LoopbackServer"))
    )
    os.kill(engine, signal.SIGKILL)
    return demo.read(until="The engine runs again")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the engine's process in /proc")


@linux
def test_a_ministack_that_is_killed_is_started_again_and_the_loss_is_said(demo: Demo) -> None:
    said = killed_engine(demo)
    assert "The engine died with signal 9; it is started again in 0.5 s." in said
    assert "It saves only when it is stopped, and had not been before: all data are lost." in said
    assert demo.page()["items"] == 1  # sample data, written anew
    wait_until(lambda: bool(demo.worker()))
    assert demo.end()[0] == 0


@linux
def test_a_ministack_that_had_saved_says_since_when_data_are_lost(demo: Demo) -> None:
    demo.start()
    assert demo.end()[0] == 0
    assert "It saves only when it is stopped: what was written after 20" in killed_engine(demo)
    assert demo.page()["items"] == 1


@linux
@pytest.mark.timeout(300)
def test_a_dynamodb_local_that_is_killed_loses_nothing(demo: Demo) -> None:
    try:
        dynamodb_local.install()
    except dynamodb_local.InstallError as reason:
        pytest.skip(str(reason))
    demo.options += ["--engine", "dynamodb-local"]
    assert "It saves each write, so nothing is lost." in killed_engine(demo)
    assert demo.page()["items"] == 2
    assert demo.end()[0] == 0


@linux
def test_a_demo_that_is_killed_with_its_engine_says_at_the_next_start_what_was_lost(demo: Demo) -> None:
    demo.start()
    assert demo.running
    # Stopped first: it would restart what dies, and an engine whose parent is gone ends in order, and saves.
    os.kill(demo.running.pid, signal.SIGSTOP)
    for pid in [*children(demo.running.pid), demo.running.pid]:
        os.kill(pid, signal.SIGKILL)
    demo.running.wait()
    wait_until(lambda: port_obstacle(demo.port) is None)  # gunicorn's workers notice a little later
    assert "The engine ministack was killed the last time. It saves only when it is stopped" in demo.start()


def test_a_child_that_keeps_dying_ends_the_demo_with_a_sentence(demo: Demo) -> None:
    demo.start()
    (demo.directory / "broken").touch()
    os.kill(demo.worker(), signal.SIGKILL)
    assert demo.running
    rest, _ = demo.running.communicate(timeout=60)
    assert demo.running.returncode == 1
    assert "CommandError: The stream worker died with exit status 7, for the 5th time within a minute." in rest
    assert "Traceback" not in rest
    assert running_engine(demo.directory / "var" / "ministack") is None


def test_a_web_server_that_cannot_start_ends_the_demo_at_once(demo: Demo) -> None:
    demo.environ["GUNICORN_CMD_ARGS"] = "--no-such-option"
    rest = demo.start()
    assert demo.running
    assert demo.running.wait(60) == 1
    assert "The web server ended unexpectedly, with exit status" in rest


def test_ctrl_c_while_sample_data_is_written_ends_in_order(demo: Demo) -> None:
    demo.environ["SEED_SECONDS"] = "60"
    demo.start(until="seeding")
    status, rest = demo.end()
    assert status == 0
    assert rest == "Stopped.\n"
