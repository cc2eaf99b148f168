"""An owner exports the whole desk: asked for on a page, made by a worker, fetched for a while, and brought in again."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail

from portal import clock
from tenants.audit_trail.recording import SYSTEM
from tenants.audit_trail.stored import AUDIT
from tenants.membership import own_profile
from tenants.sign_in.accounts import Profile
from tenants.tenancy import context, request, tenant_directory
from tests.desk.test_cost import _watching
from tests.support.commands import everything, run
from tests.support.factors import confirmed
from tests.support.stored import put_all
from tests.support.world import Browser, World
from tickets.desk import lists
from tickets.desk_export import export_job, export_requests
from tickets.desk_export.export_job import DeskExport
from tickets.desk_export.stored import EXPORT_PARTS
from tickets.jobs.leased_job import TakenOver
from tickets.ticket.fields import Status

PAGE = "/desk/settings/export/"


@pytest.fixture
def acme(world: World) -> World:
    world.tickets("acme", 3)
    return world


@pytest.fixture
def alice(acme: World) -> Browser:
    return confirmed(acme, "alice", "acme")


def work(**how: Any) -> int:
    """Carry out what a lifecycle worker finds in one turn."""
    return export_job.follower(parts_a_second=1000.0, **how).turn()


def exported(alice: Browser) -> bytes:
    alice.send(f"{PAGE}ask/")
    assert work() == 1
    return b"".join(download(alice).streaming_content)


def download(browser: Browser) -> Any:
    return browser.send(f"{PAGE}download/")


def item_of(world: World) -> Any:
    return export_requests.last(world.context("alice", "acme"))


def actions(world: World) -> list[str]:
    """What the trail of Acme says of exports, the oldest first."""
    rows = sorted(everything(AUDIT), key=lambda row: row["timestamp_event_id"]["S"])
    mine = [row for row in rows if row["tenant_id"]["S"] == world.tenants["acme"].tenant_id]
    return [row["action"]["S"] for row in mine if row["action"]["S"].startswith("export.")]


def tickets(slug: str) -> list[tuple[int, str, str]]:
    tenant = context.for_system(tenant_directory.find(slug), name="")
    rows = lists.page(tenant, status=list(Status), size=50).rows
    return [(row.number, row.title, row.updated_at) for row in rows]


def test_an_owner_asks_gets_a_mail_and_downloads_what_import_tenant_brings_in(
    acme: World, alice: Browser, tmp_path: Path
) -> None:
    owner = acme.users["alice"]
    own_profile.change(owner.id, name=owner.name, profile=Profile("Asia/Kolkata"), by=SYSTEM)
    assert "Export this desk" in alice.get(PAGE).content.decode()
    assert alice.send(f"{PAGE}ask/").status_code == 302
    assert "It begins within seconds" in alice.get(PAGE).content.decode()
    seen: list[str] = []
    work(say=seen.append)
    assert "tickets" in " ".join(seen)
    assert "Your file is ready" in alice.get(PAGE).content.decode()
    answer = download(alice)
    content = b"".join(answer.streaming_content)
    assert (int(answer["Content-Length"]), answer["Content-Type"]) == (len(content), "application/zip")
    assert answer["Content-Disposition"].startswith('attachment; filename="acme-')
    (letter,) = mail.outbox
    assert (letter.to, letter.subject) == (["alice@example.com"], "The export of Acme is ready")
    assert "/acme/desk/settings/export/" in letter.body
    assert " Asia/Kolkata (UTC+5:30) its owners can download it here" in letter.body
    assert actions(acme) == ["export.asked", "export.made", "export.downloaded"]
    path = tmp_path / "acme.zip"
    path.write_bytes(content)
    ended = run("import_tenant", path, "--as", "again", "--new-id")
    assert ended.status == 0, ended.err
    assert tickets("again") == tickets("acme")
    assert len(tickets("again")) == 3


def test_the_file_has_no_secrets_and_not_itself(alice: Browser) -> None:
    exported(alice)
    with zipfile.ZipFile(io.BytesIO(exported(alice))) as archive:
        assert not any("export" in name for name in archive.namelist())
        assert b'"with_secrets": false' in archive.read("manifest.json")


def test_a_step_that_is_noted_is_shown(acme: World, alice: Browser) -> None:
    alice.send(f"{PAGE}ask/")
    item = item_of(acme)
    item.phase, item.step, item.steps, item.written = "tickets", 3, 20, 1
    put_all([item])
    page = alice.get(PAGE).content.decode()
    assert "Step 3 of 20: tickets. 1 item written." in page
    assert 'hx-trigger="load delay:2s"' in page


@pytest.mark.parametrize("act", ["ask", "download"])
def test_who_has_not_proved_to_be_the_owner_of_late_is_asked_to(
    acme: World, alice: Browser, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(alice)
    monkeypatch.setattr(request, "CONFIRMED_SECONDS", 0)
    answer: Any = alice.send(f"{PAGE}{act}/", {"next": "/acme/desk/settings/export/"})
    assert answer.status_code == 302
    assert answer["Location"] == "/account/security/?next=%2Facme%2Fdesk%2Fsettings%2Fexport%2F"
    assert actions(acme) == ["export.asked", "export.made", "export.downloaded"]


def test_an_expired_file_and_that_of_another_desk_are_not_sent(acme: World, alice: Browser) -> None:
    exported(alice)
    charlie = confirmed(acme, "charlie", "globex")
    assert "Your file is ready" not in charlie.get(PAGE).content.decode()
    assert download(charlie).status_code == 302
    item = item_of(acme)
    item.expires_at = clock.stamp(clock.now() - timedelta(seconds=1))
    put_all([item])
    assert everything(EXPORT_PARTS)
    assert download(alice).status_code == 302
    assert "This export has expired" in alice.get(PAGE).content.decode()


def test_a_cancelled_export_leaves_no_file(acme: World, alice: Browser) -> None:
    alice.send(f"{PAGE}ask/")

    def cancel(phase: str) -> None:
        if item_of(acme).state == export_requests.RUNNING:
            alice.send(f"{PAGE}cancel/")

    work(say=cancel)
    assert item_of(acme).state == export_requests.CANCELLED
    assert "The last export was cancelled" in alice.get(PAGE).content.decode()
    assert download(alice).status_code == 302
    assert actions(acme) == ["export.asked", "export.cancelled"]


def test_one_export_is_made_at_a_time(acme: World, alice: Browser) -> None:
    alice.send(f"{PAGE}ask/")
    alice.send(f"{PAGE}ask/")
    assert "is being made already" in alice.get(PAGE).content.decode()
    assert actions(acme) == ["export.asked"]


def stopped_after(items: int) -> Callable[[], bool]:
    left = iter(range(items))
    return lambda: next(left, None) is not None


def test_a_worker_that_ends_in_the_middle_leaves_it_to_the_next_one(acme: World, alice: Browser) -> None:
    alice.send(f"{PAGE}ask/")
    assert not DeskExport(item_of(acme), again=stopped_after(10)).run()
    assert (item_of(acme).state, item_of(acme).holder) == (export_requests.RUNNING, "")
    assert work() == 1
    assert zipfile.ZipFile(io.BytesIO(b"".join(download(alice).streaming_content))).testzip() is None


def test_two_who_make_it_for_a_moment_never_mix_their_files(
    acme: World, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_job, "PART_BYTES", 1000)
    alice.send(f"{PAGE}ask/")
    slow = DeskExport(item_of(acme), parts_a_second=1000.0)
    slow.item = slow.kind.take(slow.item, me=slow.me)
    fast = DeskExport(item_of(acme), parts_a_second=1000.0)
    assert fast.run()
    with pytest.raises(TakenOver):
        slow.run()
    content = b"".join(download(alice).streaming_content)
    assert len(content) == int(item_of(acme).size)
    assert zipfile.ZipFile(io.BytesIO(content)).testzip() is None


def test_the_page_costs_two_reads_beside_identity_and_one_while_an_export_is_made(alice: Browser) -> None:
    alice.send(f"{PAGE}ask/")
    with _watching() as bills:
        alice.get(PAGE)
    assert [call.operation for call in bills[0].calls] == ["BatchGetItem", "GetItem"]
    assert work() == 1
    with _watching() as bills:
        alice.get(PAGE)
    assert [call.operation for call in bills[0].calls] == ["BatchGetItem", "GetItem", "BatchGetItem"]
