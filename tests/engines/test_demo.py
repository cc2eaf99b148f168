"""`manage.py demo` in a small project of its own: what it starts, how it ends, what it says when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from portal.engines.processes import free_port
from portal.engines.server import running_engine

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


class Demo:
    """A project with one table, in a directory of its own."""

    def __init__(self, directory: Path, files: dict[str, str] = FILES) -> None:
        self.directory = directory
        self.port = free_port()
        self.running: subprocess.Popen[str] | None = None
        for name, text in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DYNAMODB_"))}
        self.environ = kept | {"PYTHONPATH": str(settings.BASE_DIR), "DJANGO_SETTINGS_MODULE": "demo_settings"}

    def start(self, *, until: str = "Ctrl-C") -> str:
        """What it printed up to that line, or all of it if it ended before."""
        self.running = subprocess.Popen(
            [sys.executable, "manage.py", "demo", "--port", str(self.port), "--workers", "1"],
            cwd=self.directory,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
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
    assert demo.call("seed", "--key", "second").returncode == 0
    assert demo.page()["items"] == 2
    assert demo.end()[0] == 0
    assert [path.name for path in (demo.directory / "var").iterdir()] == ["endpoint"]


def test_the_stream_worker_is_stopped_while_the_engine_still_answers(demo: Demo) -> None:
    demo.start()
    assert demo.call("seed", "--key", "second").returncode == 0
    assert demo.end()[0] == 0
    assert (demo.directory / "drained").read_text() == "2 items"


def test_a_stream_worker_that_dies_stops_everything(demo: Demo) -> None:
    demo.start()
    pid = demo.directory / "worker"
    deadline = time.monotonic() + 30
    while not (pid.exists() and pid.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert demo.running
    rest, _ = demo.running.communicate(timeout=60)
    assert demo.running.returncode == 1
    assert "The stream worker ended unexpectedly, with exit status -9." in rest


def test_a_web_server_that_dies_stops_everything(demo: Demo) -> None:
    demo.start()
    os.kill(demo.page()["gunicorn"], signal.SIGKILL)
    assert demo.running
    rest, _ = demo.running.communicate(timeout=60)
    assert demo.running.returncode == 1
    assert "The web server ended unexpectedly, with exit status -9." in rest
    assert "Traceback" not in rest
    assert running_engine(demo.directory / "var" / "ministack") is None


def test_ctrl_c_while_sample_data_is_written_ends_in_order(demo: Demo) -> None:
    demo.environ["SEED_SECONDS"] = "60"
    demo.start(until="seeding")
    status, rest = demo.end()
    assert status == 0
    assert rest == "Stopped.\n"
