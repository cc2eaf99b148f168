"""One client for all threads, a new one in a forked process, and one family of errors for whatever goes wrong."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from django.conf import LazySettings

from portal.dynamo import client, library_errors, provisioning, retry
from portal.dynamo.store import RawItems, Store, Transaction
from portal.errors import ConditionFailed, Conflict, PortalError, Throttled, TransactionRefused, Unavailable
from portal.nosql.stored import SessionItem
from portal.quotas import RecentTenants, TokenBucket
from portal.schema import registry
from tenants.membership.stored import MemberItem
from tenants.sign_in.stored import AccountItem
from tenants.tenancy.stored import MembershipItem
from tests.support.fakes import answering, refusal
from tests.support.waiting import wait_until
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, CounterItem, DetailItem

ACME = "ac" * 16
BOB = "b0" * 16


def read() -> str:
    found = Store("tenant", ACME).get(DetailItem, stored.ticket, 1, sort=stored.DETAIL)
    return found.description if found else "nothing"


def detail(text: str = "text") -> DetailItem:
    return DetailItem(stored.ticket(ACME, 1), stored.DETAIL, description=text)


def transact(*items: DetailItem) -> None:
    transaction = Transaction()
    for item in items:
        transaction.put(item)
    Store("tenant", ACME).transact(transaction)


# --- errors that the engine answers with ---


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, Throttled),
        ("ProvisionedThroughputExceededException", 400, Throttled),
        ("RequestLimitExceeded", 400, Throttled),
        ("LimitExceededException", 400, Throttled),
        # A single write met somebody's transaction; a repeated transaction met its own first sending.
        ("TransactionConflictException", 400, Throttled),
        ("TransactionInProgressException", 400, Throttled),
        ("InternalServerError", 500, Unavailable),
        ("InternalFailure", 500, Unavailable),
        ("ServiceUnavailable", 503, Unavailable),
        ("503", 503, Unavailable),
        ("SomethingNew", 502, Unavailable),
        ("ResourceNotFoundException", 400, Unavailable),
        # A bug stays what it is.
        ("ValidationException", 400, ClientError),
        ("AccessDeniedException", 400, ClientError),
        ("UnrecognizedClientException", 400, ClientError),
        ("New", 400, ClientError),
    ],
)
def test_an_answer_with_an_error_becomes_one_of_ours(code: str, status: int, error: type[Exception]) -> None:
    with answering("tenant", "GetItem", refusal(code, status=status)), pytest.raises(error) as caught:
        read()
    assert type(caught.value) is error
    if isinstance(caught.value, Throttled):
        assert isinstance(caught.value.__cause__, ClientError)
        assert (caught.value.status, caught.value.retry_after > 0) == (503, True)


def test_a_failed_condition_carries_the_stored_item() -> None:
    stored = {"session_key": {"S": "k"}}
    answer = refusal("ConditionalCheckFailedException", Item=stored)
    with answering("platform", "PutItem", answer), pytest.raises(ConditionFailed) as caught:
        SessionItem("k", data="", expires_at=1).save()
    assert caught.value.item == stored


def reasons(*codes: str) -> Any:
    return refusal("TransactionCanceledException", CancellationReasons=[{"Code": c, "Message": "m"} for c in codes])


@pytest.mark.parametrize(
    ("error", "codes"),
    [
        (Throttled, ("ThrottlingError",)),
        (Throttled, ("None", "ProvisionedThroughputExceeded")),
        (Throttled, ("ThrottlingError", "ThrottlingError")),
        (TransactionRefused, ("None", "TransactionConflict")),
        (TransactionRefused, ("ConditionalCheckFailed", "None")),
        (TransactionRefused, ("ThrottlingError", "ConditionalCheckFailed")),
        (TransactionRefused, ("None", "ValidationError", "ItemCollectionSizeLimitExceeded")),
    ],
)
def test_a_transaction_that_was_not_only_throttled_names_its_reasons_in_order(
    error: type[PortalError], codes: tuple[str, ...]
) -> None:
    with answering("tenant", "TransactWriteItems", reasons(*codes)), pytest.raises(error) as caught:
        transact(detail())
    if isinstance(caught.value, TransactionRefused):
        assert [r.code if r else "None" for r in caught.value.reasons] == list(codes)


def test_a_reason_carries_the_item_that_stood_in_the_way() -> None:
    stored = detail("stored").serialize()
    answer = refusal(
        "TransactionCanceledException",
        CancellationReasons=[{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "m", "Item": stored}],
    )
    with answering("tenant", "TransactWriteItems", answer), pytest.raises(TransactionRefused) as caught:
        transact(detail())
    nothing, reason = caught.value.reasons
    assert nothing is None
    assert reason is not None
    assert reason.item == stored


def test_no_error_of_ours_shows_a_key_to_anybody() -> None:
    for answer in (refusal("ThrottlingException"), refusal("InternalServerError", status=500), reasons("Other")):
        with answering("tenant", "TransactWriteItems", answer), pytest.raises(PortalError) as caught:
            transact(detail())
        for secret in (ACME, BOB, "TENANT", "Pooldesk", "made up"):
            assert secret not in caught.value.message


# --- errors on the way there ---


@pytest.fixture
def endpoint(settings: LazySettings) -> Iterator[Callable[[str], None]]:
    """Points the clients somewhere else; one attempt."""

    def point(url: str) -> None:
        settings.DYNAMODB_ENDPOINT_URL = url
        client.reset()

    original = settings.DYNAMODB_ENDPOINT_URL
    settings.DYNAMODB_MAX_ATTEMPTS = 1
    yield point
    settings.DYNAMODB_ENDPOINT_URL = original
    client.reset()


def every_kind_of_call() -> list[Callable[[], object]]:
    return [
        read,
        lambda: Store("tenant", ACME).query(RawItems(TICKETS), stored.ticket, 1),
        lambda: Store("tenant", ACME).put_all([detail()]),
        lambda: transact(detail()),
        lambda: Store("tenant", ACME).increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET),
        # Through PynamoDB's own methods.
        lambda: SessionItem.get("k", consistent_read=True),
        lambda: SessionItem("k", data="", expires_at=1).save(),
        lambda: SessionItem("k").delete(),
        lambda: list(MembershipItem.query(BOB)),
        provisioning.create_all,
    ]


def assert_unavailable(calls: list[Callable[[], object]]) -> None:
    for call in calls:
        with pytest.raises(Unavailable) as caught:
            call()
        assert not isinstance(caught.value, Throttled)


def test_nobody_listening_is_unavailable(endpoint: Callable[[str], None]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint(f"http://127.0.0.1:{free.getsockname()[1]}")
        assert_unavailable(every_kind_of_call())


def test_a_name_that_does_not_resolve_is_unavailable(endpoint: Callable[[str], None]) -> None:
    endpoint("http://no-such-engine.invalid:8000")
    assert_unavailable([read])


@pytest.fixture
def server(endpoint: Callable[[str], None], settings: LazySettings) -> Iterator[Callable[[bytes | None], None]]:
    """A server that reads a request and answers with these bytes, or with silence."""
    listening = socket.create_server(("127.0.0.1", 0))
    answer: list[bytes | None] = [None]
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            held.append(connection)
            connection.recv(65536)
            if answer[0] is not None:
                connection.sendall(answer[0])
                connection.shutdown(socket.SHUT_RDWR)

    def behave(with_bytes: bytes | None) -> None:
        answer[0] = with_bytes
        settings.DYNAMODB_READ_TIMEOUT = 0.3 if with_bytes is None else 120
        endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield behave
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for connection in held:
        connection.close()
    thread.join(120)


PAGE = b"<html>Bad gateway</html>"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="silence"),
        pytest.param(b"", id="end without an answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", id="answer that breaks off"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="not HTTP"),
        pytest.param(
            b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAGE), PAGE),
            id="error page of a proxy",
        ),
    ],
)
def test_whatever_is_no_answer_is_unavailable(server: Callable[[bytes | None], None], answer: bytes | None) -> None:
    server(answer)
    assert_unavailable(every_kind_of_call() if answer == b"" else [read])


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The bounds that pauses were drawn below; nobody pauses."""
    drawn: list[float] = []
    monkeypatch.setattr(retry, "uniform", lambda low, high: (drawn.append(high), 0.0)[1])
    return drawn


