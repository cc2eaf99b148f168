"""A purge deletes a desk's letters as they came, too, and those of nobody else."""

from __future__ import annotations

from portal.dynamo.placement import POOL
from portal.schema import holdings
from tests.support.commands import run
from tests.support.letters_in import DOMAIN, come_in, letter, objects, rows
from tests.support.world import World
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
