"""The engines that the data layer is tested on. A module asks for them by `pytest_plugins = ["tests.support.engines"]`.

ministack is the one that all tests run on. The second opinion is that of DynamoDB Local, AWS's own, where Java and
Maven are present, and else of moto, which is slower and knows AWS from outside as ministack does.
"""

from __future__ import annotations

import logging
import shutil
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import override_settings

from portal.dynamo import client, provisioning
from portal.engines.engine_process import dynamodb_local_available, start_engine
from portal.schema import registry
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.context import Role
from tenants.tenancy.stored import TenantItem
from tests.support import embedded
from tests.support.world import World
from tickets.ticket.stored import TICKETS

KINDS = ("ministack", "dynamodb-local" if shutil.which("java") else "moto")


@dataclass
class AnyEngine:
    """One engine. `whole` says whether it has the tables as they are declared, with a stream that tells of much."""

    kind: str
    endpoint_url: str
    whole: bool = False

    def clear(self) -> None:
        self.whole = False
        resets = {"ministack": "/_ministack/reset", "moto": "/moto-api/reset"}
        if self.kind in resets:
            request = urllib.request.Request(self.endpoint_url + resets[self.kind], method="POST")
            urllib.request.urlopen(request, timeout=300).close()
            return
        for table in registry.tables():
            self.drop(table)

    def drop(self, table: registry.Table) -> None:
        self.whole = False
        if provisioning.describe(table):
            client.connection("platform").call("DeleteTable", TableName=table.full_name)

    def make_new(self) -> None:
        """Empty tables, with streams that tell of nothing."""
        if self.kind == "ministack":
            embedded.make_empty()
        else:
            self.clear()
            provisioning.create_all()
        self.whole = True

    def make_empty(self) -> None:
        """Empty tables; their streams may tell of other tests. To make new ones takes some engines a second."""
        if not self.whole or self.kind == "ministack":
            self.make_new()
            return
        if self.kind == "moto":
            self.forget()
            return
        for table in registry.tables():
            embedded.delete_everything(table)

    def forget(self, *names: str) -> None:
        """Empty these tables of moto, or all, with what their streams tell of: each of its queries reads the whole
        table, and each transaction copies both. It runs in this process, where that takes no request."""
        from moto.dynamodb.models import dynamodb_backends

        for backend in [backend for account in dynamodb_backends.values() for backend in account.values()]:
            for name, table in backend.tables.items():
                if not names or name in names:
                    table.items.clear()
                    if shard := table.stream_shard:
                        shard.starting_sequence_number += len(shard.items)
                        shard.items = []


@pytest.fixture(scope="session")
def start() -> Iterator[Callable[[str], str]]:
    """Starts an engine at its first use and says where it answers; all of them end with the session."""
    running = {"ministack": settings.DYNAMODB_ENDPOINT_URL}
    with ExitStack() as stack:

        def address(kind: str) -> str:
            if kind == "dynamodb-local" and (reason := dynamodb_local_available()):
                pytest.skip(reason)
            if kind not in running:
                running[kind] = _start(kind, stack)
            return running[kind]

        yield address


class OneAtATime:
    """moto behind a lock: it copies its tables for a transaction while other threads write into them."""

    def __init__(self, create_app: Callable[..., Any]) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication

        self._app, self._lock = DomainDispatcherApplication(create_app), threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with self._lock:
            return list(self._app(environ, start_response))


def _start(kind: str, stack: ExitStack) -> str:
    if kind == "moto":
        from moto.moto_server import threaded_moto_server
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else one line for each request
        threaded_moto_server.DomainDispatcherApplication = OneAtATime  # type: ignore[attr-defined]  # its name there
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        stack.callback(server.stop)
        host, port = server.get_host_and_port()
        return f"http://{host}:{port}"
    return stack.enter_context(start_engine(kind)).endpoint_url


@pytest.fixture(scope="module", params=KINDS)
def chosen(request: pytest.FixtureRequest, start: Callable[[str], str]) -> Iterator[AnyEngine]:
    """Points the portal at an engine for as long as a module's tests are on it."""
    kind = request.param
    engine = AnyEngine(kind, start(kind))
    with override_settings(DYNAMODB_ENDPOINT_URL=engine.endpoint_url):
        client.reset()
        yield engine
    client.reset()


@pytest.fixture
def any_engine(chosen: AnyEngine) -> AnyEngine:
    """Each engine in turn, with new tables."""
    chosen.make_new()
    cache.clear()
    return chosen


@pytest.fixture
def any_tables(chosen: AnyEngine) -> AnyEngine:
    """Each engine in turn, for a test to which it is all the same what the streams tell of."""
    chosen.make_empty()
    cache.clear()
    return chosen


@pytest.fixture(scope="module")
def people(chosen: AnyEngine) -> dict[str, User]:
    chosen.make_new()
    world = World()
    for name in ("Alice", "Bob", "Charlie", "Vera"):
        world.add_user(name)
    return world.users


@pytest.fixture
def any_world(chosen: AnyEngine, people: dict[str, User]) -> World:
    """The usual people on each engine in turn, in tenants of the test's own."""
    if chosen.kind == "moto":
        chosen.forget(TICKETS.full_name)
    world = World(users=people)
    for name, owner in (("acme", "alice"), ("globex", "charlie")):
        world.tenants[name] = new_tenant(world, name.capitalize(), owner)
    world.join("bob", "acme", Role.AGENT)
    world.join("vera", "acme", Role.VIEWER)
    world.join("alice", "globex", Role.AGENT)
    return world


def new_tenant(world: World, name: str, owner: str, *, shards: int = 1) -> TenantItem:
    """A tenant whose slug nobody has."""
    tenant_id = accounts.new_id()
    return tenant_lifecycle.create(
        name=name, slug=f"x{tenant_id}", owner=world.users[owner], shards=shards, tenant_id=tenant_id, by=SYSTEM
    )
