"""The monthly letter: who gets it, that each figure is on the page it leads to, and what it proves."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail as django_mail
from django.core.mail import EmailMultiAlternatives

from delivery.timers.due_worker import DueWorker
from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.errors import Unavailable
from portal.load import incidents, spending
from portal.load.measurement import NoiseTally, TenantNotes
from portal.load.reporting import LoadReporter
from portal.load.spending import CostBatch
from portal.schema.registry import Role as ProcessRole
from tenants.audit_trail import chain, drills, recording
from tenants.audit_trail.drills import Drill, DrillResult
from tenants.audit_trail.recording import SYSTEM, AuditAction, AuditEntry
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.lifecycle import desk_settings
from tenants.membership import member_changes, own_profile
from tenants.membership.mail_choices import MailedReport
from tenants.sign_in.accounts import Profile
from tenants.tenancy.context import Role
from tenants.tenancy.stored import TenantItem
from tests.desk.test_cost import IDENTITY, spent
from tests.isolation_runs.test_isolation_runs import REPORT
from tests.support import embedded
from tests.support.commands import in_pool, run
from tests.support.folding import Follower, plant_all
from tests.support.world import Browser, World
from tickets.counting.contributions import BUCKET_NAMES, MISSED, MONTH, SOLVED, Part
from tickets.counting.months import MonthPlace, MonthScope
from tickets.desk import commenting, creating
from tickets.isolation_runs import platform_proofs
from tickets.isolation_runs.run_requests import HELD
from tickets.isolation_runs.stored import FORMER_RUNS, IsolationRunItem
from tickets.jobs.stored import past
from tickets.notices.report_turns import TURNS
from tickets.reports import mailing, monthly, report_mails
from tickets.ticket.fields import Status

PAGE = "/tickets/reports/letter/"
BASE = "https://desk.example"
FIRST = datetime(2026, 12, 1, 7, tzinfo=UTC)
MONTHS = ("2026-09", "2026-10", "2026-11")
NOVEMBER = {"first": datetime(2026, 11, 1, tzinfo=UTC), "end": datetime(2026, 12, 1, tzinfo=UTC)}
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
UNITS = 19.5  # of a letter: fifty rows of the trail, eleven Queries of next to nothing, and measuring three tickets
DRILL = Drill(DrillResult.RIGHT, tables=40, trails=3, tenants=2, tickets=5, took=90.0, lost=240.0)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOON
        monkeypatch.setattr(clock, "now", lambda: self.now)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Clock:
    settings.PORTAL_BASE_URL = BASE
    monkeypatch.setattr(monthly, "LEAST_DESKS", 2)
    return Clock(monkeypatch)


@pytest.fixture
def owner(world: World, at: Clock) -> Browser:
    """Alice, who has asked for the letter, on a desk of three tickets of November, one resolved."""
    alice = world.context("alice", "acme")
    for title in ("VPN", "Printer", "Mouse"):
        creating.create(alice, title=title)
    commenting.comment(world.context("bob", "acme"), 1, body="Done.", then=Status.RESOLVED)
    Follower().fold()
    add_entries(world, 12)
    drills.record(DRILL, by=SYSTEM)
    platform_proofs.record(REPORT)
    for at_noon in (NOON, NOON + 20 * DAY):
        begun = clock.stamp(at_noon)
        attack = IsolationRunItem(
            past(FORMER_RUNS, alice.tenant_id), begun, tenant_id=alice.tenant_id, slug="acme", title="Acme", state=HELD,
            run_id=begun, by_id=alice.user_id, by_email="alice@example.com", attacker="f" * 32, tried=2000, total=2000,
            begun_at=begun, ended_at=begun,
        )  # fmt: skip
        PLATFORM.put(attack)
    spending.write(CostBatch(alice.tenant_id, "2026-11-20", Counter({"w:Support.Tickets": 4e6})), "platform")
    browser = world.browser("alice", "acme")
    assert "in the morning of the first" in choose(browser).content.decode()
    return browser


def choose(browser: Browser, answer: str = "yes", *, follow: bool = True) -> Any:
    wish: dict[str, object] = {"report": "monthly_letter", "mail": answer}
    return browser.send("/tickets/reports/mail/", wish, follow=follow)


def add_entries(world: World, count: int) -> None:
    for number in range(count):
        recording.record(
            AuditEntry(world.tenants["acme"].tenant_id, AuditAction.RECORD_ADDED, SYSTEM, "thing", f"{number}")
        )


def work() -> None:
    DueWorker().turn(lambda: True)


def letters() -> list[EmailMultiAlternatives]:
    return [one for one in django_mail.outbox if isinstance(one, EmailMultiAlternatives) and "letter of" in one.subject]


def told(at: datetime, role: ProcessRole = "platform", **tallies: NoiseTally) -> None:
    """A process did this for these tenants in a minute."""
    notes = TenantNotes(clock=at.timestamp)
    for tenant_id, tally in tallies.items():
        notes.note(tenant_id, tally)
    LoadReporter(notes, kind="web", role=role).turn(last=True)


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


# --- the mail ---


def test_each_figure_of_the_mail_is_on_the_page_that_its_link_leads_to(world: World, owner: Browser, at: Clock) -> None:
    told(NOON, **{world.tenants["globex"].tenant_id: NoiseTally(refused=3)})
    november = Part(MONTH, str(MonthPlace(MonthScope.ALL, "2026-11", "")), 0)
    more = {
        "h.1.9": 4000,
        SOLVED: 3100,
        f"done.{BUCKET_NAMES[3]}": 2500,
        MISSED: 57,
        "rated.good": 613,
        "rated.bad": 87,
    }
    plant_all(world.context("alice", "acme"), {november: more})
    at.now = FIRST - MINUTE
    work()
    assert letters() == []
    at.now = FIRST + MINUTE
    work()
    (mail,) = letters()
    assert (mail.to, mail.subject) == (["alice@example.com"], "[Acme] The letter of November 2026")
    html = str(mail.alternatives[0][0])
    links = re.findall(rf'<b><a href="{BASE}([^"]+)"[^>]*>([^<]+)</a></b>', html)
    figures = dict(re.findall(r"^(.+?): ([^:(\n]+?)(?: \(|$)", str(mail.body), re.MULTILINE))
    numbers = {"Opened": "4,003", "Resolved": "2,501", "Still unresolved": "902", "Missed a target": "57"}
    assert (numbers | {"Rated: Good": "613", "Rated: Bad": "87"}).items() <= figures.items()
    assert figures["Overload by other desks, not felt by yours"] == "up to 10 minutes"
    assert figures["Last restore drill"] == "20 Nov 2026, all right"
    assert figures["Costs"].startswith("$")
    assert figures["Attack on this desk, nothing got through"] == "2,000 attempts"
    assert figures["Last attack by the operators, nothing got through; broken layers noticed"] == "1 of 2"
    assert len(links) == 12
    for url, figure in links:
        answer = owner.get(unescape(url).partition("#")[0])
        assert answer.status_code == 200, url
        assert re.search(rf"(?<!\d){re.escape(figure)}(?!\d)", text_of(answer.content.decode())), (url, figure)
        assert f"{BASE}{unescape(url)}" in str(mail.body)


@pytest.mark.parametrize("off", [-DAY, timedelta(), DAY])
def test_nobody_gets_a_month_twice_whatever_clock_sends_it_again(
    off: timedelta, world: World, owner: Browser, at: Clock
) -> None:
    at.now = FIRST + MINUTE
    work()
    at.now += off
    choose(owner)
    for _ in range(2):
        mailing.come_due(world.context("alice", "acme"), "month", "2026-12-01", read=report_mails.READ)
        work()
    assert len(letters()) == 1
    at.now = FIRST + 31 * DAY + MINUTE
    work()
    assert [mail.subject[-13:] for mail in letters()] == ["November 2026", "December 2026"]


def test_a_desk_that_has_moved_west_meanwhile_gets_the_letter_when_its_month_is_over(
    world: World, owner: Browser, at: Clock
) -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Honolulu"):
        desk = world.context("alice", "acme")
        desk_settings.change_defaults(desk, values={"time_zone": zone}, by=SYSTEM)
        if zone == "Pacific/Kiritimati":
            choose(owner)
    at.now = datetime(2026, 11, 30, 17, 1, tzinfo=UTC)  # 7:01 of the first there, and of the last day here
    work()
    assert letters() == []
    at.now = datetime(2026, 12, 1, 17, 1, tzinfo=UTC)
    work()
    assert len(letters()) == 1


def test_after_an_outage_of_weeks_the_letter_is_not_sent_and_the_next_one_comes(owner: Browser, at: Clock) -> None:
    at.now = FIRST + 25 * DAY
    work()
    assert letters() == []
    at.now = FIRST + 31 * DAY + MINUTE
    work()
    assert len(letters()) == 1


def test_admins_cannot_ask_for_it_and_an_owner_who_is_one_no_more_gets_none(
    world: World, owner: Browser, at: Clock
) -> None:
    tenant_id, bob_id = world.tenants["acme"].tenant_id, world.users["bob"].id
    member_changes.set_role(user_id=bob_id, tenant_id=tenant_id, role=Role.OWNER, seen=Role.AGENT, by=SYSTEM)
    choose(world.browser("bob", "acme"))
    member_changes.set_role(user_id=bob_id, tenant_id=tenant_id, role=Role.ADMIN, seen=Role.OWNER, by=SYSTEM)
    bob = world.browser("bob", "acme")
    assert choose(bob, follow=False).status_code == 403
    assert bob.get(PAGE).status_code == 403
    assert "Monthly letter" not in bob.get("/tickets/reports/").content.decode()
    at.now = FIRST + MINUTE
    work()
    assert [mail.to for mail in letters()] == [["alice@example.com"]]


def test_a_link_in_the_mail_stops_the_letter_alone_and_takes_that_back(owner: Browser, at: Clock) -> None:
    owner.send("/tickets/reports/mail/", {"mail": "yes"})
    at.now = FIRST + MINUTE
    work()
    (mail,) = letters()
    (url,) = re.findall(rf"To stop it: {BASE}(\S+)", str(mail.body))
    stranger = Browser()
    assert "A month is over: its letter" in stranger.get(url).content.decode()
    assert stranger.post(url, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert "Get the monthly letter by mail" in owner.get(PAGE).content.decode()
    assert "Stop the weekly numbers" in owner.get("/tickets/reports/").content.decode()
    stranger.post(url, {"change": "undo"})
    assert "Stop the monthly letter" in owner.get(PAGE).content.decode()


def test_the_letter_is_in_the_language_of_its_reader(world: World, owner: Browser, at: Clock) -> None:
    alice = world.users["alice"]
    own_profile.change(alice.id, name=alice.name, profile=Profile(language="de"), by=SYSTEM)
    at.now = FIRST + MINUTE
    work()
    mail = django_mail.outbox[-1]
    assert mail.subject == "[Acme] Der Brief für November 2026"
    assert "Eröffnet: 3 (davor: 0)" in str(mail.body)


@pytest.mark.parametrize(
    ("now", "zone", "at_utc"),
    [
        ("2026-11-24T10:00:00+00:00", "UTC", "2026-12-01T07:00:00+00:00"),
        ("2026-12-01T06:59:59+00:00", "UTC", "2026-12-01T07:00:00+00:00"),
        ("2026-12-01T07:00:00+00:00", "UTC", "2027-01-01T07:00:00+00:00"),
        ("2027-01-31T12:00:00+00:00", "Europe/Berlin", "2027-02-01T06:00:00+00:00"),
        ("2027-03-30T12:00:00+00:00", "Europe/Berlin", "2027-04-01T05:00:00+00:00"),
        ("2026-11-30T16:00:00+00:00", "Pacific/Kiritimati", "2026-11-30T17:00:00+00:00"),
    ],
)
def test_the_next_turn_is_the_first_at_seven_by_the_clocks_of_the_desk(now: str, zone: str, at_utc: str) -> None:
    first, moment = TURNS[MailedReport.MONTHLY].next(datetime.fromisoformat(now), zone)
    assert (first.day, moment.isoformat()) == (1, at_utc)


# --- the page ---


def test_the_page_has_the_months_that_are_over_by_their_addresses(owner: Browser, at: Clock) -> None:
    assert "The letter of October 2026" in owner.get(PAGE).content.decode()
    at.now = FIRST
    page = owner.get(PAGE)
    assert page.context["month"] == "2026-11"
    assert owner.get(page.context["previous"]).context["title"] == "October 2026"
    for month in ("2026-12", "2027-01", "1950-01", "now"):
        answer = owner.get(PAGE, {"month": month})
        assert (answer.status_code, f'value="{month}"' in answer.content.decode()) == (400, True)


def test_a_letter_of_a_month_before_the_desk_says_why_it_is_nearly_empty(
    world: World, owner: Browser, at: Clock
) -> None:
    PLATFORM.update(
        TenantItem(world.tenants["acme"].tenant_id), [TenantItem.created_at.set("2026-10-31T23:30:00.000000Z")]
    )
    at.now = FIRST
    told = {month: "This desk was opened on" in owner.get(PAGE, {"month": month}).content.decode() for month in MONTHS}
    assert told == {"2026-09": True, "2026-10": False, "2026-11": False}


def test_a_letter_costs_the_same_for_an_audit_trail_of_any_length(world: World, owner: Browser, at: Clock) -> None:
    add_entries(world, 60)
    at.now = FIRST
    before = spent(owner, PAGE)
    add_entries(world, 60)
    at.now = FIRST + 20 * DAY
    after = spent(owner, f"{PAGE}?month=2026-11")
    assert (before.trips, after.trips) == (3, 3)
    assert (before.read_units, after.read_units) == (IDENTITY + UNITS, IDENTITY + UNITS)


def test_a_letter_speaks_of_costs_and_ratings_where_there_are_some_and_of_an_empty_trail_as_one(
    owner: Browser, at: Clock
) -> None:
    october = text_of(owner.get(PAGE, {"month": "2026-10"}).content.decode())
    assert not any(words in october for words in ("Costs are those", "Rated:", "This line stands for"))
    assert "the audit trail had no entry yet" in october
    checked = owner.get(owner.get(PAGE, {"month": "2026-10"}).context["head_url"]).content.decode()
    assert "There was no entry before 1 Nov 2026" in text_of(checked)
    at.now = FIRST
    november = owner.get(PAGE).content.decode()
    assert "Costs are those of the month in UTC." in november
    assert re.search(r'month=2026-10">0</a>', november), "the numbers of the month before lead to its report"
    assert ">Dashboard</a>" in november.partition('aria-current="page"')[2][:200]


# --- the head of the audit trail ---


@pytest.fixture
def head(world: World, owner: Browser, at: Clock) -> chain.Head:
    at.now = FIRST
    return monthly.read(world.context("alice", "acme"), "2026-11").head


def rows_of(world: World) -> list[dict[str, Any]]:
    return [one for one in in_pool(AUDIT) if one["tenant_id"]["S"] == world.tenants["acme"].tenant_id]


def last_row(world: World) -> dict[str, Any]:
    """The last row of a chain partition, which a head names."""
    return max(rows_of(world), key=lambda one: int(one["sequence"]["N"]))


def rewritten(world: World) -> None:
    """Somebody alters the first row of a chain partition and calculates all that follow anew, and the end."""
    rows = rows_of(world)
    partition = rows[0]["partition"]["S"]
    previous = ""
    for row in sorted(rows, key=lambda one: int(one["sequence"]["N"])):
        if row["partition"]["S"] == partition:
            row |= {"action": {"S": "session.started"}, "previous": {"S": previous}}
            previous = chain.hash_of(row)
            row["hash"] = {"S": previous}
            embedded.wire().call("PutItem", TableName=AUDIT.full_name, Item=row)
    for end in in_pool(CHAINS):
        if (end["tenant_id"], end["partition"]["S"]) == (rows[0]["tenant_id"], partition):
            embedded.wire().call("PutItem", TableName=CHAINS.full_name, Item=end | {"hash": {"S": previous}})


def altered(world: World) -> None:
    row = last_row(world) | {"actor_email": {"S": "mallory@example.com"}}
    embedded.wire().call("PutItem", TableName=AUDIT.full_name, Item=row)


def removed(world: World) -> None:
    row = last_row(world)
    embedded.wire().call("DeleteItem", TableName=AUDIT.full_name, Key={name: row[name] for name in AUDIT.key_names})


def test_a_head_is_the_same_later_and_in_the_trail_as_long_as_nobody_changes_it(
    world: World, owner: Browser, head: chain.Head, at: Clock
) -> None:
    at.now = FIRST + 40 * DAY
    add_entries(world, 3)
    assert owner.get(PAGE, {"month": "2026-11"}).context["head"] == head
    assert head.rows == sum(row["timestamp_event_id"]["S"] < "2026-12" for row in rows_of(world))
    page = text_of(owner.get("/desk/audit/", {"head": f" {head.text} "}).content.decode())
    assert f"The head fits. It stands for {head.rows} entries before 1 Dec 2026" in page
    ended = run("verify_audit", "--tenant", "acme", "--head", head.text)
    assert (ended.status, f"the {head.rows} entries before" in ended.out) == (0, True), ended.err


@pytest.mark.parametrize("tampered", [altered, removed, rewritten])
def test_a_trail_that_was_changed_behind_a_letter_is_told_by_its_head(
    tampered: Any, world: World, owner: Browser, head: chain.Head
) -> None:
    tampered(world)
    assert "This head does not fit." in owner.get("/desk/audit/", {"head": head.text}).content.decode()
    ended = run("verify_audit", "--tenant", "acme", "--head", head.text)
    assert (ended.status, "not of the head" in ended.err) == (1, tampered is not altered)
    assert run("verify_audit", "--tenant", "acme").status == (0 if tampered is rewritten else 1)


def test_an_entry_that_is_put_in_later_with_an_earlier_moment_is_told_by_the_head(
    world: World, owner: Browser, head: chain.Head, at: Clock
) -> None:
    at.now = NOON
    add_entries(world, 1)
    at.now = FIRST
    assert chain.verify(world.tenants["acme"].tenant_id).findings == []
    assert "This head does not fit." in owner.get("/desk/audit/", {"head": head.text}).content.decode()
    ended = run("verify_audit", "--tenant", "acme", "--head", head.text)
    assert (ended.status, "not of the head" in ended.err) == (1, True)


@pytest.mark.parametrize("text", ["x", "20261201T000000Z.1-2", "20269901T000000Z.1-2." + "0" * 32, "9" * 5000])
def test_what_is_no_head_is_refused_in_words(text: str, owner: Browser) -> None:
    assert "This is no head of an audit trail." in owner.get("/desk/audit/", {"head": text}).content.decode()
    assert "This is no head of an audit trail" in run("verify_audit", "--tenant", "acme", "--head", text).err


def test_the_head_of_another_desk_is_not_in_the_trail(world: World, owner: Browser, head: chain.Head) -> None:
    charlie = world.browser("charlie", "globex")
    assert "This head does not fit." in charlie.get("/desk/audit/", {"head": head.text}).content.decode()


# --- other desks ---

REFUSED, THROTTLED, SERVED = NoiseTally(refused=2), NoiseTally(throttles=1), NoiseTally(requests=9, units=9)


@pytest.mark.parametrize(
    ("own", "other", "unfelt", "own_minutes"),
    [
        (SERVED, REFUSED, 1, 0),
        (None, REFUSED, 1, 0),
        (REFUSED, REFUSED, 0, 1),
        (THROTTLED, REFUSED, 0, 1),
        (REFUSED, SERVED, 0, 1),
        (SERVED, THROTTLED, 0, 0),
    ],
)
def test_a_minute_counts_where_another_desk_was_refused_and_this_one_was_not_disturbed(
    own: NoiseTally | None, other: NoiseTally, unfelt: int, own_minutes: int, world: World
) -> None:
    acme, globex = (world.tenants[name].tenant_id for name in ("acme", "globex"))
    for _ in range(2):  # of two processes, or twice of one
        told(NOON, **{globex: other}, **({acme: own} if own else {}))
    found = incidents.read(world.context("alice", "acme").repository, **NOVEMBER)
    assert (found.unfelt, found.own_minutes) == (unfelt, own_minutes)


def test_a_minute_counts_for_nobody_where_it_is_not_known_who_was_disturbed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme, globex = (world.tenants[name].tenant_id for name in ("acme", "globex"))
    told(NOON, **{globex: REFUSED})

    def away(*args: Any, **options: Any) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(incidents, "_disturbed", away)
        told(NOON, **{acme: REFUSED})
    notes = TenantNotes(counters=1, clock=(NOON + MINUTE).timestamp)
    for tenant_id in (acme, globex):
        notes.note(tenant_id, REFUSED)
    LoadReporter(notes, kind="web", role="platform").turn(last=True)
    assert incidents.read(world.context("alice", "acme").repository, **NOVEMBER).unfelt == 0


@pytest.mark.parametrize(
    ("moment", "counted"),
    [
        (NOVEMBER["first"] - MINUTE, 0),
        (NOVEMBER["first"], 1),
        (NOVEMBER["end"] - MINUTE, 1),
        (NOVEMBER["end"], 0),
    ],
)
def test_a_minute_is_of_the_month_in_which_it_was(moment: datetime, counted: int, world: World) -> None:
    told(moment, **{world.tenants["globex"].tenant_id: REFUSED})
    assert incidents.read(world.context("alice", "acme").repository, **NOVEMBER).unfelt == counted


def test_of_others_the_page_says_rounded_minutes_alone_and_of_few_desks_nothing(
    world: World, owner: Browser, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    globex = world.tenants["globex"].tenant_id
    for number in range(11):
        told(NOON + number * MINUTE, **{globex: REFUSED})
    at.now = FIRST
    page = owner.get(PAGE).content.decode()
    assert "Not felt by your desk: up to 20 minutes" in page
    assert not any(word in page for word in (globex, "globex", "Globex"))
    monkeypatch.setattr(monthly, "LEAST_DESKS", 3)
    page = owner.get(PAGE).content.decode()
    assert "is not shown: with fewer than 3 desks" in page
    assert "up to 20 minutes" not in page


def test_another_time_zone_moves_no_minute_of_what_is_told_of_others(world: World, owner: Browser, at: Clock) -> None:
    """Else an owner who tries one after the other learns when others were refused, to a quarter of an hour."""
    desk = world.context("alice", "acme")
    for hour in range(-15, 16):
        told(NOVEMBER["first"] + timedelta(hours=hour), **{world.tenants["globex"].tenant_id: REFUSED})
    at.now = FIRST + DAY
    zones = ("UTC", "Pacific/Kiritimati", "Asia/Kathmandu", "Asia/Tehran", "Pacific/Pago_Pago")
    values = [replace(desk, defaults=json.dumps({"time_zone": zone})) for zone in zones]
    assert {tuple(monthly.read(one, month).unfelt for month in ("2026-10", "2026-11")) for one in values} == {(10, 30)}


def test_a_drill_of_after_the_month_is_not_in_its_letter(owner: Browser, at: Clock) -> None:
    at.now = FIRST + DAY
    drills.record(Drill(**asdict(DRILL) | {"result": DrillResult.WRONG}), by=SYSTEM)
    assert "20 Nov 2026, all right" in owner.get(PAGE, {"month": "2026-11"}).content.decode()
    assert "No restore drill was recorded" in owner.get(PAGE, {"month": "2026-10"}).content.decode()
