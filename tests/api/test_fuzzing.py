"""What schemathesis makes of the API's document: valid requests, invalid ones, and ways through several routes.

It asks the portal's WSGI application in this process, with all of its checks and one seed. `make fuzz` asks for more.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from api.documents import openapi
from portal.wsgi import application
from tests.support import embedded
from tests.support.api_client import api_client
from tests.support.world import World
from tickets.desk import commenting

if TYPE_CHECKING:
    from schemathesis.engine import events

SEED: Final = int(os.environ.get("FUZZ_SEED", "20261122"))
EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "1"))  # of each route in each phase
TAKEN: Final = ["2xx", "3xx", "404", "409", "412"]
# What a rule may refuse though it fits: no schema knows the calendar, cursors, hosts, and what became of a ticket. The
# If-Match that schemathesis makes is "0" at times, which its own pattern refuses; test_documents.py compares the two.
OF_RULES: Final = re.compile(
    r"GET \S+ invalid (after|q|tag|actor|entity|first|last|created|resolved|reopened|commented|custom)|"
    r"(POST|PATCH) \S+ invalid (title|body|tags|url|resolver_id|description|status|kind|custom(\..*)?|If-Match)|"
    r"(POST|PATCH) \S+ (invalid|address_taken) (requester|name|addresses|organisation|language|notes)|"
    r"POST \S+ invalid (cc|files)|PUT \S+/snooze invalid until|"
    r"(PUT|DELETE) \S+/links/\S+ .+|POST \S+/(ready-answers|bulk-changes) .+|(POST|PATCH) \S+/rules\S* .+|"
    r"POST \S+ idempotency_key_reused .+"
)
# Beside those that a route has: each of the others is refused by the same door, which `test_door.py` asks.
OTHER_METHODS: Final = ["put", "query"]
REFUSED: Final = ["400", "401", "404", "405", "409", "413", "415", "422"]
OF_SOCKETS: Final = {"max_redirects", "verify", "cert", "proxies"}


@dataclass
class Fuzzed:
    """What came of a run: the failures by check and route, what was sent where, and the answers' statuses."""

    failures: dict[str, str] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)
    phases: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)

    def take(self, event: events.EngineEvent) -> None:
        from schemathesis.engine import events

        if isinstance(event, events.NonFatalError | events.FatalError):
            self.failures[type(event).__name__] = str(getattr(event, "value", getattr(event, "exception", event)))
        if not isinstance(event, events.ScenarioFinished):
            return
        recorder = event.recorder
        self.phases.add(event.phase.value)
        self.routes |= {node.value.operation.label for node in recorder.cases.values()}
        answered = [i.response.status_code for i in recorder.interactions.values() if i.response is not None]
        self.statuses.update(answered)
        for case_id, checks in recorder.checks.items():
            for check in checks:
                refused = recorder.interactions[case_id].response if check.name == "positive_data_acceptance" else None
                if check.failure_info is not None and not _is_refused_by_a_rule(recorder.cases[case_id].value, refused):
                    label = recorder.cases[case_id].value.operation.label
                    said = f"{check.failure_info.failure.message}\n{check.failure_info.code_sample[:1000]}"
                    self.failures.setdefault(f"{check.name} {label}", said)


def _is_refused_by_a_rule(case: Any, response: Any) -> bool:
    if response is None or response.status_code != 422:
        return False
    problem = json.loads(response.content)
    return OF_RULES.fullmatch(f"{case.operation.label} {problem['code']} {problem.get('field')}") is not None


@pytest.fixture
def desk(engine: None) -> Iterator[World]:
    world = embedded.world(shards=1)
    world.tickets("acme", 3)
    commenting.comment(world.context("bob", "acme"), 1, body="An answer.")
    logging.disable(logging.INFO)
    yield world
    logging.disable(logging.NOTSET)


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that asks again without a key hands on what only sockets need, also where there is none."""
    from schemathesis.transport.wsgi import WSGITransport

    real = WSGITransport.send

    def send(self: WSGITransport, case: Any, **how: Any) -> Any:
        return real(self, case, **{name: what for name, what in how.items() if name not in OF_SOCKETS})

    monkeypatch.setattr(WSGITransport, "send", send)


def fuzzed(key: str) -> Fuzzed:
    # Here, because each worker collects all tests, and to import it takes a second.
    import schemathesis
    from schemathesis.config import SchemathesisConfig
    from schemathesis.engine import from_schema

    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            # Nobody on the way from the application would unpack an answer.
            "headers": {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"},
            "generation": {"max-examples": EXAMPLES, "deterministic": True, "no-shrink": True, "database": "none"},
            "phases": {"coverage": {"unexpected-methods": OTHER_METHODS}},
            "checks": {
                "positive_data_acceptance": {"expected-statuses": TAKEN},
                "negative_data_rejection": {"expected-statuses": REFUSED},
            },
        }
    )
    run = Fuzzed()
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application, config=config)
    for event in from_schema(schema).execute():
        run.take(event)
    return run


@pytest.mark.usefixtures("no_sockets")
def test_nothing_that_is_sent_breaks_the_api_or_its_document(desk: World) -> None:
    run = fuzzed(api_client(desk).key)

    assert not run.failures, "\n\n".join(f"{name}\n{said}" for name, said in run.failures.items())
    assert run.routes == {f"{m.upper()} {path}" for path, ms in openapi.document()["paths"].items() for m in ms}
    assert {"examples", "coverage", "fuzzing", "stateful"} <= run.phases
    assert {200, 401, 404, 422} <= set(run.statuses)
    assert not any(status >= 500 for status in run.statuses)
