"""The engines as real processes: what they keep, what they refuse, and how they end."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.conf import settings

from portal.engines import dynamodb_local, processes
from portal.engines import engine_process as engines
from portal.engines.endpoint import ACCESS_KEY, REGION, free_port, point_at
from portal.engines.engine_process import Engine, EngineError, Ministack, running_engine, start_engine
from tests.support.waiting import wait_until

TABLE = "Engine.Test"


def client(engine: Engine):
    how = {"region_name": REGION, "aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": ACCESS_KEY}
    return boto3.client("dynamodb", endpoint_url=engine.endpoint_url, **how)


def fill(engine: Engine, items: int = 40) -> None:
    """A table with a stream, and an index that sees the items in four partitions."""
    dynamodb = client(engine)
    index = {
        "IndexName": "gsi-colour",
        "KeySchema": [{"AttributeName": "colour", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "colour")],
        GlobalSecondaryIndexes=[index],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )
    dynamodb.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    for number in range(items):
        dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": str(number)}, "colour": {"S": f"colour-{number % 4}"}})


def count(dynamodb: Any, colour: str) -> int:
    answer = dynamodb.query(
        TableName=TABLE,
        IndexName="gsi-colour",
        KeyConditionExpression="colour = :colour",
        ExpressionAttributeValues={":colour": {"S": colour}},
    )
    return int(answer["Count"])


@pytest.fixture(scope="module", params=["ministack", pytest.param("dynamodb-local", marks=pytest.mark.timeout(900))])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "dynamodb-local":
        try:
            dynamodb_local.install()
        except dynamodb_local.InstallError as reason:
            pytest.skip(str(reason))
    return str(request.param)


@pytest.fixture(scope="module")
def ministack() -> Iterator[Engine]:
    """One at a port that was asked for, for the tests that leave it running. The thread that started it has ended."""
    port = free_port()
    with ThreadPoolExecutor(1) as thread:
        started = thread.submit(start_engine, port=port)
    with started.result() as engine:
        assert engine.endpoint_url == f"http://127.0.0.1:{port}"
        yield engine


def serves_many_threads_on_one_address(engine: Engine) -> bool:
    dynamodb = client(engine)
    with ThreadPoolExecutor(16) as threads:
        counts = list(threads.map(lambda number: count(dynamodb, f"colour-{number % 4}"), range(160)))
    assert counts == [10] * 160, "sixteen threads read at once"
    if sys.platform == "linux":  # only Linux answers on all of 127.0.0.0/8
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", engine.port), timeout=5)
    return True


def plans_of_stream_records(state_dir: Path) -> list[bool]:
    """Whether DynamoDB Local finds the records of a stream, and of a shard, by an index."""
    (file,) = state_dir.glob("*.db")
    with closing(sqlite3.connect(file)) as records:
        assert records.execute("SELECT count(*) FROM us").fetchone() == (41,)
        asked = "EXPLAIN QUERY PLAN SELECT * FROM us WHERE {} = ''"
        plans = [next(records.execute(asked.format(column))) for column in ("StreamID", "ShardID")]
    return ["USING INDEX" in plan[3] for plan in plans]


def test_an_engine_in_memory_forgets() -> None:
    with start_engine() as engine:
        fill(engine, items=1)
        log_path = engine.log_path
    assert not log_path.parent.exists(), "it leaves nothing behind"
    with engine:
        assert client(engine).list_tables()["TableNames"] == []


def test_an_engine_is_ended_when_its_parent_is_killed_and_saves_first(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its data belong to it alone until it has ended, and are there after a restart, for many at once."""
    script = f"""
import pathlib, time
from portal.engines.engine_process import start_engine
engine = start_engine({kind!r}, state_dir=pathlib.Path({str(tmp_path)!r}))
print(engine.port, engine.pid, flush=True)
time.sleep(1000)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=settings.BASE_DIR,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    port, pid = map(int, parent.stdout.readline().split())
    fill(Ministack(port=port))
    address = f"http://127.0.0.1:{port}"
    assert running_engine(tmp_path) == address
    with pytest.raises(EngineError, match=f"Another engine is using .* DYNAMODB_ENDPOINT_URL={address}"):
        start_engine(kind, state_dir=tmp_path)
    assert running_engine(tmp_path) == address

    os.kill(pid, signal.SIGSTOP)  # as if saving took long
    parent.kill()
    parent.communicate()
    try:
        with pytest.raises(EngineError, match="Another engine is using"):
            start_engine(kind, state_dir=tmp_path)
    finally:
        os.kill(pid, signal.SIGCONT)

    wait_until(lambda: running_engine(tmp_path) is None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    with start_engine(kind, state_dir=tmp_path) as engine:
        assert serves_many_threads_on_one_address(engine)
        client(engine).put_item(TableName=TABLE, Item={"pk": {"S": "new"}, "colour": {"S": "colour-0"}})
    if kind == "dynamodb-local":
        assert plans_of_stream_records(tmp_path) == [True, True], "each write and each read would look through all"
    assert list((tmp_path / "scratch").iterdir()) == [], "it leaves nothing behind but its data"


def test_an_engine_outlives_the_thread_that_started_it_and_no_ctrl_c_in_the_terminal_reaches_it(
    ministack: Engine,
) -> None:
    fill(ministack, items=4)
    assert count(client(ministack), "colour-1") == 1
    assert ministack.pid is not None
    assert os.getpgid(ministack.pid) != os.getpgid(0)
    assert os.getsid(ministack.pid) != os.getsid(0)


def test_a_fork_does_not_stop_its_parents_engine(ministack: Engine) -> None:
    child = os.fork()
    if child == 0:
        ministack.stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert ministack.answers()


def test_a_taken_port_is_refused_with_the_remedy(ministack: Engine) -> None:
    with pytest.raises(EngineError, match=rf"port {ministack.port} is taken; choose another with ENGINE_PORT="):
        start_engine(port=ministack.port)


def test_state_that_cannot_be_read_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    saved = tmp_path / "dynamodb.json"
    saved.write_text('{"cut off')
    with pytest.raises(EngineError, match=r"cannot be read; move .* away"):
        start_engine(state_dir=tmp_path)
    assert saved.read_text() == '{"cut off'
    assert running_engine(tmp_path) is None


def test_what_never_saved_has_lost_all(tmp_path: Path) -> None:
    engine = Ministack(state_dir=tmp_path)
    assert engine.lost_data() == "It saves only when it is stopped, and had not been before: all data are lost."
    (tmp_path / engine.state_file).touch()
    assert "what was written after 20" in engine.lost_data()


def test_state_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    engine = start_engine(state_dir=tmp_path)
    fill(engine, items=4)
    (tmp_path / "dynamodb.json").mkdir()
    with pytest.raises(EngineError, match="did not save its data"):
        engine.stop()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            [sys.executable, "-c", "import sys; print('no engine today'); sys.exit(3)"],
            r"(?s)ministack ended at once with exit status 3.*no engine today",
        ),
        (["sleep", "60"], r"did not answer within 0\.5 s"),
    ],
)
def test_an_engine_that_ends_at_once_or_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, command: list[str], says: str
) -> None:
    monkeypatch.setattr(engines, "START_SECONDS", 240 if "-c" in command else 0.5)
    monkeypatch.setattr(Ministack, "_command", lambda self: command)
    with pytest.raises(EngineError, match=says):
        start_engine()


def test_saving_that_takes_long_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "SLOW_SECONDS", 0.2)
    said: list[str] = []

    def go_on(sentence: str) -> None:
        said.append(sentence)
        os.kill(pid, signal.SIGCONT)

    engine = start_engine(state_dir=tmp_path, report=go_on)
    assert engine.pid is not None
    os.kill(pid := engine.pid, signal.SIGSTOP)
    engine.stop()
    assert said == ["Waiting for ministack to save its data ..."]


def test_an_engine_that_does_not_end_is_killed_and_that_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(engines, "STOP_SECONDS", 0.5)
    engine = start_engine(state_dir=tmp_path)
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGSTOP)
    with pytest.raises(EngineError, match="did not end within"):
        engine.stop()
    assert running_engine(tmp_path) is None


def test_an_unknown_kind_is_refused_with_the_choices() -> None:
    with pytest.raises(EngineError, match="choose one of ministack, dynamodb-local"):
        start_engine("sqlite")


def test_pointing_at_an_engine_takes_away_the_way_to_a_real_account() -> None:
    environ = {"AWS_PROFILE": "production", "AWS_ACCESS_KEY_ID": "real", "AWS_SESSION_TOKEN": "real", "HOME": "/"}
    point_at("http://127.0.0.1:1", environ)
    assert "real" not in environ.values()
    assert "production" not in environ.values()
    assert environ["HOME"] == "/"
