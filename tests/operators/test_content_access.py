"""Operators see what a desk's people have written for a reason alone, which the desk's owners can read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pytest

from portal.errors import Forbidden
from portal.schema import keys
from portal.schema.holdings import StoredItem
from tenants.admin import account_admin
from tenants.audit_trail.recording import Actor
from tenants.audit_trail.stored import AUDIT
from tenants.impersonation import impersonating
from tenants.membership import mails, member_changes
from tenants.operators import content_access
from tenants.sign_in.stored import USERS
from tenants.tenancy.context import Role
from tests.isolation.test_outsider import OPERATOR_ROUTES
from tests.support import used_desk
from tests.support.commands import everything
from tests.support.operators import Operator, calls, make_operator, membership_url, text_of, user_url
from tests.support.stored import send
from tests.support.world import PASSWORD, Browser, World, account_of
from tickets.desk import lists
from tickets.ticket.stored import TICKETS

MARK = "zqmark"
MOST_PAGES = 400
TENANT: dict[str, str] = {}
# Attributes that people fill in with a single word, which no rule could tell from one of ours.
ONE_WORD = {"tags"}
# Ids, moments, digests, and words of the program such as `ticket.created`.
NO_TEXT = re.compile(
    r"[0-9a-f-]{8,}|\d{4}-\d\d-\d\d.*|[a-z0-9_.:/#-]*|[A-Z_]+(#.*)?|\[.*\]|pooldesk.*|whsec_.*", re.DOTALL
)
# What operators have typed, and what is the platform's: the names of desks, and their places.
NOT_THE_DESKS = {
    ("Platform.Directory", "title"), ("Platform.Directory", "reason"), ("Platform.Directory", "by"),
    ("Platform.Memberships", "tenant_name"), ("Tenants.Config", "name"),
}  # fmt: skip


@pytest.fixture
def root(world: World) -> Operator:
    make_operator()
    return Operator.signed_in()


# --- one desk with a mark in each of its texts ---


def marked(stored: StoredItem) -> tuple[dict[str, Any], set[str]]:
    """The item with a mark in each attribute that is a text, and the names of those."""
    keys = {*stored.table.key_names, *(name for index in stored.table.indexes for name in (index.hash, index.range))}
    keys -= {"email"}
    found: set[str] = set()

    def text(name: str, value: str) -> str:
        if value.startswith("{"):  # an object in JSON, such as the values before and after a change
            told = json.loads(value)
            return json.dumps({key: text(name, one) if isinstance(one, str) else one for key, one in told.items()})
        if name not in ONE_WORD and NO_TEXT.fullmatch(value):
            return value
        found.add(name)
        return f"{MARK}{value}" if "@" in value else f"{value} {MARK}"

    def within(name: str, typed: dict[str, Any]) -> dict[str, Any]:
        ((kind, value),) = typed.items()
        if kind == "S":
            return {"S": text(name, value)}
        if kind == "M":
            return {"M": {key: within(name, one) for key, one in value.items()}}
        return {"L": [within(name, one) for one in value]} if kind == "L" else typed

    of_others = {attribute for table, attribute in NOT_THE_DESKS if table == stored.table.name}
    item = {
        name: typed if name in keys or name in of_others else within(name, typed) for name, typed in stored.item.items()
    }
    return item, {f"{stored.table.name}.{name}" for name in found}


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """A used desk, called Umbrella now, with a mark in every text; how many items have one, by table and attribute."""
    used_desk.keep_to_its_minutes(monkeypatch)
    world = used_desk.prepared(tmp_path)
    counted = Counter[str]()
    for stored in used_desk.stored_of(world.tenants["acme"].tenant_id):
        item, names = marked(stored)
        counted.update(names)
        if names:
            send("PutItem", TableName=stored.table.full_name, Item=item)
    for account in accounts_of_members():
        item, names = marked(account)
        counted.update(names)
        send("PutItem", TableName=account.table.full_name, Item=item)
    TENANT["id"] = world.tenants["acme"].tenant_id
    make_operator()
    return counted


def accounts_of_members() -> Iterator[StoredItem]:
    """The accounts of people: names and addresses of members, which stand in the platform's own table."""
    for raw in everything(USERS):
        if raw["pk"]["S"].startswith("USER#") and raw.get("is_operator", {}).get("BOOL") is not True:
            yield StoredItem(USERS, raw)


def plain(address: str) -> str:
    """The address without what only orders or narrows a list."""
    parts = urlsplit(address)
    kept = [(n, v) for n, v in parse_qsl(parts.query) if n in ("tenant_id", "user_id", "tenant", "q", "status__exact")]
    return f"{parts.path}?{urlencode(kept)}" if kept else parts.path


