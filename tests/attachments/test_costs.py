"""Each step of a file costs a few requests, and a page with files as much as one without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from portal.dynamo import meter
from portal.objects import object_store
from tests.attachments.conftest import PNG
from tests.support.world import World
from tickets.attachments import attachments, downloads
from tickets.desk import commenting, timelines


@pytest.fixture
def asked() -> Iterator[Counter[str]]:
    """The operations that were asked of the bucket."""
    counted: Counter[str] = Counter()
    call = object_store.ObjectStore._call

    def counting(self: Any, operation: str, **params: Any) -> Any:
        counted[operation] += 1
        return call(self, operation, **params)

    with patch.object(object_store.ObjectStore, "_call", counting):
        yield counted


def test_an_upload_begins_with_a_read_and_a_write_and_asks_the_bucket_nothing(
    world: World, asked: Counter[str], bill: meter.Meter
) -> None:
    bob = world.context("bob", "acme")
    bill.calls.clear()
    attachments.begin(bob, "a.png", 100)
    assert [call.operation for call in bill.calls] == ["BatchGetItem", "PutItem"]
    assert not asked


def test_a_comment_with_files_copies_each_looks_at_both_and_writes_one_transaction(
    world: World, asked: Counter[str], bill: meter.Meter
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    ids = [attachments.store(bob, f"{n}.png", PNG).id for n in range(3)]
    asked.clear()
    bill.calls.clear()
    files = attachments.uploaded(bob, ids)
    commenting.comment(bob, 1, body="Three.", files=files)
    assert [call.operation for call in bill.calls] == ["BatchGetItem", "GetItem", "TransactWriteItems"]
    assert asked == {"GetObject": 6, "CopyObject": 3}


def test_a_ticket_with_files_is_one_query_and_a_download_one_read(
    world: World, asked: Counter[str], bill: meter.Meter
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "a.png", PNG)
    commenting.comment(bob, 1, body="", files=[file])
    asked.clear()
    bill.calls.clear()
    timelines.ticket(bob, 1)
    downloads.address_of(bob, 1, file.id)
    assert [call.operation for call in bill.calls] == ["Query", "GetItem"]
    assert not asked
