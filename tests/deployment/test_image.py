"""The image is built as `make image` does it, and serves from a read-only file system as a user without rights.

Without buildah and a base image these tests are skipped: `make image-test` brings both, and runs them.
"""

from __future__ import annotations

import os
import resource
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings

from portal.engines.endpoint import free_port
from portal.engines.processes import Child
from tests.deployment.test_production_chapter import Machine, words
from tests.support import images
from tests.support.waiting import wait_until

MOST_BYTES = 250_000_000
MOST_CPU_SECONDS = 3.0  # until the first answer; on a machine with nothing else to do it takes as long
PASSWORD = "a long pass phrase of my own"


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    """The folder with the files of the image."""
    if os.environ.get("IMAGE_TEST") and not images.base():
        images.fetch_base()
    if why := images.missing():
        assert not os.environ.get("IMAGE_TEST"), why
        pytest.skip(why)
    try:
        yield images.build()
    finally:
        images.remove()


@dataclass
class Container(Machine):
    """A machine whose commands run in the image."""

    root: str = ""
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, argv: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            images.inside(self.root, argv),
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def is_up(self) -> bool:
        with suppress(OSError):
            return self.get("/healthz")[0] == 200
        return False


@pytest.fixture(scope="module")
def container(root: str, tmp_path_factory: pytest.TempPathFactory) -> Container:
    port = free_port()
    stated = dict(one.split("=", 1) for one in images.configured("Env"))  # type: ignore[attr-defined]  # a list
    environ = stated | {
        "PATH": f"{stated.get('PATH', '')}:/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ALLOWED_HOSTS": "desk.example.com",
        "PORTAL_BASE_URL": "https://desk.example.com",
        "BEHIND_TLS_PROXY": "true",
        "TRUSTED_PROXIES": "1",
        "DYNAMODB_ENDPOINT_URL": settings.DYNAMODB_ENDPOINT_URL,
        "DYNAMODB_TABLE_PREFIX": "Image",
        "AWS_ACCESS_KEY_ID": "pooldesk",
        "AWS_SECRET_ACCESS_KEY": "pooldesk",
        "OPERATOR_SECOND_FACTOR": "off",
        "EMAIL_URL": "smtp+tls://user:password@mail.example.com:587",
    }
    return Container(port, tmp_path_factory.mktemp("image") / "web.log", root=root, environ=environ)


def shell(container: Container, text: str) -> subprocess.CompletedProcess[str]:
    return container.run(["sh", "-c", text])


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_image_is_small(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    seen: set[int] = set()
    size = sum(
        found.st_size
        for path in Path(root).rglob("*")
        if (found := path.lstat()).st_ino not in seen and not seen.add(found.st_ino)  # type: ignore[func-returns-value]
    )
    with capsys.disabled():
        print(f"\nThe image has {size / 1e6:.0f} MB on {images.base()}.")  # noqa: T201
    assert size < MOST_BYTES


@pytest.mark.parametrize(
    "missing",
    ["import pip", "import ministack", "import pytest", "import aiosmtpd", "import tests", "import proofs"],
)
def test_what_is_only_for_developers_is_left_out(container: Container, missing: str) -> None:
    assert "ModuleNotFoundError" in shell(container, f'python3 -c "{missing}"').stderr


def test_it_runs_as_a_user_who_can_write_nowhere_but_to_its_temporary_folder(container: Container) -> None:
    assert images.configured("User") == f"{images.USER}:{images.USER}"
    assert shell(container, "id -u").stdout == f"{images.USER}\n"
    assert "Read-only file system" in shell(container, "touch here").stderr
    assert shell(container, "touch /tmp/here && cc --version").stderr.endswith("not found\n")


@pytest.mark.parametrize(
    "handler",
    ["tickets.following.lambda_entry", "tickets.following.lifecycle_lambda", "delivery.lambda_handlers"],
)
def test_it_has_all_that_a_function_needs(container: Container, handler: str) -> None:
    done = shell(container, f'python3 -c "import awslambdaric, {handler}"')
    assert done.returncode == 0, done.stderr


def test_somebody_signs_in_at_a_container_with_a_read_only_file_system(
    container: Container, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (
        "python manage.py create_tables --wait",
        "python manage.py create_queues --wait",
        "python manage.py create_user you@example.com --name You",
        "python manage.py create_tenant Acme --owner you@example.com",
    ):
        done = container.run(["python3", *words(line)[1:]], f"{PASSWORD}\n")
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    command = images.configured("Cmd")
    assert isinstance(command, list)
    argv = [one.replace("0.0.0.0:8000", f"127.0.0.1:{container.port}") for one in command]
    began, used = time.monotonic(), cpu()
    with container.log.open("wb") as output:
        child = Child("web server", images.inside(container.root, argv), env=container.environ, output=output)
        try:
            wait_until(lambda: container.is_up() or child.poll() is not None)
            assert child.poll() is None, container.log.read_text()
            took = time.monotonic() - began
            assert container.request("GET", "/readyz")[0] == 200
            token = container.get("/login/")[1].partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
            fields = {"email": "you@example.com", "password": PASSWORD, "csrfmiddlewaretoken": token}
            status, headers, page = container.request("POST", "/login/", **fields)
            assert status == 302, page
            assert container.get(headers["Location"])[0] == 200
            sheet = container.get("/login/")[1].partition('href="/static/')[2].partition('"')[0]
            assert container.get(f"/static/{sheet}")[0] == 200
        finally:
            child.stop(seconds=60)
    with capsys.disabled():
        print(f"\nIt answered after {took:.1f} s; start, sign-in and end took {cpu() - used:.1f} s of a processor.")  # noqa: T201
    assert cpu() - used < 2 * MOST_CPU_SECONDS
