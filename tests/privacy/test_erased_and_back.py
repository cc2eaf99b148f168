"""Who was erased and is a member again acts by name; what the trail tells of before stays under the pseudonym."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem
from tests.support import used_desk
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.mailing import OUTBOX
from tests.support.operators import text_of
from tests.support.world import World

BOB, ERASED = "bob@example.com", "Erased person"
PAGE = "/desk/settings/person/"


@pytest.fixture
def desk(world: World, settings: Any) -> World:
    """Bob made Vera an agent, left, was erased, was invited and accepted, and made Vera a viewer again."""
    settings.EMAIL_BACKEND = OUTBOX
    make(world, "admin", of="bob")
    make(world, "agent", of="vera", by="bob")
    leave(world)
    assert run("erase_person", "acme", BOB).status == 0
    world.browser("alice", "acme").send("/desk/invitations/", {"addresses": BOB, "role": "admin"})
    world.browser("bob").post("/tenants/accept/", {"tenant": world.tenants["acme"].tenant_id})
    make(world, "viewer", of="vera", by="bob")
    return world


def make(world: World, role: str, *, of: str, by: str = "alice") -> None:
    answer: Any = world.browser(by, "acme").send(f"/desk/members/{world.users[of].id}/role/", {"role": role})
    assert answer.status_code == 302, answer.content


def leave(world: World) -> None:
    by = Actor(world.users["alice"].id, "alice@example.com")
    member_changes.remove(user_id=world.users["bob"].id, tenant_id=world.tenants["acme"].tenant_id, by=by)


def told(world: World) -> list[list[str]]:
    """How the trail calls Bob in each row that tells of him, newest first: in the API, in the file and on the page."""
    browser = world.browser("alice", "acme")
    of_api = [
        f"{row['actor']['name']} {row['action']} {row['entity']['name']}"
        for row in api_client(world).ask("/audit-events").json()["data"]
    ]
    sheet: Any = browser.send("/desk/audit/export/")
    of_file = [
        f"{row[1]} {row[3]} {row[5]}"
        for row in csv.reader(b"".join(sheet.streaming_content).decode("utf-8-sig").splitlines()[1:])
    ]
    of_page = re.findall(r"<tr>.*?</tr>", browser.get("/desk/audit/").content.decode().replace("<wbr>", ""), re.DOTALL)
    ways = (of_api, of_file, of_page)
    return [[BOB if BOB in row else ERASED for row in rows if BOB in row or ERASED in row] for rows in ways]


def test_what_they_did_before_is_under_the_pseudonym_and_what_came_later_by_name(desk: World) -> None:
    # Became an admin, changed Vera's role, was removed, was erased; was invited, accepted, signed in, changed it back.
    expected = [BOB] * 4 + [ERASED] * 4
    assert told(desk) == [expected] * 3


def test_the_moment_goes_with_the_desk_into_another_installation(desk: World, tmp_path: Path) -> None:
    before = told(desk)[2]
    assert run("export_tenant", "acme", tmp_path / "acme.zip").status == 0
    used_desk.remove(desk.tenants["acme"].tenant_id)
    assert run("import_tenant", tmp_path / "acme.zip").status == 0
    after = told(desk)
    assert after[2][-len(before) :] == before
    assert run("verify_audit", "--tenant", "acme").status == 0


def test_who_leaves_again_can_be_erased_again_and_nothing_names_them_any_more(desk: World) -> None:
    browser = desk.browser("alice", "acme")
    assert "is a member" in text_of(browser.send(PAGE, {"address": BOB}))
    leave(desk)
    page = text_of(browser.send(PAGE, {"address": BOB}))
    assert ("Erase again" in page, "Audit trail, 8 rows, 5 of them since the erasure" in page) == (True, True), page
    assert run("erase_person", "acme", BOB).status == 0
    assert BOB not in "".join(map("".join, told(desk)))
    assert "Nothing is left to be erased" in run("erase_person", "acme", BOB).err


def test_who_was_erased_before_moments_were_kept_stays_under_the_pseudonym_in_all_rows(desk: World) -> None:
    tenant = tenant_directory.get(desk.tenants["acme"].tenant_id)
    stored = json.loads(tenant.erased)
    del stored["at"]
    transaction = Transaction()
    transaction.update(tenant, [TenantItem.erased.set(json.dumps(stored))])
    PLATFORM.transact(transaction)
    assert told(desk) == [[ERASED] * 8] * 3