def crawl(operator: Operator, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Every page of the admin that is found from the routes, the lists of this desk and the links on pages, with the
    pages that buttons lead to."""
    statuses = ("open", "pending", "on_hold", "resolved", "closed")
    waiting = [
        f"/admin/{page}/?tenant={used_desk.SLUG}" for page in ("queues", "deletions", "places", "shards", "search")
    ]
    waiting += [f"/admin/search/?tenant={used_desk.SLUG}&q={text}" for text in (MARK, "printer", "tell")]
    for model in (
        "tenants/membership",
        "tenants/invitation",
        "tenants/auditrow",
        "delivery/deaddelivery",
        "tickets/deadletter",
    ):
        waiting.append(f"/admin/{model}/?tenant_id={tenant_id}")
    waiting += [f"/admin/tickets/ticket/?tenant_id={tenant_id}&status__exact={status}" for status in statuses]
    waiting += [f"/{route}" for route in OPERATOR_ROUTES if "<" not in route]
    seen: set[str] = set()
    while waiting and len(seen) < MOST_PAGES:
        path = waiting.pop(0)
        if path in seen or "logout" in path:
            continue
        seen.add(path)
        page = operator.get(path)
        if page.status_code in (301, 302):
            waiting.append(urljoin(path, page["Location"]))
            continue
        text = page.content.decode()
        yield path, text
        if "text/html" not in page["Content-Type"]:
            continue
        links = (plain(urljoin(path, unescape(href))) for href in re.findall(r'<a [^>]*href="([^"]*)"', text))
        waiting += [link for link in links if link.startswith("/admin/")]
        for button in re.findall(r'<button [^>]*name="(_[a-z_]+)" value="1">[^<]* …</button>', text):
            asked = operator.post(path, {button: "1"})
            yield f"{path} {button}", asked.content.decode()
        for user_id in set(re.findall(r"/admin/tenants/account/([0-9a-f]{32})/", text)):
            waiting += [f"/admin/tenants/{kind}/?user_id={user_id}" for kind in ("session", "membership")]
    assert not waiting, "more pages than this test looks at"


def test_pages_show_texts_of_a_desk_for_a_reason_alone_which_its_trail_has(marks: Counter[str]) -> None:
    planted = {"Support.Tickets.title", "Support.Tickets.body", "Admin.Users.email", "Audit.AdminActions.after"}
    assert planted | {"Platform.Users.email", "Tenants.Invites.email", "Events.DeadLetters.reason"} <= marks.keys()
    operator, walked = Operator.signed_in(), 0
    for path, text in crawl(operator, TENANT["id"]):
        assert MARK not in text.replace(f"q={MARK}", "").replace(f'value="{MARK}"', ""), path
        walked += 1
    assert walked > 80
    assert rows_of(TENANT["id"]) == []

    operator.open(used_desk.SLUG, reason="They cannot find ticket 1.")
    left = {"account", "membership", "invitation", "auditrow", "deaddelivery", "deadletter", "ticket"}
    pages = crawl(operator, TENANT["id"])
    while left:  # each kind shows its texts somewhere
        path, text = next(pages)
        if MARK in text.replace(f"q={MARK}", "") and path.count("/") > 3:
            left.discard(path.split("/")[3])
    (row,) = rows_of(TENANT["id"])
    assert "They cannot find ticket 1." in row["after"]["S"]


def rows_of(tenant_id: str) -> list[dict[str, Any]]:
    """What the desk's own trail says of access to its content."""
    return [
        raw
        for raw in everything(AUDIT)
        if raw["tenant_id"]["S"] == tenant_id and raw["action"]["S"] == "content.opened"
    ]


# --- reasons ---


def titles(operator: Operator, world: World, desk: str = "acme") -> bool:
    """Whether the operator sees the title of the desk's ticket."""
    tenant_id = world.tenants[desk].tenant_id
    return "Ticket 1" in operator.says(f"/admin/tickets/ticket/?tenant_id={tenant_id}&status__exact=open")


def test_the_owners_of_the_desk_read_who_looked_and_why(root: Operator, world: World) -> None:
    root.open("acme", reason="Alice asked about ticket 1.")
    owner = world.browser("alice", "acme")
    assert "may read the content of" in text_of(owner.get("/desk/audit/"))
    assert "root@example.com Alice asked about ticket 1. nobody could read" in text_of(
        owner.get("/desk/settings/access/")
    )
    (visit,) = impersonating.visits_page(world.context("alice", "acme")).visits
    assert (visit.member, visit.reason, visit.goes_on) == ("", "Alice asked about ticket 1.", True)


def test_access_is_to_one_desk_at_a_time(root: Operator, world: World) -> None:
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    root.open("acme")
    assert [titles(root, world, desk) for desk in ("acme", "globex")] == [True, False]
    root.open("globex")
    assert [titles(root, world, desk) for desk in ("acme", "globex")] == [False, True]


def test_access_ends_after_fifteen_minutes_or_at_a_click(
    root: Operator, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    root.open("acme")
    page = root.get(f"/admin/tickets/ticket/?tenant_id={world.tenants['acme'].tenant_id}&status__exact=open")
    assert "You see the content of Acme until" in text_of(page)
    root.post("/admin/content-access/", {"end": "1"})
    assert not titles(root, world)
    root.open("acme")
    now = content_access.time.time() + 15 * 60
    monkeypatch.setattr(content_access.time, "time", lambda: now - 2)
    assert titles(root, world)
    monkeypatch.setattr(content_access.time, "time", lambda: now + 1)
    assert not titles(root, world)


def test_another_operators_access_and_another_browsers_show_nothing(root: Operator, world: World) -> None:
    world.tickets("acme", 1)
    root.open("acme")
    make_operator("Ruth")
    assert not titles(Operator.signed_in("ruth@example.com"), world)
    assert not titles(Operator.signed_in(), world)


@pytest.mark.parametrize("reason", ["", "   ", "\u200b\u2060", "\u3164\u00a0"])
def test_a_reason_that_nobody_could_read_is_refused_at_its_field(root: Operator, world: World, reason: str) -> None:
    refused = root.post("/admin/content-access/", {"tenant": "acme", "reason": reason, "next": "/admin/"})
    assert (refused.status_code, "Say why: the audit trail keeps it." in text_of(refused)) == (422, True)
    assert rows_of(world.tenants["acme"].tenant_id) == []
    asked = root.post(membership_url(world, "bob", "acme"), {"_act_reading": "1", "reason": reason})
    assert asked.status_code == 422


def test_a_desk_that_does_not_exist_is_said_at_its_field(root: Operator) -> None:
    refused = root.post("/admin/content-access/", {"tenant": "nowhere", "reason": "Why not."})
    assert (refused.status_code, "There is no desk with this slug or id." in text_of(refused)) == (422, True)


@pytest.mark.parametrize("target", ["https://evil.example/admin/", "//evil.example/admin/", "/tickets/", "admin/"])
def test_the_way_back_leads_nowhere_else(root: Operator, world: World, target: str) -> None:
    sent = root.post("/admin/content-access/", {"tenant": "acme", "reason": "They asked.", "next": target})
    assert sent["Location"] == "/admin/content-access/"


def test_tickets_are_read_with_the_rights_of_a_viewer(
    root: Operator, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    roles: list[Role] = []
    page = lists.page
    monkeypatch.setattr(lists, "page", lambda tenant, **how: (roles.append(tenant.role), page(tenant, **how))[1])
    shown = root.get("/admin/tickets/ticket/?tenant_id=acme&status__exact=open")
    assert (shown.context["cl"].result_count, roles) == (2, [Role.VIEWER])


def test_a_search_reads_no_ticket_before_there_is_a_reason(root: Operator, world: World) -> None:
    world.tickets("acme", 3)
    with calls() as made:
        says = root.says("/admin/search/?tenant=acme&q=ticket")
    assert "Say why you need it" in says
    assert not any(call.table == TICKETS.full_name for call in made)


# --- accounts ---


def test_the_address_of_a_member_is_hidden_and_that_of_nobodys_member_is_the_platforms(
    root: Operator, world: World
) -> None:
    assert "bob@example.com" not in root.says(user_url(world, "bob"))
    world.add_user("Nora")
    assert "nora@example.com" in root.says(user_url(world, "nora"))
    assert "bob@example.com" in root.open("acme").says(user_url(world, "bob"))


def test_the_platforms_trail_names_members_for_a_reason_alone(root: Operator, world: World) -> None:
    world.add_user("Nora")
    for address in ("bob@example.com", "nora@example.com", "stranger@example.com"):
        Browser().sign_in(address, "a wrong password")
    new = {"new_password1": "quite another one", "new_password2": "quite another one"}
    world.browser("alice", "acme").post("/account/password/", {"old_password": PASSWORD, **new})
    root.act(user_url(world, "bob"), "_disable", reason="He lost his laptop.")
    pages = ["/admin/tenants/auditrow/?tenant_id=platform", user_url(world, "bob", "history/")]
    hidden, shown = " ".join(map(root.says, pages)), " ".join(map(root.open("acme").says, pages))
    others = ("nora@example.com", "stranger@example.com", "root@example.com, admin disabled the account of")
    assert [name for name in ("alice@example.com", "bob@example.com", "He lost his laptop") if name in hidden] == []
    assert [name for name in others if name not in hidden] == []
    assert [name for name in ("alice@example.com", "bob@example.com", "He lost his laptop") if name not in shown] == []


def test_an_operator_sets_no_password_of_anybodys(root: Operator, world: World) -> None:
    page = root.get(user_url(world, "bob"))
    assert 'type="password"' not in page.content.decode()
    root.post(user_url(world, "bob"), {"password1": "another pass 456", "password2": "another pass 456"})
    assert account_of("bob@example.com").password == world.users["bob"].password


def test_a_link_for_a_new_password_goes_to_the_person_with_the_reason_and_stands_in_each_desks_trail(
    root: Operator, world: World, mailoutbox: list[Any]
) -> None:
    root.act(user_url(world, "alice"), "_reset_link", reason="She lost her phone.")
    (mail,) = mailoutbox
    assert (mail.to, "She lost her phone." in mail.body) == (["alice@example.com"], True)
    link = re.search(r"http://testserver(/password/reset/\S+)", mail.body)
    assert link is not None
    new = {"new_password1": "quite another one", "new_password2": "quite another one"}
    assert Browser().post(link[1], new).status_code == 302
    assert Browser().sign_in("alice@example.com", "quite another one").status_code == 302  # type: ignore[attr-defined]
    assert "sent a link for a new password to" in text_of(world.browser("charlie", "globex").get("/desk/audit/"))
    trails = {raw["tenant_id"]["S"] for raw in everything(AUDIT) if raw["action"]["S"] == "user.reset_link_sent"}
    assert trails == {keys.PLATFORM, *(world.tenants[desk].tenant_id for desk in ("acme", "globex"))}


def test_no_link_is_sent_for_an_operators_account(root: Operator, world: World, mailoutbox: list[Any]) -> None:
    ruth = make_operator("Ruth")
    root.act(f"/admin/tenants/account/{ruth.id}/change/", "_reset_link", reason="Because.")
    with pytest.raises(Forbidden):
        account_admin.send(ruth.id, write=mails.password_link, reason="Because.", by=Actor("a" * 32))
    assert mailoutbox == []


def test_a_new_account_has_no_password_until_its_owner_chooses_one(
    root: Operator, world: World, mailoutbox: list[Any]
) -> None:
    root.fill("/admin/tenants/account/add/", email="dora@example.com", name="Dora")
    mails.wait_until_sent()
    (mail,) = mailoutbox
    assert mail.to == ["dora@example.com"]
    dora = account_of("dora@example.com")
    assert not dora.has_usable_password()


# --- memberships ---


def test_owners_are_told_by_mail_who_became_a_member_by_an_operator_and_why(
    root: Operator, world: World, mailoutbox: list[Any]
) -> None:
    world.add_user("Nora")
    values = {"who": "nora@example.com", "where": "acme", "role": "owner"}
    refused = root.fill("/admin/tenants/membership/add/", **values)
    assert refused.status_code == 422
    root.fill("/admin/tenants/membership/add/", **values, why="Alice left the company.")
    (mail,) = mailoutbox
    assert mail.to == ["alice@example.com"]
    assert "made Nora Example (nora@example.com) an owner in Acme." in mail.body
    assert "The reason given: Alice left the company." in mail.body
    mailoutbox.clear()
    root.fill(membership_url(world, "bob", "acme"), role="admin", why="Alice asked.")
    assert sorted(mail.to[0] for mail in mailoutbox) == ["alice@example.com", "nora@example.com"]


def test_an_operator_gives_no_role_to_their_own_account(root: Operator, world: World, mailoutbox: list[Any]) -> None:
    values = {"where": "acme", "role": "owner", "why": "I want to look."}
    refused = root.fill("/admin/tenants/membership/add/", who="root@example.com", **values)
    assert (refused.status_code, "Nobody gives a role to their own account" in text_of(refused)) == (403, True)
    me = account_of("root@example.com")
    member_changes.seed_member(me, world.tenants["acme"], Role.VIEWER)
    url = f"/admin/tenants/membership/{world.tenants['acme'].tenant_id}_2F{me.id}/change/"
    assert root.fill(url, role="owner", why="I want to look.").status_code == 403
    assert mailoutbox == []
