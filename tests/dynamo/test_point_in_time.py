"""Restoring tables as Amazon DynamoDB answers it: by stubs of its answers, and by moto for all tables at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from django.test import override_settings
from moto import mock_aws

from portal import clock
from portal.dynamo.point_in_time import PointInTime, Source
from portal.errors import Conflict, Invalid
from portal.schema import registry
from tickets.ticket.stored import TICKETS

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LIVING, RESTORED = "Pooldesk.Support.Tickets", "Pooldesk-Drill.Support.Tickets"
ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Amazon DynamoDB, with credentials that are none."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    with override_settings(DYNAMODB_ENDPOINT_URL="", DYNAMODB_TABLE_PREFIX="Pooldesk"):
        yield


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def tables(slept: list[float]) -> PointInTime:
    return PointInTime(slept.append)


@pytest.fixture
def answers(tables: PointInTime) -> Iterator[Stubber]:
    with Stubber(tables.client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def source(name: str = LIVING, *, earliest: datetime | None = None, latest: datetime | None = None) -> Source:
    return Source(name, name.replace("Pooldesk.", "Pooldesk-Drill."), 100, 1, earliest, latest, stream=False)


def kept(hours: int) -> Source:
    """A table with backups until some hours after noon."""
    return source(earliest=NOON - timedelta(days=35), latest=NOON + timedelta(hours=hours))


def described(status: str, **more: Any) -> dict[str, Any]:
    return {"Table": {"TableName": RESTORED, "TableStatus": status, **more}}


def listed(answers: Stubber, *names: str) -> None:
    answers.add_response("list_tables", {"TableNames": [*names]})


# --- to which moment ---


def test_all_tables_are_restored_to_the_last_moment_that_each_of_them_has(tables: PointInTime) -> None:
    assert tables.moment([kept(3), kept(1), kept(2)]) == NOON + timedelta(hours=1)
    assert tables.moment([kept(3), kept(1)], clock.stamp(NOON)) == NOON


@pytest.mark.parametrize("at", [NOON - timedelta(days=36), NOON + timedelta(hours=2)])
def test_a_moment_of_which_one_table_has_no_backup_is_refused_with_those_that_there_are(
    tables: PointInTime, at: datetime
) -> None:
    with pytest.raises(Invalid, match="between 2026-10-16T12:00:00 and 2026-11-20T13:00:00"):
        tables.moment([kept(3), kept(1)], clock.stamp(at))


@pytest.mark.parametrize("others", [[], [kept(1)]])
def test_a_table_without_backups_is_named(tables: PointInTime, others: list[Source]) -> None:
    with pytest.raises(Conflict, match=LIVING):
        tables.moment([*others, source()])


def test_tables_whose_backups_have_just_begun_have_to_wait(tables: PointInTime) -> None:
    new = source(earliest=NOON + timedelta(hours=2), latest=NOON + timedelta(hours=3))
    with pytest.raises(Conflict, match="no moment yet"):
        tables.moment([kept(1), new])


# --- restoring ---


def test_a_restore_waits_for_its_turn_and_until_the_table_is_active(
    tables: PointInTime, answers: Stubber, slept: list[float]
) -> None:
    listed(answers, LIVING)
    wish = {"SourceTableName": LIVING, "TargetTableName": RESTORED, "RestoreDateTime": NOON}
    answers.add_client_error("restore_table_to_point_in_time", "LimitExceededException", expected_params=wish)
    answers.add_response("restore_table_to_point_in_time", {}, wish)
    answers.add_response("describe_table", described("CREATING"))
    answers.add_response("describe_table", described("ACTIVE"))
    done: list[str] = []
    tables.restore([source()], NOON, done=done.append)
    assert done == [RESTORED]
    assert len(slept) == 2


def test_a_restore_without_room_for_the_tables_is_refused_before_the_first(
    tables: PointInTime, answers: Stubber
) -> None:
    listed(answers, *(f"Other.{n}" for n in range(10)))
    with override_settings(DYNAMODB_TABLE_QUOTA=10), pytest.raises(Conflict, match="room for 0 more tables"):
        tables.restore([source()], NOON, done=print)


# --- removing ---


def test_a_table_that_is_still_being_restored_is_waited_for_and_then_deleted(
    tables: PointInTime, answers: Stubber, slept: list[float]
) -> None:
    restored = {"RestoreSummary": {"SourceTableArn": ARN + LIVING, "RestoreDateTime": NOON, "RestoreInProgress": True}}
    listed(answers, LIVING, RESTORED, "Pooldesk-Drill.Of.Others")
    answers.add_response("describe_table", described("CREATING", **restored))
    answers.add_response("describe_table", described("ACTIVE", **restored))
    answers.add_response("delete_table", {}, {"TableName": RESTORED})
    answers.add_response("describe_table", described("DELETING", **restored))
    answers.add_client_error("describe_table", "ResourceNotFoundException")
    assert tables.remove() == []
    assert len(slept) == 2


def test_who_does_not_wait_is_told_which_tables_are_still_being_restored(tables: PointInTime, answers: Stubber) -> None:
    restored = {"RestoreSummary": {"SourceTableArn": ARN + LIVING, "RestoreDateTime": NOON, "RestoreInProgress": True}}
    listed(answers, RESTORED)
    answers.add_response("describe_table", described("CREATING", **restored))
    answers.add_response("describe_table", described("CREATING", **restored))
    assert tables.remove(wait=False) == [RESTORED]


@pytest.mark.parametrize("made_from", [None, "Pooldesk.Support.Other"])
def test_a_table_that_no_drill_has_restored_is_left_as_it_is(
    tables: PointInTime, answers: Stubber, made_from: str | None
) -> None:
    made = {"SourceTableArn": ARN + str(made_from), "RestoreDateTime": NOON, "RestoreInProgress": False}
    listed(answers, RESTORED)
    answers.add_response("describe_table", described("ACTIVE", **({"RestoreSummary": made} if made_from else {})))
    with pytest.raises(Conflict, match="is no table of a drill"):
        tables.remove()


# --- all of it ---


def test_all_tables_are_restored_with_their_items_and_streams_and_removed_again() -> None:
    with mock_aws():
        # No guard: they are made as the template makes them.
        wire = boto3.client("dynamodb", "eu-central-1")
        for table in registry.tables():
            wire.create_table(**table.definition())
            wire.update_continuous_backups(
                TableName=table.full_name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )
        item = {"pk": {"S": "x"}, "sk": {"S": "y"}}
        wire.put_item(TableName=LIVING, Item=item)
        tables = PointInTime(lambda seconds: None)
        sources = tables.sources()
        assert all(one.earliest and one.latest for one in sources)
        tables.restore(sources, clock.now(), done=lambda name: None)
        tables.turn_streams_on(sources)
        assert len(tables.left()) == len(registry.tables())
        assert wire.get_item(TableName=RESTORED, Key=item)["Item"] == item
        assert {one.name for one in sources if one.stream} == {t.full_name for t in registry.tables() if t.stream}
        assert wire.describe_table(TableName=RESTORED)["Table"]["LatestStreamArn"]
        assert tables.remove() == []
        assert sorted(wire.list_tables()["TableNames"]) == sorted(t.full_name for t in registry.tables())
        assert wire.get_item(TableName=TICKETS.full_name, Key=item)["Item"] == item