BUSY = b'{"__type": "com.amazonaws#ProvisionedThroughputExceededException"}'
# It says that the connection ends: a client that keeps it would send into it until the end has arrived.
THROTTLED = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(BUSY), BUSY)


def test_what_passes_is_sent_again_after_pauses_drawn_below_bounds_that_double(
    server: Callable[[bytes | None], None], settings: LazySettings, pauses: list[float]
) -> None:
    settings.DYNAMODB_MAX_ATTEMPTS = 4
    for answer, error in ((THROTTLED, Throttled), (b"", Unavailable)):
        server(answer)
        with pytest.raises(error):
            read()
    assert pauses == [0.05, 0.1, 0.2] * 2


def test_inside_of_a_repetition_a_request_is_sent_as_often_as_that_allows_and_no_more(
    server: Callable[[bytes | None], None], settings: LazySettings, pauses: list[float]
) -> None:
    settings.DYNAMODB_MAX_ATTEMPTS = 4
    server(THROTTLED)
    with pytest.raises(Throttled):
        retry.retrying(read, again=lambda error: isinstance(error, Throttled), attempts=3)
    assert pauses == [0.05, 0.1], "not four times for each of three"


def test_a_throttled_tenant_uses_up_its_own_repetitions_and_nobody_elses(
    server: Callable[[bytes | None], None],
    settings: LazySettings,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.DYNAMODB_MAX_ATTEMPTS = 2
    made = RecentTenants(lambda _: TokenBucket(per_second=1, burst=3, clock=lambda: 0.0))
    monkeypatch.setattr(retry, "_buckets", made)
    server(THROTTLED)

    def repeated(tenant_id: str) -> int:
        pauses.clear()
        for _ in range(5):
            with pytest.raises(Throttled), retry.on_behalf_of(tenant_id):
                read()
        return len(pauses)

    assert [repeated(ACME), repeated(ACME), repeated("d0" * 16)] == [3, 0, 3], "it fails at once, and holds no thread"


def test_missing_credentials_are_a_mistake_in_the_deployment_not_an_outage() -> None:
    assert library_errors.translate(NoCredentialsError(), "GetItem") is None


# --- tables, when two processes create them ---


def test_ttl_that_another_process_enables_meanwhile_is_fine_and_that_nobody_can_is_told(engine: None) -> None:
    disabled = (200, {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}})
    for still, ends in (([], nullcontext()), ([disabled], pytest.raises(Conflict, match="Run it again"))):
        with (
            answering("platform", "DescribeTimeToLive", disabled, *still),
            answering("platform", "UpdateTimeToLive", refusal("ValidationException")) as seen,
            ends,
        ):
            provisioning.create_all()
        assert len(seen) == 1


