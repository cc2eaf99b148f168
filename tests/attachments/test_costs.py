"""Each step of a file costs a few requests, and a page with files as much as one without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
import urllib3

from portal.dynamo import meter
from portal.objects import object_store
from portal.objects.object_store import UploadForm
from tests.attachments.conftest import PNG, send
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


def test_no_step_of_a_file_brings_its_content_through_the_portal(world: World) -> None:
    """The ways on which it does are said in docs/files.md: a form without JavaScript, and all files as one zip."""
    world.tickets("acme", 1)
    bob, browser, content = world.context("bob", "acme"), world.browser("bob"), PNG + bytes(1_000_000)
    carried: list[tuple[str, object]] = []
    call = object_store.ObjectStore._call

    def carrying(self: Any, operation: str, **params: Any) -> Any:
        carried.append((operation, params.get("Range", "") or len(params.get("Body", b""))))
        return call(self, operation, **params)

    with patch.object(object_store.ObjectStore, "_call", carrying):
        told = browser.send("/tickets/files/", {"name": "a.png", "size": str(len(content))}).json()
        assert send(UploadForm(told["url"], told["fields"]), content)[0] == 204
        data = {"body": "", "request_id": "0" * 32, "files": [told["id"]]}
        assert browser.send("/tickets/1/comment/", data).status_code == 302
        browser.get("/tickets/1/")
        got = urllib3.request("GET", browser.get(f"/tickets/1/files/{told['id']}/")["Location"])
        browser.get(f"/tickets/1/files/{told['id']}/preview/")
    assert got.data == content
    assert carried == [("GetObject", "bytes=0-4095"), ("CopyObject", 0), ("GetObject", "bytes=0-4095")]
    assert attachments.usage(bob).count == 1
