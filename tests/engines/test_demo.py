"""`manage.py demo` in a small project of its own: what it starts, how it ends, what it says when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from portal.engines import discovery, dynamodb_local
from portal.engines.endpoint import free_port, port_obstacle
from portal.engines.engine_process import QUEUES_FOLDER, Ministack, running_engine
from tests.support import commands
from tests.support.waiting import wait_until

FILES = {
    # Our own finds the engine of a plain command. What the sample's commands do, dozens of processes do without Django.
    "manage.py": (settings.BASE_DIR / "manage.py")
    .read_text()
    .replace("from django.core.management import", "from sample.quick import"),
    "sample/quick.py": """
import importlib
def execute_from_command_line(argv):
    command = importlib.import_module(f"sample.management.commands.{argv[1]}")
    if hasattr(command, "work"):
        command.work(*argv[2:])
    else:
        from django.core.management import execute_from_command_line as by_django
        by_django(argv)
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
DEMO_PASSWORD = "demo-pass-123"
NOISE_NOTED = False
""",
    "sample/urls.py": """
import os
from django.http import JsonResponse
from django.urls import path
from portal.web.access import costs
from sample import table
@costs()
def page(request):
    return JsonResponse({"gunicorn": os.getppid(), "items": table.count()})
urlpatterns = [path("", page), path("healthz", page)]
""",
    # Without boto3: dozens of processes load this, and each would read what the client knows of all operations.
    "sample/table.py": """
import json, os
from urllib.request import Request, urlopen
SIGNED = "AWS4-HMAC-SHA256 Credential=demo/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
def send(endpoint, target, **arguments):
    headers = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0", "Authorization": SIGNED}
    with urlopen(Request(endpoint, json.dumps(arguments).encode(), headers), timeout=120) as answer:
        return json.load(answer)
def call(operation, **arguments):
    return send(os.environ["DYNAMODB_ENDPOINT_URL"], f"DynamoDB_20120810.{operation}", **arguments)
def create():
    if "Demo" not in call("ListTables")["TableNames"]:
        call("CreateTable", TableName="Demo", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}])
def add(key):
    call("PutItem", TableName="Demo", Item={"pk": {"S": key}})
def count():
    return call("Scan", TableName="Demo", Select="COUNT")["Count"]
""",
    # On a busy machine it would say that it waits.
    "sample/management/commands/demo.py": """
from portal.engines import processes
from portal.management.commands.demo import Command
processes.SLOW_SECONDS = 600
""",
    "sample/management/commands/prepare_demo.py": """
from pathlib import Path
from sample import table
from sample.management.commands import seed
def work(*words):
    table.create()
    if Path(__file__).with_name("create_queues.py").exists():
        from sample.management.commands import create_queues
        create_queues.work("--wait")
    if words == ("--seed",):
        seed.work()
""",
    "sample/management/commands/run_stream.py": """
import os, signal, sys, time
from pathlib import Path
from sample import table
def stop(number, frame):
    Path("drained").write_text(f"{table.count()} items")
    sys.exit(0)
def work(*words):
    if Path("broken").exists():
        sys.exit(7)
    signal.signal(signal.SIGTERM, stop)
    Path("worker").write_text(str(os.getpid()))
    assert words[:2] == ("--drain", "10")
    while True:
        time.sleep(0.1)
""",
    "sample/management/commands/seed.py": """
import sys
from sample import table
def work(option="--key", key="first"):
    if key == "bad":
        sys.exit("There is no such key.")
    print("seeding", flush=True)
    table.add(key)
""",
}
QUEUES = {
    "sample/management/commands/create_queues.py": """
import os
from sample import table
def work(*words):
    endpoint = os.environ.get("SQS_ENDPOINT_URL", os.environ["DYNAMODB_ENDPOINT_URL"])
    assert "QueueUrl" in table.send(endpoint, "AmazonSQS.CreateQueue", QueueName="demo")
    print("queues at", endpoint, flush=True)
""",
}
# Our own, by Django, on sample data that take long.
SLOWLY = {
    "sample/management/commands/prepare_demo.py": "from portal.management.commands.prepare_demo import Command\n",
    "sample/management/commands/create_tables.py": "from sample.management.commands.seed import Command\n",
    "sample/management/commands/seed.py": """
