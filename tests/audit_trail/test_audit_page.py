"""The audit trail as the admins of a desk read it: by time, person, thing and days, in pages, and as a file."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import timedelta
from typing import Any

import pytest

from portal import clock
from portal.spreadsheet import harmless
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tests.support.world import Browser, World

PAGE = "/desk/audit/"
EXPORT = "/desk/audit/export/"
ROBERT = Actor("b" * 32, "robert@example.com", "192.0.2.9")


def happen(
    world: World, count: int, *, by: Actor = ROBERT, about: str = "c" * 32, where: str = "acme", **more: Any
) -> None:
    """So many changes of somebody's role, numbered in order."""
    tenant_id = world.tenants[where].tenant_id
    entries = [
        AuditEntry(tenant_id, AuditAction.MEMBER_ROLE_CHANGED, by, "user", about, f"number {n}", **more)
        for n in range(count)
    ]
    for begin in range(0, count, 40):
        recording.record(*entries[begin : begin + 40])


def names(page: Any) -> list[str]:
    return [row.entity for row in page.context["rows"]]


def export(browser: Browser, **asked: str) -> list[list[str]]:
    answer = browser.send(EXPORT, dict(asked))
    assert answer.status_code == 200
    assert answer.streaming
    return list(csv.reader(io.StringIO(answer.getvalue().decode())))


# --- which rows ---


def test_the_newest_comes_first_with_who_from_where_and_what(world: World) -> None:
    happen(world, 3, before={"role": "agent"}, after={"role": "admin"})
    page = world.browser("alice", "acme").get(PAGE)
    assert names(page) == ["number 2", "number 1", "number 0", "Acme"]
    row = page.context["rows"][0]
    assert (row.actor, row.origin, row.changes) == ("robert@example.com", "192.0.2.9", [("role", "agent", "admin")])
    assert b"changed the role of" in page.content


def test_each_action_that_any_room_records_is_said_in_words() -> None:
    said = {action: action.sentence for action in AuditAction}
    assert not [action for action, words in said.items() if not words or action in words or "_" in words]


def test_long_addresses_break_behind_their_parts_and_markup_in_them_stays_text(world: World) -> None:
    address = "maximiliana.mustermann@department.example.com"
    by = Actor("b" * 32, address, "192.0.2.9")
    happen(world, 1, by=by, after={"address": "https://hooks.example.com/in?a=1&b=<script>alert(1)</script>"})
    page = world.browser("alice", "acme").get(PAGE).content.decode()
    assert "maximiliana.<wbr>mustermann@<wbr>department.<wbr>example.<wbr>com" in page
    assert (
        "https://<wbr>hooks.<wbr>example.<wbr>com/<wbr>in?<wbr>a=<wbr>1&amp;<wbr>b=&lt;script&gt;alert(1)&lt;/<wbr>script&gt;"
        in page
    )


def test_a_desk_reads_its_own_trail_alone(world: World) -> None:
    happen(world, 2, where="globex")
    alice = world.browser("alice", "acme")
    assert (
        names(alice.get(PAGE))
        == names(alice.get(f"{PAGE}?entity=tenant:{world.tenants['acme'].tenant_id}"))
        == ["Acme"]
    )
    assert names(alice.get(f"{PAGE}?actor={ROBERT.id}")) == []
    assert names(alice.get(f"{PAGE}?entity=tenant:{world.tenants['globex'].tenant_id}")) == []


def test_it_is_listed_by_person_and_by_thing(world: World) -> None:
    happen(world, 2, about="c" * 32)
    happen(world, 1, about="d" * 32, by=Actor("e" * 32, "eve@example.com"))
    alice = world.browser("alice", "acme")
    assert names(alice.get(f"{PAGE}?actor={ROBERT.id}")) == ["number 1", "number 0"]
    assert names(alice.get(f"{PAGE}?entity=user:{'d' * 32}")) == ["number 0"]
    assert b"by robert@example.com" in alice.get(f"{PAGE}?actor={ROBERT.id}").content