# --- clients ---


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The clients made from now on, slowly, in a process that has none yet."""
    clients: list[object] = []
    make = client.make_client

    def slowly(*args: Any) -> object:
        threading.Event().wait(0.02)
        clients.append(make(*args))
        return clients[-1]

    monkeypatch.setattr(client, "make_client", slowly)
    monkeypatch.setattr(client, "_connections", {})
    return clients


@pytest.mark.parametrize("scope", ["tenant", "platform"])
def test_sixteen_threads_at_first_use_share_one_client(made: list[object], scope: registry.Scope) -> None:
    together = threading.Barrier(16, timeout=120)

    def first_use(_: int) -> tuple[int, int]:
        together.wait()
        connection = client.connection(scope)
        return id(connection), id(connection.client)

    with ThreadPoolExecutor(16) as pool:
        used = set(pool.map(first_use, range(16)))
    assert len(used) == 1
    assert len(made) == 1


def test_each_role_has_one_client_made_when_it_is_needed(made: list[object]) -> None:
    client.connection("tenant")
    assert made == []
    for _ in range(3):
        assert client.connection("tenant").client is not client.connection("platform").client
    assert len(made) == 2


def test_all_models_of_a_scope_share_its_client() -> None:
    for model in (AccountItem, SessionItem, MemberItem, DetailItem):
        assert model._get_connection().connection is client.connection(model.table.scope)


def test_fan_out_runs_at_the_same_time_and_answers_in_order() -> None:
    together = threading.Barrier(5, timeout=120)
    assert client.fan_out([lambda n=n: (together.wait(), n)[1] for n in range(5)]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("failing", [0, 2])
def test_fan_out_raises_what_one_of_the_calls_raised(failing: int) -> None:
    def call(number: int) -> int:
        return number // (number != failing)

    with pytest.raises(ZeroDivisionError):
        client.fan_out([lambda n=n: call(n) for n in range(4)])


class Impatient(threading.Semaphore):
    """A count of idle threads that nobody can wait for long: who waits for ever would stop all other tests too."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if super().acquire(blocking, (timeout or 3) if blocking else None):
            return True
        assert not blocking, "a call waited for a thread"
        return False


def test_fan_out_leaves_nothing_at_work_when_it_raises() -> None:
    raised, done = threading.Event(), threading.Event()

    def fails() -> None:
        raised.set()
        raise ValueError

    def lasts() -> None:
        raised.wait(120)
        threading.Event().wait(0.05)  # as a read takes
        done.set()

    with pytest.raises(ValueError, match=r"^$"):
        client.fan_out([fails, lasts])
    assert done.is_set()


