"""The kernel serves applications that are not Pooldesk: short examples, and the to-do lists of many tenants."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from django.conf import settings
from pynamodb.attributes import UnicodeAttribute

from portal import standalone
from portal.dynamo.models import IndexModel
from portal.schema.registry import Table
from tests.isolation.test_tenant_role import TRUST

ROOT = Path(settings.BASE_DIR)
README = ROOT / "portal" / "README.md"
SHORT = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "__init__")
ROLE = "todo-tenant"


def run(*arguments: str, at: Path = ROOT, prefix: str = "Other", **more: str) -> str:
    """What a command prints, on the engine of the tests and without Django's settings."""
    environ = {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environ |= {"DYNAMODB_TABLE_PREFIX": prefix, **more}
    command = [sys.executable, "-m", *arguments]
    ended = subprocess.run(command, cwd=at, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def seen() -> Any:
    """What tests/examples/observed.py saw, while each tenant's requests were signed by its own credentials."""
    session = botocore.session.Session()
    session.set_credentials("test", "test")
    iam = session.create_client("iam", settings.AWS_REGION, endpoint_url=settings.DYNAMODB_ENDPOINT_URL)
    arn = iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    sts = settings.DYNAMODB_ENDPOINT_URL
    return json.loads(run("tests.examples.observed", prefix="Seen", TENANT_ROLE_ARN=arn, STS_ENDPOINT_URL=sts))


def test_the_guard_refuses_a_tenant_whatever_is_another_tenants(seen: Any) -> None:
    assert len(seen["stolen"]) == 6
    assert set(seen["stolen"].values()) == {"IsolationError"}


def test_each_tenants_requests_are_signed_by_credentials_of_its_own(seen: Any) -> None:
    (of_a,), (of_b,) = seen["signed"]
    assert of_a != of_b


def test_the_policy_lets_those_credentials_read_their_own_tenants_keys_alone() -> None:
    *_, acme, globex = run("examples.tenant_policy").splitlines()
    assert acme.startswith("Acme may read TENANT#aaaa")
    assert globex.startswith("Globex may not read TENANT#aaaa")


def test_two_shards_that_are_counted_at_once_are_both_counted(seen: Any) -> None:
    assert seen["counts"] == [[4, 1], [1, 0]]


def test_the_counts_stay_exact_when_records_come_again(seen: Any) -> None:
    assert seen["counts after all"] == [[4, 1], [1, 0]]


def test_what_is_open_is_listed_for_each_tenant_by_itself(seen: Any) -> None:
    assert seen["open"] == [["Thing 3", "Thing 4", "Thing 5", "Paper"], ["Bread"]]


def test_a_wrong_request_is_refused_with_an_error_of_the_kernel(seen: Any) -> None:
    assert seen["wrong"] == {
        "a name with a delimiter": "Invalid",
        "no text": "Invalid",
        "what is done": "NotFound",
        "what is not there": "NotFound",
        "the number 0": "NotFound",
        "the key of another tenant": "ForeignKey",
        "more than the rate": "LimitReached",
    }


def test_a_programmers_mistake_is_answered_with_what_is_missing(seen: Any) -> None:
    assert {name: text.rpartition(": ")[2] for name, text in seen["said"].items()} == {
        "no sort key": "name the item by sort=... as well",
        "an operation that is not granted": "no Grant names it",
        "a key of another form": "a key is not of the form that is granted",
        "a role without a grant": "declare one before its first request",
    }


def test_an_index_without_a_sort_key_is_refused_with_what_it_needs() -> None:
    with pytest.raises(ValueError, match="one with range_key=True"):

        class ByText(IndexModel):
            table = Table("Notes.Entries", "tenant", "tenant_id")
            label = "text"
            text = UnicodeAttribute(hash_key=True)


def test_an_event_is_written_with_its_change_and_sent_from_the_stream() -> None:
    (sent,) = run("examples.outbox", prefix="Outbox").splitlines()
    assert re.fullmatch(r"Sent: aaaa \d+ 1200", sent)


def test_the_first_table_is_isolated() -> None:
    acme, globex, refused = run("examples.first_table").splitlines()
    assert (acme, globex) == ("Acme reads ['Only for Acme.']", "Globex reads []")
    assert refused.startswith("Globex is refused: ")


def test_a_loud_tenant_is_held_to_its_rate_and_a_quiet_one_is_not() -> None:
    loud, _, quiet = run("examples.tenant_rate").splitlines()
    assert (loud, quiet) == ("loud: 20 changes taken, 5 refused", "quiet: taken")


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_an_example_has_at_most_50_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 50


def test_the_lists_work_with_the_folders_that_the_readme_names_and_nothing_else(tmp_path: Path) -> None:
    (copied,) = re.findall(r"^KERNEL='(.*?)'$", README.read_text(), re.MULTILINE | re.DOTALL)
    named = re.findall(r"^\| `(portal/[\w/]+(?:\.py)?)`", README.read_text(), re.MULTILINE)
    assert copied.split() == ["portal/__init__.py", *named]
    for name in (*copied.split(), "examples"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    printed = run("examples.todo", "demo", at=tmp_path, prefix="Alone")
    assert "Globex asks for a key of Acme: refused" in printed
    assert printed.endswith("Acme: 1 open, 1 done\nGlobex: 1 open, 0 done\n")


def test_the_readme_names_each_setting_that_the_kernel_takes() -> None:
    named = set(re.findall(r"^\| `([A-Z_]+)`", README.read_text(), re.MULTILINE))
    assert named == set(standalone.DEFAULTS)


@pytest.mark.parametrize("example", ["examples.first_table", "examples.todo"])
def test_an_example_without_a_database_says_how_to_name_one(example: str, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    command = [sys.executable, "-m", example, *(["counts", "acme"] if example.endswith("todo") else [])]
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("No database is named. Set DYNAMODB_ENDPOINT_URL to a local engine")