def test_days_are_in_utc_and_both_ends_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    for ago in (2, 1, 0):
        moment = (now - timedelta(days=ago)).replace(hour=23, minute=59, second=59)
        monkeypatch.setattr(clock, "now", lambda moment=moment: moment)
        happen(world, 1, about=f"{ago}" * 32)
    alice = world.browser("alice", "acme")
    yesterday = f"{(now - timedelta(days=1)).date()}"
    for asked, expected in (
        (f"first={yesterday}&last={yesterday}", ["1" * 32]),
        (f"last={yesterday}", ["1" * 32, "2" * 32]),
        (f"first={yesterday}&actor={ROBERT.id}", ["0" * 32, "1" * 32]),
    ):
        assert [row.entity_id for row in alice.get(f"{PAGE}?{asked}").context["rows"]] == expected


def test_choosing_days_keeps_the_person_and_clearing_takes_all_away(world: World) -> None:
    happen(world, 1)
    alice = world.browser("alice", "acme")
    page = alice.get(f"{PAGE}?actor={ROBERT.id}").content.decode()
    assert page.count(f'<input type="hidden" name="actor" value="{ROBERT.id}">') == 2, "in the filter and the export"
    assert "Clear filters" in page
    assert "Clear filters" not in alice.get(PAGE).content.decode()


@pytest.mark.parametrize(
    "asked",
    [
        "first=yesterday",
        "first=2026-02-30",
        "first=2026-02-01&last=2026-01-01",
        "actor=a%23b",
        "entity=user",
        "entity=%7C:x",
    ],
)
def test_what_cannot_be_asked_is_said_on_the_page(world: World, asked: str) -> None:
    page = world.browser("alice", "acme").get(f"{PAGE}?{asked}")
    assert page.status_code == 400
    assert page.context["rows"] == []
    assert b'role="alert"' in page.content


# --- pages ---


def test_pages_lead_to_the_end_and_back_and_skip_nothing(world: World) -> None:
    happen(world, 120)
    alice = world.browser("alice", "acme")
    for asked in ("", f"?actor={ROBERT.id}", f"?entity=user:{'c' * 32}"):
        page = alice.get(f"{PAGE}{asked}")
        assert page.context["previous_url"] is None
        seen, pages = names(page), [names(page)]
        while url := page.context["next_url"]:
            page = alice.get(f"{PAGE}{url}")
            seen += names(page)
            pages.append(names(page))
        assert seen == [f"number {n}" for n in range(119, -1, -1)] + ([] if asked else ["Acme"])
        back = [names(page)]
        while url := page.context["previous_url"]:
            page = alice.get(f"{PAGE}{url}")
            back.append(names(page))
        assert back == pages[::-1]


def test_a_page_stays_what_it_was_while_the_trail_grows(world: World) -> None:
    happen(world, 60)
    alice = world.browser("alice", "acme")
    older = alice.get(PAGE).context["next_url"]
    before = names(alice.get(f"{PAGE}{older}"))
    happen(world, 5)
    assert names(alice.get(f"{PAGE}{older}")) == before


def test_a_cursor_counts_only_in_the_list_and_the_desk_that_it_was_made_for(world: World) -> None:
    happen(world, 60)
    happen(world, 60, where="globex")
    alice, charlie = world.browser("alice", "acme"), world.browser("charlie")
    mine = alice.get(PAGE).context["next_url"].partition("after=")[2]
    theirs = charlie.get(PAGE).context["next_url"].partition("after=")[2]
    assert alice.get(f"{PAGE}?after={mine}").status_code == 200
    for forged in (theirs, mine[:-2] + "AA", "x", f"{mine}&actor={ROBERT.id}", f"{mine}&first=2020-01-01"):
        assert alice.get(f"{PAGE}?after={forged}").status_code == 400, forged


# --- as a file ---