import time
from django.core.management.base import BaseCommand
class Command(BaseCommand):
    def add_arguments(self, parser):
        for option in ("--upgrade", "--drop-old", "--if-empty"):
            parser.add_argument(option, action="store_true")
    def handle(self, **options):
        if options["if_empty"]:
            print("seeding", flush=True)
            time.sleep(600)
""",
}


class Demo:
    """A project with one table, in a directory of its own."""

    def __init__(self, directory: Path, files: dict[str, str] = FILES) -> None:
        self.directory = directory
        self.port = free_port()
        self.options = ["--port", str(self.port)]
        self.running: subprocess.Popen[str] | None = None
        self.banner = ""
        self.write(files)
        others = ("AWS_", "DYNAMODB_", "SQS_", "DEBUG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self.environ = kept | {
            "PYTHONPATH": str(settings.BASE_DIR),
            "DJANGO_SETTINGS_MODULE": "demo_settings",
            "WEB_CONCURRENCY": "1",
            # Nothing of this machine's own may stand in for an engine.
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": str(directory),
        }

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).write_text(text)

    def start(self, *, until: str = "Ctrl-C") -> str:
        """What it printed up to that line."""
        self.launch()
        printed = self.read(until=until)
        assert until in printed, printed
        return printed

    def launch(self) -> None:
        self.running = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *self.options],
            cwd=self.directory,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

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
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=120) as answer:
            page: dict[str, int] = json.load(answer)
            return page

    def answers(self) -> bool:
        try:
            self.page()
        except OSError:
            return False
        return True

    def worker(self, *, beside: int = 0) -> int:
        """Return the id of the stream worker's process, waited for; of another one than `beside`."""
        file = self.directory / "worker"
        wait_until(lambda: file.exists() and file.read_text() not in ("", str(beside)))
        return int(file.read_text())

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Signal the process group, as a terminal does; the exit status and the rest of the output."""
        assert self.running
        os.killpg(self.running.pid, number)
        rest, _ = self.running.communicate(timeout=120)
        return self.running.returncode, rest

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`manage.py demo` with arguments that make it end by itself."""
        return self.manage("demo", *arguments)

    def manage(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.directory,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    if demo.running and demo.running.poll() is None:
        demo.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """One with queues that runs, for the tests that leave it running."""
    demo = Demo(tmp_path_factory.mktemp("shared"), FILES | QUEUES)
    demo.banner = demo.start()
    yield demo
    assert demo.end(signal.SIGTERM)[0] == 0


# --- one that runs ---


def test_it_says_where_it_is_and_who_can_sign_in(shared: Demo) -> None:
    assert f"http://127.0.0.1:{shared.port}" in shared.banner
    assert "alice@example.com" in shared.banner


def test_a_command_joins_the_demo_that_runs_and_a_plain_one_works_on_its_engine(shared: Demo) -> None:
    before = shared.page()["items"]
    joined = shared.call("seed", "--key", "joined")
    assert joined.returncode == 0
    assert shared.page()["items"] == before + 1
    assert "queues at" in joined.stderr, "said by what prepares the demo"
    assert "seeding" not in joined.stderr, "sample data are a demo's own"
    plain = shared.manage("seed", "--key", "plain")
    assert plain.returncode == 0
    assert shared.page()["items"] == before + 2
    (line,) = plain.stderr.splitlines()
    assert line.startswith("Using the engine of `make run`, ministack at http://127.0.0.1:")
    assert line.endswith(", with DEBUG=1.")
    assert joined.stdout == plain.stdout, "the standard output is the command's own"


def test_links_in_mails_of_a_plain_command_lead_to_the_portal_that_runs(shared: Demo) -> None:
    environ: dict[str, str] = {}
    discovery.prepare(["manage.py", "seed"], shared.directory, environ=environ, say=str)
    assert environ["PORTAL_BASE_URL"] == f"http://127.0.0.1:{shared.port}"


def test_a_command_that_fails_hands_on_its_status(shared: Demo) -> None:
    done = shared.call("seed", "--key", "bad")
    assert done.returncode == 1
    assert "There is no such key." in done.stderr


def test_a_second_demo_in_the_same_tree_is_explained(shared: Demo) -> None:
    before = shared.page()["items"]
    ended = commands.run("demo", "--port", shared.port)
    assert ended.status == 1
    assert f"The portal's port {shared.port} is taken; choose another with PORT=" in ended.err
    done = shared.call("--port", str(free_port()))
    assert done.returncode == 1
    assert "Another engine is using the data" in done.stderr
    assert "Traceback" not in done.stderr
    assert shared.page()["items"] == before


def test_with_the_embedded_engine_there_is_one_process_for_tables_and_queues(shared: Demo) -> None:
    address = running_engine(shared.directory / "var" / "ministack")
    assert f"queues at {address}" in shared.banner
    assert not (shared.directory / "var" / "ministack" / QUEUES_FOLDER).exists()


def test_a_stream_worker_that_is_killed_is_started_again_and_pages_work_meanwhile(shared: Demo) -> None:
    killed = shared.worker()
    os.kill(killed, signal.SIGKILL)
    assert shared.page()["items"] >= 1
    assert shared.read(until="runs again") == (
        "The stream worker died with signal 9; it is started again in 0.5 s.\nThe stream worker runs again.\n"
    )
    assert shared.worker(beside=killed)


def test_a_web_server_that_is_killed_is_started_again(shared: Demo) -> None:
    killed = shared.page()["gunicorn"]
    os.kill(killed, signal.SIGKILL)
    assert "The web server died with signal 9" in shared.read(until="runs again")
    wait_until(lambda: shared.answers() and shared.page()["gunicorn"] != killed)


# --- how it ends, and begins again ---


@pytest.fixture
def beside(demo: Demo, shared: Demo) -> Demo:
    """One on the engine of another, for what has to do with no engine."""
    address = running_engine(shared.directory / "var" / "ministack")
    assert address
    demo.environ["DYNAMODB_ENDPOINT_URL"] = address
    return demo


def test_ctrl_c_while_sample_data_is_written_ends_in_order(beside: Demo) -> None:
    demo = beside
    demo.write(SLOWLY)
    demo.start(until="seeding")
    status, rest = demo.end()
    assert status == 0
    assert rest == "Stopped: Run it again; what is done already is left as it is.\nStopped.\n"


def test_an_unknown_engine_is_refused_with_the_choices() -> None:
    ended = commands.run("demo", "--engine", "sqlite")
    assert ended.status == 1
    assert ended.err == "There is no engine 'sqlite'; choose one of ministack, dynamodb-local with ENGINE=<name>."


def test_a_web_server_that_cannot_start_ends_the_demo_at_once(beside: Demo) -> None:
    demo = beside
    demo.environ["GUNICORN_CMD_ARGS"] = "--no-such-option"
    demo.launch()
    rest = demo.read(until="Ctrl-C")
    assert demo.running
    assert demo.running.wait(120) == 1
    assert "The web server ended unexpectedly, with exit status" in rest


# --- engines that are killed ---


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_engine(demo: Demo, word: str) -> str:
    """Kill the engine whose command line has this word; what is said until it runs again."""
    assert demo.running
    (engine,) = (pid for pid in children(demo.running.pid) if word in Path(f"/proc/{pid}/cmdline").read_text())
    os.kill(engine, signal.SIGKILL)
    return demo.read(until="The engine runs again")


linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the engine's process in /proc")


@linux
def test_it_finds_its_data_again_says_what_a_killed_ministack_has_lost_and_ends_in_order(demo: Demo) -> None:
    assert demo.call("seed", "--key", "saved").returncode == 0
    demo.start()
    assert demo.page()["items"] == 2, "what the engine saved for a command, and sample data"
    worker = demo.worker()
    assert demo.running
    # Stopped first: it would restart what dies, and an engine whose parent is gone ends in order, and saves.
    os.kill(demo.running.pid, signal.SIGSTOP)
    for pid in [*children(demo.running.pid), demo.running.pid]:
        os.kill(pid, signal.SIGKILL)
    demo.running.wait()
    wait_until(lambda: port_obstacle(demo.port) is None)  # gunicorn's workers notice a little later

    said = demo.start()
    lost = "It saves only when it is stopped: what was written after 20"
    assert f"The engine ministack was killed the last time. {lost}" in said, "killed with all"
    assert demo.page()["items"] == 2  # sample data, written anew
    worker = demo.worker(beside=worker)
    said = kill_engine(demo, "-m\0ministack")
    assert "The engine died with signal 9; it is started again in 0.5 s." in said
    assert lost in said
    assert demo.page()["items"] == 2
    demo.worker(beside=worker)
    drained, state = demo.directory / "drained", demo.directory / "var" / "ministack" / Ministack.state_file
    assert not drained.exists()
    saved = state.stat().st_mtime_ns
    status, rest = demo.end(signal.SIGINT)
    assert (status, rest.split()) == (0, ["Stopping", "...", "Stopped."])
    assert drained.read_text() == "2 items", "the stream worker, started again, is stopped while the engine answers"
    assert state.stat().st_mtime_ns > saved


@linux
def test_a_dynamodb_local_that_is_killed_loses_nothing_and_has_queues_beside_it(tmp_path: Path) -> None:
    try:
        installed = dynamodb_local.install()
    except dynamodb_local.InstallError as reason:
        pytest.skip(str(reason))
    demo = Demo(tmp_path, FILES | QUEUES)
    demo.environ["XDG_CACHE_HOME"] = str(installed.parents[2])
    demo.options += ["--engine", "dynamodb-local"]
    try:
        started = demo.start()
        beside = demo.directory / "var" / "dynamodb-local" / QUEUES_FOLDER
        address = running_engine(beside)
        assert f"queues at {address}" in started
        assert f"queues at {address}" in demo.manage("create_queues").stdout, "a plain command finds them"
        assert demo.manage("seed", "--key", "second").returncode == 0

        assert "It saves each write, so nothing is lost." in kill_engine(demo, "LoopbackServer")
        assert demo.page()["items"] == 2

        assert demo.running
        (queues,) = (
            pid for pid in children(demo.running.pid) if "-m\0ministack" in Path(f"/proc/{pid}/cmdline").read_text()
        )
        os.kill(queues, signal.SIGKILL)
        assert f"queues at {address}" in demo.read(until="engine of the queues runs again")
    finally:
        status, _ = demo.end(signal.SIGTERM)
    assert status == 0
    wait_until(lambda: running_engine(beside) is None)


# --- an engine that is given ---


DIES_AT_ONCE = {
    "sample/management/commands/demo.py": """
from portal.engines import processes, supervisor
from portal.management.commands.demo import Command
processes.SLOW_SECONDS = 600
supervisor.FIRST_PAUSE_SECONDS = 0
supervisor.MOST_DEATHS = 2
supervisor.WINDOW_SECONDS = 3600
""",
}


def test_an_engine_that_is_given_gets_queues_if_it_has_none_and_outlives_a_demo_that_gives_up(tmp_path: Path) -> None:
    """Any engine with tables alone: here a ministack that was told to serve nothing else."""
    demo = Demo(tmp_path, FILES | QUEUES | DIES_AT_ONCE)
    with TablesAlone().start() as engine:
        demo.environ["DYNAMODB_ENDPOINT_URL"] = engine.endpoint_url
        banner = demo.start()
        try:
            assert f"Engine     {engine.endpoint_url}\n" in banner
            address = running_engine(tmp_path / "var" / "endpoint" / QUEUES_FOLDER)
            assert address not in (None, engine.endpoint_url)
            assert f"queues at {address}" in banner
            joined = demo.call("seed", "--key", "joined")
            assert joined.returncode == 0
            assert f"queues at {address}" in joined.stderr, "one that joins finds them"
            del demo.environ["DYNAMODB_ENDPOINT_URL"]
            done = demo.manage("seed", "--key", "plain")
            assert done.returncode == 0
            assert f"endpoint at {engine.endpoint_url}" in done.stderr
            assert demo.page()["items"] == 3

            worker = demo.worker()
            (demo.directory / "broken").touch()
            os.kill(worker, signal.SIGKILL)
            assert demo.running
            rest, _ = demo.running.communicate(timeout=120)
        finally:
            if demo.running and demo.running.poll() is None:
                demo.end()
        assert demo.running.returncode == 1
        assert "CommandError: The stream worker died with exit status 7, for the " in rest
        assert "Traceback" not in rest
        assert not demo.answers()
        assert running_engine(tmp_path / "var" / "endpoint" / QUEUES_FOLDER) is None
        assert engine.answers()
        names = {path.name for path in (tmp_path / "var").iterdir()}
        assert names == {"endpoint", "log", "portal"}, "no other engine ran"


class TablesAlone(Ministack):
    services = "dynamodb"
