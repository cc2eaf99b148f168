"""The page docs/api.md: each of its examples is run, and answers what the page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from api.edge import problem_responses
from portal.load import tenant_limiter
from tenants.api_keys import key_authentication
from tests.support.commands import run
from tests.support.served import served
from tests.support.world import World
from tickets.desk import timelines

PAGE = (Path(settings.BASE_DIR) / "docs" / "api.md").read_text()
BLOCKS = re.findall(r"^```(bash|json|python)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
KEY, *EXAMPLES = BLOCKS


@pytest.fixture
def environ(world: World) -> Iterator[dict[str, str]]:
    """A running portal, and a key that was made as the page says."""
    command = re.search(r"manage\.py (create_api_key .*?)\)", KEY[1], re.DOTALL)
    assert command is not None
    made = run(*shlex.split(command[1].replace("\\\n", " ")))
    assert made.status == 0, made.err
    with served() as address:
        yield {"POOLDESK": f"{address}/api/v1", "POOLDESK_KEY": made.out.strip()}


def shape(value: Any) -> Any:
    """The names and types of a value, without what differs from one answer to the next."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{12}\b|\b[0-9a-f]{32}\b", "…", str(value))


def test_the_page_begins_with_a_key_and_has_examples_of_both_kinds() -> None:
    assert KEY[0] == "bash"
    assert [kind for kind, _ in EXAMPLES].count("json") == 3
    assert {"bash", "python"} <= {kind for kind, _ in EXAMPLES}


def test_the_examples_with_curl_do_what_the_page_says(environ: dict[str, str], world: World) -> None:
    shell = [text for kind, text in EXAMPLES if kind == "bash"]
    said = [json.loads(text) for kind, text in EXAMPLES if kind == "json"]
    assert len(shell) == len(said)

    script = "\n".join(f"{text}\necho -e '\\x1e'" for text in shell)
    ended = subprocess.run(
        ["bash", "-eu", "-c", script],  # noqa: S607  # the bash of whoever runs the tests
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    answers = [json.loads(text) for text in ended.stdout.split("\x1e") if text.strip()]

    assert [shape(answer) for answer in answers] == [shape(value) for value in said]
    found = timelines.ticket(world.context("alice", "acme"), 1)
    assert (found.summary.status, found.summary.requester_name) == ("resolved", "First steps (API key)")


def test_the_examples_in_python_do_what_the_page_says(
    environ: dict[str, str], world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    world.tickets("acme", 2)  # other people's, which the examples leave as they are
    names: dict[str, Any] = {}
    for kind, text in EXAMPLES:
        if kind == "python":
            exec(compile(text, "docs/api.md", "exec"), names)  # noqa: S102  # our own page

    assert capsys.readouterr().out == "3 open\n3 The invoice is wrong\n2 Ticket 2\n1 Ticket 1\n"
    alice = world.context("alice", "acme")
    assert [timelines.head(alice, number)[0].title for number in (1, 2, 3)] == ["Ticket 1", "Ticket 2", "Read"]
    assert names["changed"]["title"] == "Read"
    # The tag of what was read before the change is another's now.
    with pytest.raises(names["urllib"].error.HTTPError) as refused:
        names["call"]("PATCH", "/tickets/3", {"title": "Again"}, If_Match=names["headers"]["ETag"])
    assert json.load(refused.value)["code"] == "precondition_failed"


def test_the_page_tells_the_units_and_how_many_requests_are_safe_at_once() -> None:
    said = " ".join(PAGE.split())
    reads, changes = tenant_limiter.READ_UNITS, tenant_limiter.CHANGE_UNITS
    assert f"reads takes {reads} unit of the desk's, one that changes something {changes}" in said
    assert f"Up to {tenant_limiter.requests.most} requests of a desk at the same time" in said
    assert f"up to {tenant_limiter.heavy.most} that change many tickets" in said


def test_the_codes_of_the_page_are_those_of_the_document() -> None:
    table = PAGE[PAGE.index("| status | codes |") : PAGE.index("Unknown members and")]
    told = defaultdict[int, set[str]](set)
    for row in table.splitlines()[2:]:
        if row:
            _, statuses, codes, *_ = row.split("|")
            for status in map(int, statuses.split(",")):
                told[status] |= set(re.findall(r"`([a-z_]+)`", codes))
    of_all = {code for codes in problem_responses.CODES.values() for code in codes}
    assert set(told) == set(problem_responses.CODES)
    assert set().union(*told.values()) == of_all
    assert all(set(codes) <= told[status] for status, codes in problem_responses.CODES.items())


def test_each_code_that_a_refusal_has_is_in_the_document() -> None:
    doors = [path.read_text() for path in (Path(settings.BASE_DIR) / "api").rglob("*.py")]
    raised = {pair for text in doors for pair in re.findall(r'RequestProblem\(\s*(\d+),\s*"([a-z_]+)"', text)}
    raised |= {(str(status), code) for code, (status, _) in key_authentication._REFUSALS.items()}
    raised |= {(str(status), code) for _, status, code in problem_responses._KINDS}
    assert len(raised) > 20
    assert all(code in problem_responses.CODES[int(status)] for status, code in raised)
    assert problem_responses.CONTENT_TYPE in PAGE
