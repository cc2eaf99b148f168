"""Operators decide about letters to no desk without seeing a word of them."""

from __future__ import annotations

import pytest

from tenants.audit_trail import recording
from tests.support.commands import run
from tests.support.letters_in import DOMAIN, come_in, drain, letter, objects, rows, unclaimed
from tests.support.operators import Operator, calls, make_operator, text_of
from tests.support.world import World
from tickets.letters import ledger
from tickets.letters import unclaimed as rules

PAGE = "/admin/letters/"
SECRET = "It burns since noon."


@pytest.fixture
def root(mail: World) -> Operator:
    make_operator()
    return Operator.signed_in()


@pytest.fixture
def name(mail: World) -> str:
    return come_in(letter(body=SECRET), f"acne@{DOMAIN}")


def test_the_page_has_date_size_and_recipients_and_no_word_of_the_letter(root: Operator, name: str) -> None:
    with calls() as made:
        page = root.get(PAGE)
    says = text_of(page)
    assert f"acne@{DOMAIN}" in says
    assert "bytes" in says or "KB" in says
    for word in (SECRET, "The printer is on fire", "zoe@customer.example", "Zoe"):
        assert word not in page.content.decode()
    assert len(made) <= 2, "no read of any table but the operator's own identity"


def test_a_letter_that_is_handed_to_a_desk_is_filed_there_and_its_trail_says_why(
    mail: World, root: Operator, name: str
) -> None:
    typed = {"letter": name, "desk": " Acme ", "reason": "They had a typo on their cards.", "deliver": "1"}
    answer = root.post(PAGE, typed, follow=True)
    assert "1 letter handed to Acme" in text_of(answer)
    assert unclaimed() == []
    drain()
    (row,) = rows(mail)
    assert (row.state, row.sender) == (ledger.FILED, "zoe@customer.example")
    assert rows(mail, "globex") == []
    trail = text_of(mail.browser("alice").get("/acme/desk/audit/"))
    assert "They had a typo on their cards." in trail
    assert "handed to the desk the stray letter" in trail
    assert SECRET not in trail


def test_a_letter_that_was_handed_on_to_its_end_twice_is_filed_once(
    mail: World, root: Operator, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules.ObjectStore, "delete", lambda store, key: None)
    typed = {"letter": name, "desk": "acme", "reason": "A typo.", "deliver": "1"}
    for _ in range(2):
        assert root.post(PAGE, typed).status_code == 302
    monkeypatch.undo()
    drain()
    assert len(rows(mail)) == 1


def test_a_discarded_letter_is_gone_with_a_row_in_the_trail_of_the_platform(
    mail: World, root: Operator, name: str
) -> None:
    answer = root.post(PAGE, {"letter": [name, "gone"], "desk": "", "reason": "Spam.", "discard": "1"}, follow=True)
    assert "1 letter discarded." in text_of(answer)
    assert unclaimed() == []
    assert objects(mail) == []
    assert "There are none." in text_of(answer)
    assert "letters.discarded" in root.says(f"/admin/tenants/auditrow/?tenant_id={recording.PLATFORM}")


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"desk": "nowhere", "reason": "A typo.", "deliver": "1"}, "No desk has this name"),
        ({"desk": "", "reason": "A typo.", "deliver": "1"}, "No desk has this name"),
        ({"desk": "acme", "reason": " ", "deliver": "1"}, "reason"),
        ({"desk": "acme", "reason": "A typo.", "letter": "", "deliver": "1"}, "Choose at least one letter."),
        ({"desk": "", "reason": "", "discard": "1"}, "reason"),
    ],
)
def test_bad_input_says_why_keeps_what_was_typed_and_decides_nothing(
    mail: World, root: Operator, name: str, typed: dict[str, str], sentence: str
) -> None:
    sent: dict[str, object] = {"letter": name} | typed
    if not sent["letter"]:
        del sent["letter"]
    answer = root.post(PAGE, sent)
    assert answer.status_code == 422
    assert sentence.lower() in text_of(answer).lower()
    assert f'value="{typed["desk"]}"' in answer.content.decode() or not typed["desk"]
    assert ("checked" in answer.content.decode()) is ("letter" in sent)
    assert len(unclaimed()) == 1


@pytest.mark.parametrize("forged", ["../tenant/x", "a/b", "", "x" * 300])
def test_a_name_that_is_no_letters_reaches_no_other_object(mail: World, root: Operator, forged: str) -> None:
    come_in(letter())
    for button in ("deliver", "discard"):
        answer = root.post(PAGE, {"letter": forged, "desk": "globex", "reason": "No.", button: "1"}, follow=True)
        assert answer.status_code in (200, 404, 422)
    assert len(objects(mail)) == 1
    assert rows(mail, "globex") == []


def test_the_newest_are_shown_first_and_no_more_than_a_page(
    mail: World, root: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "SHOWN", 2)
    for n in range(3):
        come_in(letter(message_id=f"<{n}@customer.example>"), f"no{n}@{DOMAIN}")
    says = root.says(PAGE)
    assert says.count(f"@{DOMAIN}") == 2
    assert "There are more." in says


def test_the_daily_command_says_where_operators_decide(mail: World, name: str) -> None:
    assert "1 letter to addresses that no desk has" in run("reconcile_mail").out
    listed = run("reconcile_mail", "--unclaimed").out
    assert name in listed
    assert f"acne@{DOMAIN}" in listed
    assert SECRET not in listed
