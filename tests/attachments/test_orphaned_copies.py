"""Copies of files that no ticket names are deleted, and no other."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.errors import Conflict
from portal.objects.object_store import ObjectStore
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem
from tests.attachments.conftest import PNG, key_of, objects_of
from tests.support.world import World
from tickets.attachments import attachments, orphaned_copies, stored
from tickets.attachments.stored import FileItem
from tickets.desk import commenting, creating


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was stored just now be old."""
    monkeypatch.setattr(orphaned_copies, "GRACE", timedelta(seconds=-2))


def reconcile(*options: str) -> str:
    out = StringIO()
    call_command("reconcile_files", *options, stdout=out)
    return out.getvalue()


def killed_while_attaching(bob: TenantContext, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leave a copy behind as a process that is killed between the copy and its transaction. Return its key."""

    def killed(*args: Any, **how: Any) -> None:
        raise KeyboardInterrupt

    before = set(objects_of(bob.tenant_id))
    files = [attachments.store(bob, "a.png", PNG)]
    with monkeypatch.context() as during:
        during.setattr(Store, "transact", killed)
        with pytest.raises(KeyboardInterrupt):
            commenting.comment(bob, 1, body="", files=files)
    (left,) = set(objects_of(bob.tenant_id)) - before
    return left


def test_a_copy_whose_transaction_never_came_is_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch, later: None
) -> None:
    bob = world.context("bob", "acme")
    described = creating.create(bob, title="One", files=[attachments.store(bob, "a.png", PNG)])
    kept = [attachments.store(bob, "b.png", PNG)]
    commenting.comment(bob, described, body="", files=kept)
    named = set(objects_of(bob.tenant_id))
    assert key_of(bob, described, kept[0].id) in named
    assert killed_while_attaching(bob, monkeypatch) not in named
    assert "3 files older than an hour: 1 that no ticket names are deleted (108 bytes)" in reconcile("--tenant=acme")
    assert set(objects_of(bob.tenant_id)) == named
    assert "2 files older than an hour: a ticket names each" in reconcile()


def test_a_copy_whose_transaction_may_still_come_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    left = killed_while_attaching(bob, monkeypatch)
    reconcile()
    assert objects_of(bob.tenant_id) == [left]


def test_a_file_stays_that_has_no_name_but_its_id(world: World, later: None) -> None:
    """Such are the files of before there were copies."""
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "a.png", PNG)
    commenting.comment(bob, 1, body="", files=[file])
    older = stored.object_key(bob.tenant_id, file.id)
    ObjectStore("tenant", bob.tenant_id).put(older, PNG)
    item = FileItem(bob.repository.key(stored.files, stored.bucket_of(file.id)), stored.file(file.id))
    bob.repository.update(item, [FileItem.object.remove()])
    reconcile()
    assert objects_of(bob.tenant_id) == [older]


def test_nothing_is_deleted_of_a_desk_that_is_moved_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, later: None
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    commenting.comment(bob, 1, body="", files=[attachments.store(bob, "a.png", PNG)])
    kept = objects_of(bob.tenant_id)
    locate, seen = orphaned_copies.placements.location, []

    def moved(tenant: Any) -> Any:
        seen.append(locate(tenant))
        return seen[-1] if len(seen) == 1 else type(seen[-1])(epoch=seen[-1].epoch + 1)

    monkeypatch.setattr(orphaned_copies, "_named", lambda system: set())  # the items of a copy that a move left behind
    monkeypatch.setattr(orphaned_copies.placements, "location", moved)
    with pytest.raises(Conflict):
        orphaned_copies.delete_of(bob.tenant_id)
    assert objects_of(bob.tenant_id) == kept


def test_nothing_is_deleted_of_a_desk_that_is_being_brought_in(world: World, later: None) -> None:
    bob = world.context("bob", "acme")
    brought = stored.object_key(bob.tenant_id, "0" * 32)
    ObjectStore("tenant", bob.tenant_id).put(brought, PNG)
    PLATFORM.update(TenantItem(bob.tenant_id), [TenantItem.arriving.set("1" * 32)])
    assert "Not looked at, since they are being moved or brought in: 1 desk." in reconcile()
    assert objects_of(bob.tenant_id) == [brought]
