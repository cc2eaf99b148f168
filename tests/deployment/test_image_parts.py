"""What the image is made of: each package by its hash, and each service of Amazon's that the code calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from infra import slim_packages

ROOT = Path(settings.BASE_DIR)
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", re.MULTILINE)
PRODUCT = ("portal", "tenants", "delivery", "tickets", "api")


def pinned(name: str) -> dict[str, str]:
    return {package.lower(): version for package, version in PINNED.findall((ROOT / name).read_text())}


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-image.txt"])
def test_the_image_has_the_versions_that_are_tested(name: str) -> None:
    locked = pinned("requirements.lock")
    assert {package: locked.get(package) for package in pinned(name)} == pinned(name), "`make lock` writes it anew"


def test_each_package_of_the_image_is_known_by_its_hash() -> None:
    entries = re.split(r"\n(?=\w)", LOCK.partition("\n")[2] if LOCK.startswith("#") else LOCK)
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_each_service_that_the_code_calls_stays_in_the_image() -> None:
    code = "\n".join(path.read_text() for part in PRODUCT for path in (ROOT / part).rglob("*.py"))
    called = set(re.findall(r'(?:aws_session\.client|session\.client|_create)\(\s*"([\w-]+)"', code))
    assert {"dynamodb", "sqs", "s3", "sts"} <= called
    assert called <= slim_packages.SERVICES


def test_slimming_keeps_what_is_used(tmp_path: Path) -> None:
    kept = ["botocore/data/sqs/x.json", "botocore/data/endpoints.json", "django/conf/locale/de/LC_MESSAGES/django.mo"]
    kept += ["django/conf/locale/en/formats.py", "django/conf/locale/__init__.py", "PIL/_webp.x.so"]
    gone = ["botocore/data/ec2/x.json", "django/contrib/admin/locale/fr/LC_MESSAGES/django.mo", "icalendar/tests/x.py"]
    gone += ["bin/gunicorn", "boto3/data/ec2/x.json", "rich/console.py", "PIL/_avif.x.so"]
    for name in kept + gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    slim_packages.slim(tmp_path)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()) == sorted(kept)
