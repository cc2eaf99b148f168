"""The mail about the past week: who gets it, what it says, that nobody gets it twice, and how it ends."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.core import mail as django_mail
from django.core.mail import EmailMessage, EmailMultiAlternatives

from delivery.timers.due_worker import DueWorker
from portal import clock
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.membership import mail_choices, own_profile
from tenants.membership.mail_choices import MailedReport
from tenants.sign_in.accounts import Profile
from tests.support.folding import Follower
from tests.support.world import Browser, World
from tickets.desk import commenting, creating
from tickets.notices.report_turns import TURNS
from tickets.reports import mailing, report_mails
from tickets.ticket.fields import Status

PAGE = "/tickets/reports/"
MONDAY = datetime(2026, 11, 30, 7, tzinfo=UTC)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = MONDAY - timedelta(days=6)
        monkeypatch.setattr(clock, "now", lambda: self.now)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock, on the Tuesday before that Monday."""
    return Clock(monkeypatch)


@pytest.fixture
def owner(world: World, at: Clock) -> Browser:
    """Alice, who has asked for the mail, on a desk of two tickets of this week, one resolved."""
    alice = world.context("alice", "acme")
    for title in ("VPN", "Printer"):
        creating.create(alice, title=title)
    commenting.comment(world.context("bob", "acme"), 1, body="Done.", then=Status.RESOLVED)
    Follower().fold()
    browser = world.browser("alice", "acme")
    answer = browser.send(f"{PAGE}mail/", {"mail": "yes"}, follow=True)
    assert "You get the numbers of the week each Monday morning." in answer.content.decode()
    return browser


def work() -> None:
    DueWorker().turn(lambda: True)


def of_weeks() -> list[EmailMessage]:
    return [mail for mail in django_mail.outbox if "The week" in mail.subject or "Die Woche" in mail.subject]


def test_whoever_asks_for_it_gets_the_numbers_of_the_week_on_monday(owner: Browser, at: Clock) -> None:
    at.now = MONDAY - timedelta(minutes=1)
    work()
    assert of_weeks() == []
    at.now = MONDAY + timedelta(minutes=1)
    work()
    (mail,) = of_weeks()
    assert mail.to == ["alice@example.com"]
    assert mail.subject == "[Acme] The week: 2 opened, 1 resolved"
    for words in ("Opened: 2 (before: 0)", "Resolved: 1", "Unresolved now: 1", "Nobody has it now: 1"):
        assert words in mail.body
    days = "created=2026-11-23..2026-11-29"
    assert days in mail.body
    assert len(owner.get(f"/tickets/?status=any&{days}").context["page"]["rows"]) == 2


def test_nobody_gets_a_week_twice_and_the_next_week_comes_by_itself(world: World, owner: Browser, at: Clock) -> None:
    at.now = MONDAY + timedelta(minutes=1)
    for _ in range(2):
        mailing.come_due(world.context("alice", "acme"), "desk", "2026-11-30", read=report_mails.READ)
    assert len(of_weeks()) == 1
    at.now = MONDAY + timedelta(days=7, minutes=1)
    work()
    assert len(of_weeks()) == 2


