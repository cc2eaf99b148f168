"""Fixtures: a clean engine for each test that wants one, and the world of Alice, Bob, Vera and Charlie."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis
import jinja2
import pytest
from _pytest.assertion import rewrite
from django.core.cache import cache
from django.test.signals import template_rendered
from hypothesis.internal.conjecture import providers

from portal.dynamo import item_protocol, meter, retry
from portal.load import reporting, tenant_limiter
from portal.load import stored as load_rows
from portal.streams import watermark
from tenants.membership import mails
from tenants.tenancy import placements
from tenants.tenancy.context import TenantContext
from tests.support import embedded, engine_memory, folding, held_costs, one_chain
from tests.support.operators import Operator, make_operator
from tests.support.scheduling import SharedScheduling
from tests.support.world import World
from tickets.search import index_rebuild
from tickets.search.index import merging
from tickets.search.index.index_store import WritePace

HERE = Path(__file__).parent
# DynamoDB Local lives for a few hundred requests here: what its virtual machine saves by compiling twice, and by
# several collectors of garbage, it does not earn back. Tests that start it, and the processes of tests, hand this on.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Who asks for one of these may have changed how the portal's code works, or has a browser at work beside: what it makes
# then is no other test's.
CHANGES = {"bill", "caplog", "monkeypatch", "portal", "settings"}
# Rooms and modules that `make test-fast` leaves out: they start processes,
# write hundreds of items for a test, or wait for timeouts.
SLOW = {
    "browser",
    "consuming",
    "deployment",
    "dispatching",
    "engines",
    "exporting",
    "importing",
    "moving",
    "operators",
    "proofs",
    "restoring",
    "seeding",
    "sharding",
    "streams",
    "verification",
    "api/test_fuzzing.py",
    "api_keys/test_key_pages.py",
    "audit_trail/test_audit.py",
    "audit_trail/test_audit_page.py",
    "counting/test_every_engine.py",
    "counting/test_exactly_once.py",
    "counting/test_exactly_once_model.py",
    "dashboards/test_dashboard.py",
    "desk/test_cost.py",
    "desk/test_desk_cost.py",
    "desk/test_filtered_lists.py",
    "desk/test_outage.py",
    "desk/test_queue_filters.py",
    "desk/test_rules_on_engines.py",
    "desk/test_ticket_rules.py",
    "dynamo/test_client.py",
    "dynamo/test_keys.py",
    "dynamo/test_repository.py",
    "dynamo/test_schema.py",
    "following/test_placed_tenants.py",
    "holdings/test_inventory.py",
    "letters/test_bounds.py",
    "sign_in/test_throttle.py",
    "isolation/test_guard_conditions.py",
    "isolation/test_iam.py",
    "isolation/test_outsider.py",
    "isolation/test_platform_exception.py",
    "isolation/test_platform_policy.py",
    "isolation/test_tenant_role.py",
    "membership/test_seats.py",
    "nosql/test_admin_adapter.py",
    "nosql/test_nosql.py",
    "outbox/test_telling.py",
    "placement/test_other_engine.py",
    "purging/test_tenant_purge.py",
    "queues/test_queue_transport.py",
    "search/test_index_weight.py",
    "search/test_prove_search.py",
    "search/test_rebuild_search.py",
    "search/test_write_costs.py",
    "tenancy/test_limits_at_the_door.py",
    "lifecycle/test_damaged_rows.py",
    "privacy",
    "webhooks/test_pages.py",
}

# A red test says something of the code, and nothing of the dice or of how busy the machine was.
# What nobody thought of is looked for with `--hypothesis-profile=dice`.
hypothesis.settings.register_profile("dice", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
# Examples that are the same each time find the same again: a few of them show that nothing broke.
hypothesis.settings.register_profile(
    "same", hypothesis.settings.get_profile("dice"), derandomize=True, max_examples=20, stateful_step_count=30
)
hypothesis.settings.load_profile("same")

# What pytest-django does around each test for marks that no test has, and for a table of sites that is not there.
UNUSED = {
    "_django_clear_site_cache",
    "_django_db_marker",
    "_django_isolate_apps",
    "_django_set_urlconf",
    "_django_setup_unittest",
    "_live_server_helper",
    "_template_string_if_invalid_marker",
}

# What the portal does again after some seconds, it does not do in the midst of a test that a busy machine holds up.
WAITS = (
    (placements, "CONTEXT_SECONDS"),
    (watermark, "CACHED_SECONDS"),
    (index_rebuild, "SHARE_SECONDS"),
    (merging, "PAUSE_SECONDS"),
)
for module, name in WAITS:
    setattr(module, name, 3600)
# What a desk has is looked for in each minute of seven hours, by a Query each. Tests note noise in the last few.
load_rows.KEPT_MINUTES = 20  # type: ignore[misc]
# The index of a small desk is written at once: its even pace is for large ones, and is tried by a clock of its own.
WritePace.__init__.__kwdefaults__["sleep"] = lambda seconds: None


def pytest_configure() -> None:
    one_chain.use()
    held_costs.install()
    # The background job of a shell ignores Ctrl-C, and so would the processes that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    if share := getattr(session.config, "workerinput", None):
        _compile(session.config, int(share["workerid"][2:]), share["workercount"])
    for names in session._fixturemanager._node_autousenames.values():
        names[:] = [name for name in names if name not in UNUSED]
    if hypothesis.settings.default.derandomize:
        # The constants of all modules, which each process would parse for them, are worth their time for dice alone.
        providers._get_local_constants = lambda: providers._local_constants


def _compile(config: pytest.Config, number: int, count: int) -> None:
    """Compile one of `count` parts of what no run has compiled yet, which each process would else do for all of it."""
    for path in sorted(HERE.rglob("test_*.py"))[number::count]:
        compiled = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite.try_makedirs(compiled.parent) and rewrite._read_pyc(path, compiled) is None:
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, compiled)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test that passes has logged, nobody reads: it is not sent to the process that reports."""
    report = yield
    if report.passed and hasattr(item.config, "workerinput") and "P" not in item.config.option.reportchars:
        report.sections.clear()
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedScheduling | None:
    return SharedScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """What a test shortens for good, such as a torture that runs in this process, would be read in the tests behind."""
    yield  # a fixture would look before what the test has patched is put back
    changed = [(module, name) for module, name in WAITS if getattr(module, name) != 3600]
    for module, name in changed:
        setattr(module, name, 3600)
    assert not changed, f"this test leaves {changed} changed"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    gone = [place for place in SLOW if not (HERE / place).exists()]
    if gone:
        raise pytest.UsageError(f"tests/conftest.py names as slow what is not there: {gone}")
    for item in items:
        place = item.path.relative_to(HERE)
        if place.parts[0] in SLOW or place.as_posix() in SLOW:
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def contexts_are_told() -> Iterator[None]:
    """Send Django's test client the contexts of pages, as it does itself for its own templates."""
    render = jinja2.Template.render

    def telling(self: jinja2.Template, context: dict[str, Any]) -> str:
        template_rendered.send(sender=self, template=self, context=context)
        return render(self, context)

    with patch.object(jinja2.Template, "render", telling):
        yield


