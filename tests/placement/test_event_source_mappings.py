"""Where workers are Lambda functions, those that read the pool's streams read those of a tenant's own tables."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from django.conf import settings as live

from delivery.outbox.stored import OUTBOX
from portal import aws_session
from portal.dynamo import placement, provisioning, retry
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Store
from portal.errors import Throttled
from portal.isolation import guard
from portal.schema.registry import Table
from tests.support.waiting import wait_until
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, CounterItem

ACME = "a" * 32
BRIDGE, SILO, ELSEWHERE = Placement("bridge"), Placement("silo", "there"), Placement("silo", "elsewhere")
SETTINGS = {"BatchSize": 7, "MaximumRetryAttempts": 3, "FunctionResponseTypes": ["ReportBatchItemFailures"]}
HANDLER = """\
def handler(event, context):
    with open({path!r}, "a") as seen:
        seen.writelines(record["eventSourceARN"] + "\\n" for record in event["Records"])
"""


@pytest.fixture
def functions(engine: None, settings: Any, tmp_path: Path) -> Iterator[Path]:
    """Two functions that read the pool's streams, as the template has them. Gives the file in which they note ARNs."""
    settings.DELIVERY_WORKERS = 0
    settings.SILOS = {
        **settings.SILOS,
        "elsewhere": {**settings.SILOS["there"], "region": "us-east-1", "prefix": "Far"},
    }
    client, seen, code = _client(), tmp_path / "seen", io.BytesIO()
    with zipfile.ZipFile(code, "w") as file:
        file.writestr("own.py", HANDLER.format(path=str(seen)))
    for name, table in (("worker", TICKETS), ("dispatcher", OUTBOX)):
        client.create_function(
            FunctionName=f"Desk-{name}",
            Runtime="python3.13",
            Role="arn:aws:iam::000000000000:role/worker",
            Handler="own.handler",
            Code={"ZipFile": code.getvalue()},
        )
        client.create_event_source_mapping(
            EventSourceArn=_stream(table, POOL), FunctionName=f"Desk-{name}", StartingPosition="LATEST", **SETTINGS
        )
    yield seen
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        client.delete_event_source_mapping(UUID=mapping["UUID"])
    for name in ("worker", "dispatcher"):
        client.delete_function(FunctionName=f"Desk-{name}")


def _client() -> Any:
    return aws_session.client("lambda", live.AWS_REGION, live.LAMBDA_ENDPOINT_URL)


def _stream(table: Table, where: Placement) -> str:
    with guard.acting_for(ACME), placement.at(where):
        return str((provisioning.describe(table) or {}).get("LatestStreamArn"))


def _mapped(stream: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _client().list_event_source_mappings(EventSourceArn=stream)["EventSourceMappings"]
    return found


@pytest.mark.parametrize("where", [BRIDGE, SILO], ids=str)
def test_they_are_made_with_the_tables_read_their_streams_and_go_with_them(functions: Path, where: Placement) -> None:
    provisioning.create_placed(ACME, where)
    provisioning.create_placed(ACME, where)
    streams = {name: _stream(table, where) for name, table in (("worker", TICKETS), ("dispatcher", OUTBOX))}
    for name, stream in streams.items():
        (mapping,) = _mapped(stream)
        assert mapping["FunctionArn"].endswith(f"function:Desk-{name}")
        assert (mapping["StartingPosition"], {key: mapping[key] for key in SETTINGS}) == ("TRIM_HORIZON", SETTINGS)
    Store("tenant", ACME, where).increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)
    wait_until(lambda: functions.exists() and streams["worker"] in functions.read_text())
    provisioning.delete_placed(ACME, where)
    assert [_mapped(stream) for stream in streams.values()] == [[], []]
    assert len(_mapped(_stream(TICKETS, POOL))) == 1


def test_a_site_elsewhere_is_left_to_the_pollers(functions: Path) -> None:
    provisioning.create_placed(ACME, ELSEWHERE)
    assert _mapped(_stream(TICKETS, ELSEWHERE)) == []


def test_pollers_read_the_streams_where_they_are_the_workers(functions: Path, settings: Any) -> None:
    settings.DELIVERY_WORKERS = 1
    provisioning.create_placed(ACME, BRIDGE)
    assert _mapped(_stream(TICKETS, BRIDGE)) == []


def test_a_mapping_that_is_still_being_made_is_deleted_when_it_can_be(
    functions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provisioning.create_placed(ACME, BRIDGE)
    stream, client = _stream(TICKETS, BRIDGE), _client()
    delete, refusals = client.delete_event_source_mapping, iter(range(2))

    def busy(times: Iterator[int], **params: Any) -> Any:
        if next(times, None) is not None:
            raise ClientError({"Error": {"Code": "ResourceInUseException", "Message": "Creating"}}, "Delete")
        return delete(**params)

    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    monkeypatch.setattr(client, "delete_event_source_mapping", partial(busy, refusals))
    provisioning.delete_placed(ACME, BRIDGE)
    assert _mapped(stream) == []
    provisioning.create_placed(ACME, BRIDGE)
    monkeypatch.setattr(client, "delete_event_source_mapping", partial(busy, iter(range(100))))
    with pytest.raises(Throttled):
        provisioning.delete_placed(ACME, BRIDGE)
    assert _stream(TICKETS, BRIDGE) != "None", "the table is there as long as something reads it"
    monkeypatch.setattr(client, "delete_event_source_mapping", delete)
