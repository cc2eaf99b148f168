"""Letters go where their desk goes: into its file and out of it, and away when it is purged; and nobody else's do."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from portal.dynamo.placement import POOL
from portal.objects.object_store import ObjectStore
from portal.schema import holdings, row_forms
from tenants.lifecycle import tenant_export
from tenants.tenancy import context, tenant_directory
from tests.support.commands import run
from tests.support.letters_in import DOMAIN, come_in, letter, objects, rows
from tests.support.world import World
from tickets.letters import filing, ledger, stored
from tickets.purging.erasing import Eraser


def test_the_letters_of_a_purged_desk_are_deleted_and_counted(mail: World) -> None:
    come_in(letter(), f"acme@{DOMAIN}", f"globex@{DOMAIN}")
    come_in(letter(body="Another."))
    eraser = Eraser(mail.tenants["acme"].tenant_id, [POOL], sleep=lambda seconds: None)
    (kind,) = [one for one in holdings.holdings() if one.name == "letters as they came"]
    deleted: list[int] = []
    assert eraser.count(kind) == 2
    assert eraser.clear(kind, deleted=deleted.append) == 2
    assert (sum(deleted), eraser.count(kind)) == (2, 0)
    assert objects(mail, "acme") == []
    assert len(objects(mail, "globex")) == 1


def test_the_letters_of_an_erased_person_are_forgotten_and_not_filed_again(mail: World) -> None:
    come_in(letter())
    come_in(letter(sender="ann@human.example", message_id="<2@human.example>"))
    erased = run("erase_person", "acme", "zoe@customer.example", "--texts")
    assert erased.status == 0, erased.err
    (kept, forgotten) = rows(mail)
    assert (kept.sender, forgotten.sender, forgotten.subject) == ("ann@human.example", "", "")
    assert len(objects(mail)) == 1
    come_in(letter())
    assert [row.sender for row in rows(mail)] == ["ann@human.example", ""]


@pytest.mark.parametrize("texts", [(), ("--texts",)])
@pytest.mark.parametrize("header", ["Cc", "To"])
def test_a_filed_letter_that_went_to_an_erased_person_too_is_deleted_as_it_came(
    mail: World, header: str, texts: tuple[str, ...]
) -> None:
    lin = "lin@human.example"
    copied = {"Cc": f"Lin <{lin}>"} if header == "Cc" else {"to": f"acme@{DOMAIN}, {lin}"}
    come_in(letter(**copied))
    come_in(letter(sender="ann@human.example", message_id="<2@human.example>", subject="Another"))
    found = run("find_person", "acme", lin)
    assert "letter as it came, which went to them too" in found.out
    assert "Their text and their files are not searched" in found.err
    erased = run("erase_person", "acme", lin, *texts)
    assert erased.status == 0, erased.err
    other, deleted = rows(mail)
    assert (deleted.state, deleted.sender, deleted.object) == (ledger.FILED, "zoe@customer.example", "")
    assert [key.rpartition("/")[2] for key in objects(mail)] == [other.object]
    assert "which went to them too" not in run("find_person", "acme", lin).out
    bob = mail.browser("bob")
    address = f"/acme/letters/{stored.digest_of(deleted.pk)}/"
    page = bob.get(address).content.decode()
    assert "was deleted with the data of a person" in page
    assert "Download" not in page
    assert bob.get(f"{address}raw/").status_code == bob.get(f"{address}original/").status_code == 404
    assert "By mail" in bob.get("/acme/tickets/1/").content.decode()
    come_in(letter(**copied))
    assert len(rows(mail)) == len(objects(mail)) + 1 == 2


def test_a_desk_that_is_brought_in_has_its_letters_and_can_file_those_that_wait(mail: World, tmp_path: Path) -> None:
    come_in(letter())
    come_in(letter(message_id="<2@customer.example>", body="Buy."), spam="FAIL")
    before = [(row.state, row.subject, row.received_at, row.object) for row in rows(mail)]
    assert run("export_tenant", "acme", tmp_path / "acme.zip").status == 0
    come = run("import_tenant", tmp_path / "acme.zip", "--as", "acme-again", "--new-id")
    assert come.status == 0, come
    tenant = tenant_directory.find("acme-again")
    repository = context.for_system(tenant).repository
    there = ledger.letters(repository, limit=10)[0]
    assert [(row.state, row.subject, row.received_at, row.object) for row in there] == before
    assert ledger.counted(repository) == 1
    own = ObjectStore("tenant", tenant.tenant_id)
    assert b"It burns since noon." in own.get(stored.raw_key(tenant.tenant_id, there[-1].object), most=10_000)
    (waiting,) = [row for row in there if row.state == ledger.WAITING]
    filed = filing.file(tenant.tenant_id, waiting.object, approved=True)
    assert filed is not None
    assert (filed.state, filed.received_at) == (ledger.FILED, waiting.received_at)
    assert list(filed.sent_to) == [f"acme@{DOMAIN}"]
    assert ledger.counted(repository) == 0


def test_the_file_that_owners_make_has_the_letters_that_came_last(
    mail: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    come_in(letter(body="The first."))
    come_in(letter(message_id="<2@customer.example>", body="The second."))
    monkeypatch.setattr(stored, "OWNERS_BYTES", int(rows(mail)[0].size) + 10)
    tenant_export.export(mail.tenants["acme"], tmp_path / "desk.zip", with_objects=False, by=None)
    with zipfile.ZipFile(tmp_path / "desk.zip") as file:
        (name,) = [one for one in file.namelist() if "letters as they came" in one.replace("-", " ").replace("_", " ")]
        content = file.read(name)
    assert content.count(b'"last"') == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": {"S": "lost"}},
        {"ledger": {"S": "f" * 32 + "|LEDGER"}},
        {"object": {"S": "../other"}},
        {"waiting": {"S": "x"}},
    ],
)
def test_a_row_that_no_ledger_has_is_refused(mail: World, wrong: dict[str, Any]) -> None:
    come_in(letter())
    tenant_id = mail.tenants["acme"].tenant_id
    repository = mail.context("alice", "acme").repository
    item = ledger.get(repository, stored.digest_of(rows(mail)[0].pk)).serialize()
    (kind,) = [one for one in holdings.holdings() if one.name == "letters"]
    assert kind.forms is not None
    assert row_forms.fault(kind.forms(), stored.LETTERS, tenant_id, item) == ""
    assert row_forms.fault(kind.forms(), stored.LETTERS, tenant_id, item | wrong) != ""
