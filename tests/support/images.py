"""Build the image and start processes of it without Docker: by buildah, as root, with a read-only root file system."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from django.conf import settings

OFFICIAL: Final = "docker.io/library/python:3.11-slim-bookworm"
STAND_IN: Final = "localhost/pooldesk-python"  # `make image-base` makes it
TAG: Final = "localhost/pooldesk-tested"
USER: Final = 10001
_ENVIRON: Final = {**os.environ, "BUILDAH_ISOLATION": "chroot"}

# In a mount namespace of its own: the root file system is read-only, /tmp and /dev are all that can be written to.
_START: Final = """
set -e
mount --bind "$0" "$0"
mount -t tmpfs tmpfs "$0/tmp" && chmod 1777 "$0/tmp"
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/dev" && mkdir -m 1777 "$0/dev/shm"
mknod -m 666 "$0/dev/null" c 1 3 && mknod -m 666 "$0/dev/urandom" c 1 9
mount -o remount,bind,ro "$0"
exec /usr/sbin/chroot --userspec=10001:10001 --groups= "$0" env -C /srv/pooldesk "$@"
"""


def buildah(*arguments: str, timeout: int = 900) -> str:
    done = subprocess.run(
        ["buildah", *arguments],  # noqa: S607  # of the machine
        env=_ENVIRON,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, f"buildah {' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout.strip()


def missing() -> str:
    """Return why no image can be built here, "" where one can."""
    if os.getuid() != 0:
        return "only root can start processes with another root file system"
    if lacks := [name for name in ("buildah", "unshare") if not shutil.which(name)]:
        return f"{' and '.join(lacks)} missing: `make image-test` installs it"
    if not base():
        return "there is no base image on this machine: `make image-test` fetches it"
    return ""


def base() -> str:
    """Return the base image that is on this machine, "" where none is."""
    names = buildah("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()
    return next((name for name in (OFFICIAL, STAND_IN) if name in names or f"{name}:latest" in names), "")


def fetch_base() -> None:
    """Pull the official image, or make one of the same parts where its registry cannot be reached."""
    try:
        buildah("pull", OFFICIAL, timeout=300)
    except (AssertionError, subprocess.TimeoutExpired):
        subprocess.run(["make", "image-base"], cwd=settings.BASE_DIR, check=True)  # noqa: S607


def build() -> str:
    """Build the image, and return the folder in which its files are, to be removed by `remove`."""
    # The chroot of buildah sees neither the name servers of this machine nor the authorities that it trusts.
    seen = [f"--volume={path}:{path}:ro" for path in ("/etc/ssl/certs", "/etc/resolv.conf")]
    arguments = ["--format=docker", "--pull-never", "--layers", f"--build-arg=PYTHON={base()}", *seen, f"--tag={TAG}"]
    buildah("build", *arguments, ".", timeout=1800)
    return buildah("mount", buildah("from", "--name=pooldesk-tested", TAG))


def remove() -> None:
    """Remove the container of `build`. The image and its layers stay, so that the next build is quick."""
    buildah("rm", "pooldesk-tested")


def inside(root: str, argv: Sequence[str]) -> list[str]:
    """Return the command line that starts a process of the image, as its user."""
    return ["unshare", "--mount", "sh", "-c", _START, root, *argv]


def configured(field: str) -> object:
    """Return a field of the image's configuration."""
    import json

    found: Mapping[str, object] = json.loads(buildah("inspect", TAG))["Docker"]["config"]
    return found[field]