def test_the_file_has_all_rows_of_the_list_while_it_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browsing, "_EXPORT_PAGE", 50)
    happen(world, 130, after={"role": "admin"})
    alice = world.browser("alice", "acme")
    head, *rows = export(alice)
    assert head[:4] == ["time (UTC)", "person", "origin", "action"]
    assert [row[5] for row in rows] == ["the audit trail", *(f"number {n}" for n in range(129, -1, -1)), "Acme"]
    assert rows[1][7] == "role: admin"
    assert [row[5] for row in export(alice, actor="b" * 32, last=f"{clock.now().date()}")[1:3]] == [
        "number 129",
        "number 128",
    ]
    assert len(export(alice, entity=f"user:{'c' * 32}")) == 131


def test_that_a_file_was_made_is_a_row_itself(world: World) -> None:
    alice = world.browser("alice", "acme")
    export(alice, actor=ROBERT.id)
    row = alice.get(PAGE).context["rows"][0]
    assert (row.action, row.actor, row.after) == ("export.made", "alice@example.com", {"actor": ROBERT.id})


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\r=1", " =1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x"]
FORMULAS += [
    f"{hidden}=1" for hidden in ("\ufeff", "\u200b", "\u2060", "\u00ad", "\u202e", "\u00a0", "\u3164", "\ufe0f")
]


@pytest.mark.parametrize("name", [*FORMULAS, *(f"x;{f}" for f in FORMULAS), 'x;"=1', "x; '=1", "x;y;=1"])
def test_no_cell_of_the_file_is_a_formula(world: World, name: str) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    by = Actor("b" * 32, f"{name}@example.com", name)
    recording.record(
        AuditEntry(tenant_id, AuditAction.TENANT_RENAMED, by, "tenant", tenant_id, name, after={"=name": name})
    )
    answer = world.browser("alice", "acme").post(PAGE + "export/", {"actor": "b" * 32})
    text = answer.getvalue().decode()
    for delimiter in ",;":  # the second is that of a spreadsheet in German or French
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            begins = [cell.lstrip(' "\u00a0\ufeff\u200b\u2060\u00ad\u202e\u3164\ufe0f')[:1] for cell in row]
            assert not {*begins} & {*"=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"}, row


def test_what_is_no_formula_is_exported_as_it_is() -> None:
    for text in ("a-b", "1+1=2", "alice@example.com", "x; y", "Müller & Söhne", "\ufeffx", ""):
        assert harmless(text) == text


def test_no_row_holds_a_secret(world: World, mailoutbox: list[Any]) -> None:
    from tenants.membership import mails

    alice = world.browser("alice", "acme")
    alice.send("/desk/invitations/", {"addresses": "nora@example.org", "role": "agent"})
    mails.wait_until_sent()
    secret = mailoutbox[0].body.partition("/invitation/")[2].partition("/")[0]
    Browser().post(
        f"/invitation/{secret}/", {"name": "Nora", "new_password1": "needle in hay", "new_password2": "needle in hay"}
    )
    text = "\n".join(",".join(row) for row in export(alice))
    assert "invitation.accepted" in text
    assert secret
    for hidden in (secret, "needle in hay", "argon2", alice.cookies["pooldesk_session"].value):
        assert hidden not in text


@pytest.mark.parametrize(
    ("stored", "english", "german"),
    [
        ("order of fields", "order of fields", "Reihenfolge der Felder"),
        ("members of group_1", "members of group 1", "Mitglieder der Gruppe 1"),
        ("field text_1", "field text_1", "Feld text_1"),
        ("colour of in_stock", "colour of in_stock", "Farbe von in_stock"),
        ("absence of Bob Example", "absence of Bob Example", "Abwesenheit von Bob Example"),
        ("reply_hold", "reply hold", "Wartezeit von Antworten"),
    ],
)
def test_the_name_of_a_changed_value_is_in_the_readers_language_also_in_rows_of_former_times(
    world: World, stored: str, english: str, german: str
) -> None:
    happen(world, 1, before={stored: "Agent, Area"}, after={stored: "Area, Agent"})
    alice = world.browser("alice", "acme")
    for language, said in (("en", english), ("de", german)):
        page = alice.get(PAGE, HTTP_ACCEPT_LANGUAGE=language)
        assert f'<span class="desk-change break">{said}: <del' in page.content.decode()


