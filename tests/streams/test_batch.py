"""Records as handlers get them, whichever engine wrote them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from portal.streams import batch


def record(**data: object) -> batch.Record:
    return batch.parse({"eventName": "MODIFY", "dynamodb": {"SequenceNumber": "7", "Keys": {}, **data}})


def test_an_empty_map_is_one_with_and_without_its_type() -> None:
    image = {"typed": {"M": {}}, "bare": {}, "nested": {"L": [{}, {"M": {"inner": {}}}]}}
    assert record(NewImage=image).new == {"typed": {}, "bare": {}, "nested": [{}, {"inner": {}}]}


def test_images_are_plain_python_and_a_missing_one_is_none() -> None:
    one = record(OldImage={"n": {"N": "1.50"}, "s": {"S": "x"}, "no": {"NULL": True}})
    assert (one.old, one.new) == ({"n": Decimal("1.50"), "s": "x", "no": None}, None)


def test_sequence_numbers_of_different_length_compare_as_numbers() -> None:
    assert batch.padded("9") < batch.padded("10")
    assert record().sequence == batch.padded("7")
    assert record().checkpoint == "7"


def test_the_time_of_a_change_is_told_to_the_second_below() -> None:
    moment = datetime(2026, 11, 20, 10, 0, 0, 900_000, UTC)
    for at in (moment, moment.timestamp()):
        assert record(ApproximateCreationDateTime=at).created_at == "2026-11-20T10:00:00.000000Z"
    assert record().created_at == ""