@pytest.fixture(autouse=True)
def costs_are_as_declared(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test whose requests ask for what their routes do not declare fails; see tests/support/held_costs.py.

    Requests of a browser are neither seen nor held: which of them meet a cold cache, and what pages ask for by
    themselves, depends on the clock; and some machines have none.
    """
    held_costs.taken_faults()
    held_costs.is_counted = not any(request.node.get_closest_marker(name) for name in ("dearer", "browser"))
    yield
    found = held_costs.taken_faults()
    if found and held_costs.is_counted:
        pytest.fail("\n".join(found), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "fail where routes that these tests request declare more than that: see docs/access-patterns.md"
    parser.addoption("--costs", action="store_true", help=told)


def pytest_testnodedown(node: Any) -> None:
    for name, one in getattr(node, "workeroutput", {}).get("costs", {}).items():
        held_costs.seen.setdefault(name, held_costs.Seen()).add(held_costs.Seen(*one))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Say at the end of a run of all tests which declarations of costs are not true. With `--costs` any run fails for
    those of its routes."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["costs"] = {
            name: ([*map(list, one.patterns)], one.most, one.is_near) for name, one in held_costs.seen.items()
        }
        return
    chosen = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "collectonly")
    of_all = config.args_source is config.ArgsSource.TESTPATHS and not any(config.getvalue(one) for one in chosen)
    if exitstatus in (0, 1) and (of_all or (config.option.costs and not config.option.collectonly)):
        found = held_costs.untrue(held_costs.seen, of_all=of_all)
        if found:
            # The end of a run has no other way to say it.
            print(f"\n{len(found)} declarations are not true in these tests.", *found, sep="\n")  # noqa: T201
            # What processes remember differs from one run of all tests to the next, by which process has which test.
            if config.option.costs:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def mails_leave_with_their_test() -> Iterator[None]:
    """One that leaves beside its request would else leave in the midst of the next test, by its settings."""
    yield
    if mails._sender._threads:
        mails.wait_until_sent()


@pytest.fixture
def clean_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process that remembers nothing of the tests before."""
    cache.clear()
    folding.remember_nothing()
    retry._buckets._kept.clear()  # tenants that are brought back have the ids of those before
    item_protocol._silences.clear()  # an engine may have the port of one that was silent
    # What a test before noted of its tenants, in a proof that takes notes for instance, is told by nobody in this one.
    reporting._forget()
    # A server that ended with its test may have left a download in the midst; what it held is not the next test's.
    for places in (tenant_limiter.requests, tenant_limiter.heavy, tenant_limiter.searches):
        places._taken.clear()
    assert tenant_limiter._threads is None, "a test before this one has made this process a web worker"
    engine_memory.may_go_on = not CHANGES & {*request.fixturenames}
    yield
    engine_memory.may_go_on = False


@pytest.fixture
def engine(clean_process: None) -> None:
    """Empty tables on the embedded engine."""
    embedded.make_empty()
    cache.clear()


@pytest.fixture
def world(request: pytest.FixtureRequest, clean_process: None) -> World:
    return _world(request, shards=1)


@pytest.fixture
def sharded_world(request: pytest.FixtureRequest, clean_process: None) -> World:
    return _world(request, shards=4)


def _world(request: pytest.FixtureRequest, *, shards: int) -> World:
    if "engine" in request.fixturenames:
        request.getfixturevalue("engine")  # before the world, which would else be gone
    return embedded.world(shards=shards)


@pytest.fixture
def alice(world: World) -> TenantContext:
    """Alice at work in Acme; Bob is beside her."""
    return world.context("alice", "acme")


@pytest.fixture
def bob(world: World) -> TenantContext:
    return world.context("bob", "acme")


@pytest.fixture
def root(world: World) -> Operator:
    """Root's browser, signed in to the admin."""
    make_operator()
    return Operator.signed_in()


@pytest.fixture
def bill() -> Iterator[meter.Meter]:
    """Counts what the test's own calls cost, outside of requests."""
    with meter.measure() as counted:
        yield counted