@pytest.mark.parametrize(
    ("name", "stored", "german"),
    [
        ("second factor", "not demanded", "nicht verlangt"),
        ("member_limit", "none", "keine"),
        ("absence of Bob", "until 2026-12-01, to Dora", "bis 2026-12-01, an Dora"),
        ("targets", "3 rules, version 7", "3 Regeln, Fassung 7"),
        ("group group_1", "Billing · assigns by turn · default", "Billing · Zuweisung reihum · Standard"),
        (
            "kind kind_1",
            "Help · template of 2,000 characters · archived",
            "Help · Vorlage mit 2,000 Zeichen · archiviert",
        ),
        ("holidays", "DE BY, 12 days", "DE BY, 12 Tage"),
        ("field text_1", "archived · column", "archived · Spalte"),
        ("forms of Order", "no kind: asked; asked: not asked", "keine Art: gefragt; asked: nicht gefragt"),
        ("reason", "open", "open"),
        ("role", "agent", "Agent"),
        ("role", "owner", "Inhaber"),
        ("status", "open", "offen"),
        ("visibility", "public", "öffentlich"),
        ("text", "1,310 characters", "1,310 Zeichen"),
        ("because", "already a member", "schon Mitglied"),
        ("name", "open", "open"),
        ("name", "2026-13-99T99:99:99.000000Z", "2026-13-99T99:99:99.000000Z"),
    ],
)
def test_values_that_are_words_of_ours_are_in_the_readers_language_and_names_that_people_gave_are_not(
    world: World, name: str, stored: str, german: str
) -> None:
    happen(world, 1, before={}, after={name: stored})
    alice = world.browser("alice", "acme")
    for language, said in (("en", stored), ("de", german)):
        page = alice.get(PAGE, HTTP_ACCEPT_LANGUAGE=language).content.decode()
        assert f'<ins translate="no">{said}</ins>' in page.replace("<wbr>", "")


@pytest.mark.parametrize(
    ("name", "stored", "english", "german"),
    [
        (
            "scopes",
            "members:read, of:later",
            "Read who the members are; of:later",
            "Lesen, wer die Mitglieder sind; of:later",
        ),
        ("placement", "pool", "in the pool", "im gemeinsamen Bestand"),
        ("copy", "silo/berlin", "at silo/berlin", "in silo/berlin"),
        ("placement", "moon", "moon", "moon"),
        ("ticket_priority", "urgent", "Urgent", "Dringend"),
        ("language", "browser", "That of each person's browser", "Die des Browsers der jeweiligen Person"),
        ("colour of vip", "Red", "Red", "Rot"),
        ("on", "yes", "yes", "ja"),
    ],
)
def test_values_that_are_codes_are_said_by_the_labels_that_forms_have(
    world: World, name: str, stored: str, english: str, german: str
) -> None:
    happen(world, 1, before={}, after={name: stored})
    alice = world.browser("alice", "acme")
    for language, said in (("en", english), ("de", german)):
        page = alice.get(PAGE, HTTP_ACCEPT_LANGUAGE=language).content.decode()
        assert f'<ins translate="no">{said}</ins>' in html.unescape(page.replace("<wbr>", ""))


def test_each_entry_says_its_moment_once(world: World) -> None:
    happen(world, 1)
    page = world.browser("alice", "acme").get(PAGE).content.decode()
    rows = re.findall(r"<tr>\s*<td>(.*?)</tr>", page, re.DOTALL)
    assert [row.count("<time") for row in rows] == [1] * len(rows)
