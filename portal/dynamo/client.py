"""The one place that makes DynamoDB clients: one per role and process, lazily, shared by all threads and models.

PynamoDB by default makes a client per model (80 ms and 3.6 MB each, without a lock). Here every model of a
role shares one `Connection`; the client behind it is made at first use, forgotten in a forked child, and its
endpoint is read from the settings at that moment, so that an engine may start after Django does.

A request goes to the client of the site where its tenant's content lies; see `placement.py`. There is a connection for
each role: `connection("tenant")` serves the tables whose keys carry the tenant,
`connection("platform")` the few that are read before a tenant is known, `connection("worker")` what follows the stream,
`connection("seed")` the commands that write in bulk, `connection("lifecycle")` those that take up a whole tenant.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

import botocore.config
from django.conf import settings
from pynamodb.attributes import (
    Attribute,
    AttributeContainer,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
)
from pynamodb.connection.base import Connection, MetaTable
from pynamodb.connection.table import TableConnection
from pynamodb.models import Model

from portal import aws_session
from portal.dynamo import item_protocol, meter, placement, retry
from portal.dynamo.compiled_reader import reader_of
from portal.dynamo.library_errors import LIBRARY_ERRORS, may_pass, translate
from portal.errors import Unavailable
from portal.isolation import credentials, guard
from portal.quotas import TenantPlaces
from portal.schema import registry
from portal.schema.registry import ROLES, Role

_T = TypeVar("_T")
_U = TypeVar("_U")

# Threads for fan-out (one per status shard beyond the caller's own). The pool of HTTP connections covers them
# and gunicorn's threads, so that no request waits for a socket while another holds one.
FAN_OUT_THREADS = 16


class SharedConnection(Connection):
    """PynamoDB's connection on a client that is ours, raising errors that are ours; `dispatch` ends in `ask`."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__(region=settings.AWS_REGION)
        self._make = make
        self.forget()

    @property
    def client(self) -> Any:
        """The client at home; see `client_at`."""
        return self.client_at("")

    def client_at(self, site: str) -> Any:
        """Return the client of a site of the settings, "" for home; made at first use."""
        if site not in self._ready:
            with self._lock:
                if site not in self._ready:
                    self._ready[site] = self._make(site)
        return self._ready[site]

    def forget(self) -> None:
        """Drop the clients; the next call makes a new one. For a forked child and for a changed endpoint."""
        self._lock = threading.Lock()
        self._ready: dict[str, Any] = {}

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Send an operation that is about tables, not items: PynamoDB's `dispatch` adds what those do not take."""
        return self._make_api_call(operation, params)

    def dispatch(self, operation_name: str, operation_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Send an operation, and ask for the units of each index as well where it is about items. PynamoDB's own does
        not, and makes an id for signals that nobody hears.
        """
        if operation_name in item_protocol.OPERATIONS:
            operation_kwargs.setdefault("ReturnConsumedCapacity", "INDEXES")
        return self._make_api_call(operation_name, operation_kwargs)

    def _make_api_call(self, operation_name: str, operation_kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            result = self.ask(operation_name, operation_kwargs)
        except LIBRARY_ERRORS as error:
            ours = translate(error, operation_name)
            if ours is None:
                raise
            raise ours from error
        return result

    def ask(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request to where its tables are. Errors are those of the library."""
        sent = placement.addressed(params)
        answer: dict[str, Any] = self.client_at(sent.site)._make_api_call(operation, sent.params)
        return sent.read(answer)


def make_client(role: Role, site: str = "") -> Any:
    """Return a DynamoDB client with the meter and the guard on it; for tenants with credentials of their role."""
    where = placement.site(site)
    session = _session(where.endpoint_url)
    arn = _role_arn(role, where)
    if arn:
        sts = _sts(where)
        if role == "tenant":
            source = credentials.TenantCredentials(credentials.assume_with(sts, arn))
            session._credentials = credentials.ContextCredentials(source, guard.current_tenant)
        else:
            session._credentials = credentials.of_role(sts, arn, role)
    client = _create("dynamodb", session, where.endpoint_url, where.region)
    meter.attach(client)
    if settings.DYNAMODB_GUARD:
        guard.attach(client, role, prefix_of_site=where.prefix if site else "")
    return client


def make_client_for_one(tenant_id: str, site: str = "") -> Any:
    """Return a client without a guard that signs as this one tenant, so that IAM alone stands before the tables.

    It is for attacks in the name of a tenant that does not exist. Raises Unavailable where tenants have no role:
    nothing would stop it.
    """
    where = placement.site(site)
    if not where.tenant_role_arn:
        raise Unavailable("Tenants have no role here that IAM could hold them to.")
    session = _session(where.endpoint_url)
    source = credentials.TenantCredentials(credentials.assume_with(_sts(where), where.tenant_role_arn))
    session._credentials = credentials.ContextCredentials(source, lambda: tenant_id)
    client = _create("dynamodb", session, where.endpoint_url, where.region)
    meter.attach(client)
    return client


def _role_arn(role: Role, where: placement.Site) -> str:
    """Return the role that is assumed for requests of a role at a site, "" where the process signs for itself."""
    if role == "tenant":
        return where.tenant_role_arn
    return where.platform_role_arn if role == "platform" else where.worker_role_arn


def make_streams_client(site: str = "") -> Any:
    """Return a client of DynamoDB Streams, from which the followers of a stream read."""
    where = placement.site(site)
    session = _session(where.endpoint_url)
    if where.worker_role_arn:
        session._credentials = credentials.of_role(_sts(where), where.worker_role_arn, "worker")
    return _create("dynamodbstreams", session, where.endpoint_url, where.region)


def _session(endpoint_url: str) -> Any:
    session = aws_session.new_session(endpoint_url)
    for service in ("dynamodb", "dynamodb-streams"):
        session.register(f"creating-client-class.{service}", item_protocol.straighten)
    return session


def _config() -> dict[str, Any]:
    """Return our timeouts, pool and repetitions."""
    return {
        "parameter_validation": False,  # PynamoDB builds the requests; validating them again costs 0.2 ms each
        "connect_timeout": settings.DYNAMODB_CONNECT_TIMEOUT,
        "read_timeout": settings.DYNAMODB_READ_TIMEOUT,
        "max_pool_connections": settings.WEB_THREADS + FAN_OUT_THREADS,
        "retries": {"mode": "standard", "total_max_attempts": 1},
        "tcp_keepalive": True,
        "user_agent": f"Pooldesk botocore/{botocore.__version__}",  # botocore's own is put together twice a request
    }


def _sts(where: placement.Site) -> Any:
    return aws_session.client("sts", where.region or settings.AWS_REGION, where.sts_endpoint_url, **_config())


followers: set[Callable[[Any], None]] = set()  # of each new client: who traces its calls


def _create(service: str, session: Any, endpoint_url: str, region: str = "") -> Any:
    created = session.create_client(
        service,
        region or settings.AWS_REGION,
        endpoint_url=endpoint_url or None,
        config=botocore.config.Config(**_config()),
    )
    # botocore's own are off: their quota is one for all tenants, and they would multiply those of rules.
    created.meta.events.register(f"needs-retry.{service}", _pause)
    for follow in followers:
        follow(created)
    return created


def _pause(
    attempts: int, response: tuple[Any, dict[str, Any]] | None, caught_exception: Exception | None, **_: Any
) -> float | None:
    """Return the seconds after which botocore sends the same request again, or None where it does not."""
    if response is not None and response[0].status_code == 200:
        return None
    if attempts >= settings.DYNAMODB_MAX_ATTEMPTS or not may_pass(response, caught_exception):
        return None
    return retry.pause_before(attempts - 1)


_connections: dict[Role, SharedConnection] = {}
_streams: SharedConnection | None = None
_connections_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_idle_threads = threading.Semaphore(FAN_OUT_THREADS)
_threads_of = TenantPlaces(lambda: FAN_OUT_THREADS // 2)


def connection(role: Role) -> SharedConnection:
    """Return the process's connection for requests of a role."""
    if role not in _connections:
        with _connections_lock:
            if role not in _connections:
                _connections[role] = SharedConnection(partial(make_client, role))
    return _connections[role]


def each_client(attach: Callable[[Any], object]) -> None:
    """Call `attach` with the client of each role at home, to hold its requests against something else as well."""
    for role in ROLES:
        attach(connection(role).client)


def streams() -> SharedConnection:
    """Return the process's connection to DynamoDB Streams, for `call`."""
    global _streams
    with _connections_lock:
        if _streams is None:
            _streams = SharedConnection(make_streams_client)
    return _streams


def reset() -> None:
    """Forget clients and threads. Called in a forked child, and by tests that change the endpoint."""
    global _connections_lock, _idle_threads, _pool, _streams, _threads_of
    _threads_of = TenantPlaces(lambda: FAN_OUT_THREADS // 2)
    _connections_lock, _idle_threads = threading.Lock(), threading.Semaphore(FAN_OUT_THREADS)
    _pool = _streams = None
    aws_session.reset()
    for shared in _connections.values():
        shared.forget()


os.register_at_fork(after_in_child=reset)


class KeepsUnknown(AttributeContainer):
    """Base of models, and of maps in them, that write back what they do not declare: attributes of a newer version that
    runs beside this one. The compiled reader sets `unknown`."""

    unknown: Mapping[str, Any] = MappingProxyType({})  # typed values by name

    def with_unknown_of(self, stored: KeepsUnknown | None) -> Self:
        """Take over what a stored item has that this version does not declare, and return the item that replaces it."""
        if stored is not None and stored.unknown:
            self.__dict__["unknown"] = stored.unknown  # past PynamoDB, in whose maps every name is an attribute
        return self

    def _container_serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:
        try:
            written = self._typed(null_check)
        except (TypeError, ValueError):  # which PynamoDB's own way raises as well, with the place
            written = super()._container_serialize(null_check=null_check)
        return {**self.unknown, **written} if self.unknown else written

    def _typed(self, null_check: bool) -> dict[str, dict[str, Any]]:
        """Return what PynamoDB does, in a third of the time: most attributes are absent, texts or whole numbers."""
        written: dict[str, dict[str, Any]] = {}
        values = self.attribute_values
        for name, stored, attribute, kind in _attributes(type(self)):
            # An attribute of another kind may say itself what it is where it is missing.
            value = values.get(name) if kind in _PLAIN else getattr(self, name)
            if value is None or kind is UnicodeAttribute:
                typed = value
            elif kind is NumberAttribute and type(value) is int:
                typed = str(value)
            elif isinstance(value, MapAttribute) and not value.validate(null_check=null_check):
                raise ValueError(name)
            elif isinstance(attribute, ListAttribute | MapAttribute):
                typed = attribute.serialize(value, null_check=null_check)
            else:
                typed = attribute.serialize(value)
            if typed is not None:
                written[stored] = {attribute.attr_type: typed}
            elif null_check and not attribute.null:
                raise ValueError(name)
        return written


_PLAIN = (UnicodeAttribute, NumberAttribute)


@cache
def _attributes(model: type[AttributeContainer]) -> list[tuple[str, str, Attribute[Any], type[Attribute[Any]]]]:
    """Return the attributes of a model, or of a map in one, each with its name in the model, its stored name and its
    kind."""
    return [(name, one.attr_name, one, type(one)) for name, one in model.get_attributes().items()]


class Item(KeepsUnknown, Model):
    """Base of all models: bound to the shared connection of its table's scope.

    A subclass names its declared table as `table`, in place of PynamoDB's `Meta`: the name follows when it is needed.
    """

    table: ClassVar[registry.Table]
    gsi: ClassVar[registry.Index | None] = None  # of the rows of an index

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return an instance made of a raw item; by a function compiled for the model."""
        return reader_of(cls)(data)  # type: ignore[no-any-return]

    @classmethod
    def _get_connection(cls) -> TableConnection:
        if cls._connection is None or cls._connection.table_name != cls.table.full_name:
            shared = connection(cls.table.scope)
            if cls.table.full_name not in shared._tables:
                with suppress(ValueError):  # another thread has just done it
                    shared.add_meta_table(MetaTable(cls.table.definition()))
            bound = TableConnection(cls.table.full_name, region=settings.AWS_REGION)
            bound.connection = shared
            cls._connection = bound
        return cls._connection


def fan_out(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run the calls at the same time and return their results in order: one sequential round trip for all.

    The first, and each that finds no thread idle, runs in the caller's thread. So a call never waits for a thread, and
    one that fans out itself cannot wait for itself. Half of the threads at most work for one tenant: where its
    partitions are slow, the rest is free for others. Each keeps the caller's context (tenant, meter). The first error
    is raised, once nothing that was begun is at work any more: what ends a request leaves no read behind.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    started: dict[int, Future[_T]] = {}
    done: dict[int, _T] = {}
    with meter.together():
        try:
            for index, call in enumerate(calls):
                if index in started:
                    continue
                # Threads that have become idle take what comes next: of many calls, most would else run here in turn.
                _start_some(calls, range(max(index, *started, 0) + 1, len(calls)), started)
                done[index] = call()
            return [done[index] if index in done else started[index].result() for index in range(len(calls))]
        except BaseException:
            wait(started.values())
            raise


def _start_some(calls: Sequence[Callable[[], _T]], numbers: range, started: dict[int, Future[_T]]) -> None:
    """Begin these calls in threads that are idle, until there is none."""
    for number in numbers:
        future = _start(calls[number])
        if future is None:
            return
        started[number] = future


def alongside(call: Callable[[], _T], *, aside: Callable[[], _U]) -> tuple[_T, _U]:
    """Run `call`, of one round trip or several in sequence, and beside it `aside`, of no more; return both results.

    Where no thread is idle, `aside` runs afterwards in the caller's thread. Errors are raised as in `fan_out`.
    """
    with meter.meanwhile():
        started = _start(aside)
    try:
        result = call()
    finally:
        if started is not None:
            wait([started])
    return result, aside() if started is None else started.result()


def _start(call: Callable[[], _T]) -> Future[_T] | None:
    """Begin a call in a thread that is idle, or return None where none is."""
    global _pool
    idle, places, tenant = _idle_threads, _threads_of, retry.tenant()
    if tenant and not places.enter(tenant):
        return None
    if not idle.acquire(blocking=False):
        if tenant:
            places.leave(tenant)
        return None
    if _pool is None:
        with _connections_lock:
            if _pool is None:
                _pool = ThreadPoolExecutor(FAN_OUT_THREADS, thread_name_prefix="fan-out")
    future = _pool.submit(copy_context().run, call)

    def free(_: Future[_T]) -> None:
        idle.release()
        if tenant:
            places.leave(tenant)

    future.add_done_callback(free)
    return future