def test_calls_that_fan_out_themselves_do_not_wait_for_each_others_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    many = client.FAN_OUT_THREADS
    monkeypatch.setattr(client, "_idle_threads", Impatient(many))
    everybody_inside = threading.Barrier(many, timeout=120)

    def request(number: int) -> list[int]:
        def inner() -> list[int]:
            everybody_inside.wait()  # by now each thread of the pool is taken, and its call fans out
            return client.fan_out([lambda n=n: number + n for n in range(3)])  # type: ignore[misc]

        return client.fan_out([lambda: [number], inner])[1]

    answers: dict[int, list[int]] = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: request(n)}), daemon=True) for n in range(many)]
    for thread in threads:
        thread.start()
    expected = {n: [n, n + 1, n + 2] for n in range(many)}
    wait_until(lambda: answers == expected)


def test_of_many_calls_the_callers_own_thread_makes_its_share_and_not_all_that_found_no_thread_idle() -> None:
    many = 10 * client.FAN_OUT_THREADS

    def call() -> int:
        threading.Event().wait(0.002)
        return threading.get_ident()

    made = client.fan_out([call] * many)
    assert made.count(threading.get_ident()) < many / 3


def test_half_of_the_threads_work_for_one_tenant_at_most_and_the_others_for_the_rest() -> None:
    hold, running = threading.Event(), threading.Semaphore(0)

    def slow() -> str:
        running.release()
        hold.wait(120)
        return threading.current_thread().name

    def fan_out_for(tenant_id: str, width: int) -> list[str]:
        with retry.on_behalf_of(tenant_id):
            return client.fan_out([slow] * width)

    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(fan_out_for, ACME, client.FAN_OUT_THREADS)
        for _ in range(client.FAN_OUT_THREADS // 2 + 1):
            assert running.acquire(timeout=120)
        assert not running.acquire(blocking=False), "more than half of the threads work for one"
        quiet = pool.submit(fan_out_for, BOB, 5)
        for _ in range(5):
            assert running.acquire(timeout=120), "a call of the other tenant waited"
        hold.set()
        ours = [name.startswith("fan-out") for name in noisy.result()]
        assert 0 < sum(ours) < client.FAN_OUT_THREADS
        assert sum(name.startswith("fan-out") for name in quiet.result()) == 4


def test_each_thread_of_a_fan_out_is_idle_again_afterwards() -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            client.fan_out([lambda: 0, *[lambda: 1 // 0] * 40])
    together = threading.Barrier(client.FAN_OUT_THREADS + 1, timeout=120)
    client.fan_out([together.wait] * (client.FAN_OUT_THREADS + 1))


# --- processes ---


def in_a_fork(work: Callable[[], str]) -> str:
    """What `work` returns in a forked child, or its error."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(240)
        try:
            answer = work()
        except BaseException as error:
            answer = repr(error)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


def test_a_forked_process_makes_clients_of_its_own_and_both_go_on_reading(engine: None) -> None:
    Store("tenant", ACME).put_all([detail()])
    clients = {scope: client.connection(scope).client for scope in ("tenant", "platform")}

    def child() -> str:
        fresh = [client.connection(scope).client is not old for scope, old in clients.items()]
        texts = client.fan_out([read] * 4)
        session = SessionItem("from the child", data="x", expires_at=1)
        session.save()
        return f"{fresh} {texts}"

    assert in_a_fork(child) == f"{[True, True]} {['text'] * 4}"
    assert client.fan_out([read] * 4) == ["text"] * 4
    assert SessionItem.get("from the child").data == "x"
    assert all(client.connection(scope).client is old for scope, old in clients.items())


def test_a_fork_while_another_thread_makes_a_client_does_not_wait_for_it(
    engine: None, made: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    Store("tenant", ACME).put_all([detail()])
    client.reset()
    inside, leave = threading.Event(), threading.Event()
    make = client.make_client

    def stuck(_: str) -> object:
        if os.getpid() == parent:
            inside.set()
            leave.wait(120)
        return make("tenant")

    parent = os.getpid()
    monkeypatch.setattr(client.connection("tenant"), "_make", stuck)
    thread = threading.Thread(target=read)
    thread.start()
    assert inside.wait(120)
    try:
        assert in_a_fork(read) == "text"
    finally:
        leave.set()
        thread.join(120)
    assert read() == "text"