def test_who_chooses_it_while_the_work_of_a_monday_finds_nobody_gets_the_next_one(
    world: World, at: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = mail_choices.want_report

    def after_the_work(*args: Any, **options: Any) -> None:
        at.now = MONDAY + timedelta(minutes=1)
        work()
        want(*args, **options)

    monkeypatch.setattr(mail_choices, "want_report", after_the_work)
    world.browser("alice", "acme").send(f"{PAGE}mail/", {"mail": "yes"})
    at.now = MONDAY + timedelta(days=7, minutes=1)
    work()
    assert len(of_weeks()) == 1


def test_after_a_long_outage_one_mail_comes_and_none_about_weeks_long_past(owner: Browser, at: Clock) -> None:
    at.now = MONDAY + timedelta(days=12)
    work()
    assert of_weeks() == []
    at.now = MONDAY + timedelta(days=14, minutes=1)
    work()
    assert len(of_weeks()) == 1


def test_a_desk_that_was_suspended_for_a_week_gets_its_mail_again_afterwards(
    world: World, owner: Browser, at: Clock
) -> None:
    tenant_id = world.tenants["acme"].tenant_id
    tenant_lifecycle.suspend(tenant_id, by=SYSTEM)
    at.now = MONDAY + timedelta(minutes=1)
    work()
    assert of_weeks() == []
    tenant_lifecycle.resume(tenant_id, by=SYSTEM)
    at.now = MONDAY + timedelta(days=7, minutes=1)
    work()
    assert len(of_weeks()) == 1


def test_the_text_of_the_mail_has_names_as_they_are_and_its_html_has_no_markup_of_theirs(
    world: World, owner: Browser, at: Clock
) -> None:
    alice = world.users["alice"]
    own_profile.change(alice.id, name="<b>Ann & %(desk)s", profile=Profile(), by=SYSTEM)
    at.now = MONDAY + timedelta(minutes=1)
    work()
    (mail,) = of_weeks()
    assert "Hello <b>Ann & %(desk)s," in mail.body
    assert isinstance(mail, EmailMultiAlternatives)
    assert "Hello &lt;b&gt;Ann &amp; %(desk)s," in str(mail.alternatives[0][0])


def test_agents_and_those_who_did_not_ask_get_none(world: World, owner: Browser, at: Clock) -> None:
    assert world.browser("bob", "acme").send(f"{PAGE}mail/", {"mail": "yes"}).status_code == 403
    owner.send(f"{PAGE}mail/", {"mail": "no"})
    at.now = MONDAY + timedelta(minutes=1)
    work()
    at.now = MONDAY + timedelta(days=7, minutes=1)
    work()
    assert of_weeks() == []


def test_a_link_in_the_mail_stops_it_with_one_click_and_takes_that_back(
    world: World, owner: Browser, at: Clock
) -> None:
    at.now = MONDAY + timedelta(minutes=1)
    work()
    (mail,) = of_weeks()
    url = re.search(r"/[\w/]*/?mute/[^\s>]+/", unescape(mail.body))
    assert url
    stranger = Browser()
    assert "A week is over: its numbers" in stranger.get(url[0]).content.decode()
    assert stranger.post(url[0], {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert "Get the weekly numbers by mail" in owner.get(PAGE).content.decode()
    stranger.post(url[0], {"change": "undo"})
    assert "Stop the weekly numbers" in owner.get(PAGE).content.decode()


def test_the_mail_is_in_the_language_of_its_reader(world: World, owner: Browser, at: Clock) -> None:
    alice = world.users["alice"]
    own_profile.change(alice.id, name=alice.name, profile=Profile(language="de"), by=SYSTEM)
    at.now = MONDAY + timedelta(minutes=1)
    work()
    (mail,) = of_weeks()
    assert mail.subject == "[Acme] Die Woche: 2 eröffnet, 1 gelöst"
    assert "Jetzt ungelöst: 1" in mail.body


@pytest.mark.parametrize(
    ("now", "zone", "at_utc"),
    [
        ("2026-11-24T10:00:00+00:00", "UTC", "2026-11-30T07:00:00+00:00"),
        ("2026-11-30T07:00:00+00:00", "UTC", "2026-12-07T07:00:00+00:00"),
        ("2026-11-30T05:59:00+00:00", "Europe/Berlin", "2026-11-30T06:00:00+00:00"),
        ("2026-03-23T12:00:00+00:00", "Europe/Berlin", "2026-03-30T05:00:00+00:00"),  # after the clocks changed
        ("2026-11-29T18:00:00+00:00", "Pacific/Kiritimati", "2026-12-06T17:00:00+00:00"),
    ],
)
def test_the_next_turn_is_monday_at_seven_by_the_clocks_of_the_desk(now: str, zone: str, at_utc: str) -> None:
    monday, at = TURNS[MailedReport.WEEKLY].next(datetime.fromisoformat(now), zone)
    assert at.isoformat() == at_utc
    assert monday.weekday() == 0
