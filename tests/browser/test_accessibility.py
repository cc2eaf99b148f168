"""Every page and every designed state, in light and dark, wide and narrow: see page_audit.py for what that takes.

A form is looked at when it has been refused, which shows all of it and what is wrong besides; what opens beside the
rest of a page, together with the rest.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.tokens import default_token_generator
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from playwright.sync_api import Page, expect

from portal import clock
from portal.load.tenant_limiter import TenantLimiter
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import desk_settings, tenant_lifecycle
from tenants.membership import invitations, member_changes
from tenants.membership.mail_choices import MailKind
from tenants.sign_in import accounts, attempt_limits
from tenants.tenancy import tenant_middleware
from tenants.tenancy.context import Role
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import WAYS, audit, layout, show
from tests.browser.test_nothing_is_lost import give_address_to_globex
from tests.desk.test_outage import engine_down
from tests.load.test_tenant_limiter import HandClock
from tests.support import folding
from tests.support.operators import make_operator, membership_url
from tests.support.stored import put_all
from tests.support.targets import HOUR, set_targets
from tests.support.world import PASSWORD, World
from tickets.data.views import STEP
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import Wishes
from tickets.notices.following import MuteLink
from tickets.rules import rehearsal_job, rehearsal_requests, rule_changes
from tickets.saved_views import saved_views
from tickets.sla import tracking
from tickets.sla.policy import TargetRule
from tickets.snoozing import snoozing
from tickets.ticket import stored as ticket_keys
from tickets.ticket import ticket_events
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import CounterItem

pytestmark = pytest.mark.browser

LONG = "The importer stops with an unusually long and winding title " * 3
WORDY = f"""## What happens

It stops at row **512**, with `UnicodeDecodeError`; see <https://example.com/an/address/that/never/breaks/{"x" * 80}>.

| column | value | a third column that is wide | a fourth column that is wider still |
|---|---|---|---|
| one | two | three | four |

```
{"a line of a log that is far too long for any window that a person would open " * 4}
```

1. first
2. second

> quoted
"""
REFUSED = "[data-error-summary]"
TAGS = ["import", "unicode", "regression", "customer-waits", "a-tag-that-is-nearly-forty-characters"]


class Auditor:
    """Collects what audits find, so that one fault does not hide the next."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def look(
        self, page: Page, name: str, path: str | None = None, *, shows: str | None = None, within: str = "html"
    ) -> None:
        """Audit the page at `path`, or the one that is there as soon as it shows what it should."""
        if path:
            page.goto(path)
        if shows:
            expect(page.locator(shows)).to_be_visible()
            page.wait_for_load_state()
        self.found += audit(page, name, within)


@pytest.fixture
def auditor(witness: Witness) -> Auditor:
    return Auditor()


@pytest.fixture
def desk(world: World) -> World:
    """Four open tickets in Acme. Number 1 has everything, much of it; number 2 has nothing."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    creating.create(alice, title=LONG[:200], description=WORDY, priority=Priority.URGENT, tags=TAGS)
    world.tickets("acme", 3)
    changing.assign(alice, 1, to=alice.user_id, version=1)
    commenting.comment(bob, 1, body=WORDY, internal=True)
    commenting.comment(bob, 1, body=WORDY)
    return world


def test_signing_in(world: World, browse: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(404, 422, 429)
    page = browse()
    auditor.look(page, "sign in", "/login/")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.get_by_role("button", name="Show password").click()
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("type", "text")
    page.get_by_label("E-mail").fill("bob@example.com")
    page.get_by_role("button", name="Sign in").click()
    auditor.look(page, "sign in, refused", shows=REFUSED, within="#main")
    for _ in range(9):
        attempt_limits.begin(attempt_limits.sign_in("bob@example.com", address="127.0.0.1"))
    page.get_by_label("Password", exact=True).fill("wrong again")
    page.get_by_role("button", name="Sign in").click()
    auditor.look(page, "sign in, 429", shows="text=too many attempts", within="#main")
    page.goto("/password/reset/")
    page.get_by_role("button", name="Send the link").click()
    auditor.look(page, "reset, refused", shows=REFUSED)
    auditor.look(page, "reset, sent", "/password/reset/sent/")
    bob = world.users["bob"]
    uid, token = urlsafe_base64_encode(force_bytes(bob.pk)), default_token_generator.make_token(bob)
    auditor.look(page, "new password", f"/password/reset/{uid}/{token}/")
    auditor.look(page, "old link", f"/password/reset/{uid}/old/")
    assert not auditor.found


def test_choosing_a_tenant_and_the_account(world: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(403, 404, 422)
    world.add_user("Nora")
    for number in range(10):
        tenant = tenant_lifecycle.create(
            name=f"Tenant number {number} with a long name", owner=world.users["charlie"], by=SYSTEM
        )
        world.tenants[tenant.slug] = tenant
        world.join("alice", tenant.slug, Role.AGENT)
    auditor.look(person("nora"), "pick, none", "/tenants/")
    auditor.look(person("bob"), "pick, one", "/tenants/", within="#main")
    page = person("alice", "acme")
    auditor.look(page, "pick, twelve", "/tenants/", within="#main")
    page.get_by_label("Find a desk").fill("nothing like this")
    expect(page.get_by_text("No desk by that name.")).to_be_visible()
    auditor.look(page, "pick, none found", within="#main")
    page.goto("/account/")
    page.locator("#switcher > summary").click()
    expect(page.locator("#switcher .option-list .option")).to_have_count(12)
    auditor.look(page, "switcher", within="#switcher")
    page.locator("#user-menu > summary").click()
    auditor.look(page, "user menu", within="#user-menu")
    page.get_by_role("button", name="Change the password").click()
    auditor.look(page, "password, refused", shows=REFUSED, within="#main")
    person("alice", "globex")
    auditor.look(page, "profile", "/account/profile/")
    auditor.look(page, "sessions", "/account/sessions/")
    expect(page.get_by_role("button", name="End the session of")).to_have_count(1)
    auditor.look(page, "choices of mail", "/acme/desk/mail/")
    token = MuteLink(world.tenants["acme"].tenant_id, world.users["bob"].id, kind=MailKind.ENTERED).token
    auditor.look(page, "mute link", f"/mail/mute/{token}/")
    page.get_by_role("button", name="Stop this mail").click()
    auditor.look(page, "muted by a link")
    auditor.look(page, "broken mute link", f"/mail/mute/{token[:-2]}/")
    auditor.look(page, "404", "/nothing/here/")
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM)
    auditor.look(page, "suspended", "/tickets/")
    assert not auditor.found


@pytest.fixture
def crowd(desk: World) -> World:
    """Acme with a member of a long name, one who has left with a ticket, and invitations good and expired."""
    alice = desk.context("alice", "acme")
    desk.add_user("Nora")
    desk.join("nora", "acme", Role.AGENT)
    changing.assign(alice, 3, to=desk.users["nora"].id, version=1)
    address = f"{'long' * 12}@example.com"
    long_name = accounts.create(email=address, name="Maximiliana " * 7, password=PASSWORD, by=SYSTEM)
    desk.users["long"] = long_name
    desk.join("long", "acme", Role.ADMIN)
    by = Actor(alice.user_id, "alice@example.com", "192.0.2.7")
    invitations.invite_all(alice, addresses=[f"{'long' * 14}@example.com", "late@example.com"], role=Role.AGENT, by=by)
    folding.Follower().fold()
    return desk


def many_numbers(world: World) -> None:
    """Let Acme have given out more numbers of tickets than one request looks through."""
    repository = world.context("alice", "acme").repository
    put_all([CounterItem(repository.key(ticket_keys.counter), ticket_keys.COUNTER_TICKET, last=2 * STEP + 1)])


def test_the_desk_of_an_owner(crowd: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(400, 409, 422)
    page = person("alice", "acme")
    nora = crowd.users["nora"].id
    auditor.look(page, "members", "/desk/members/")
    auditor.look(page, "remove", f"/desk/members/{nora}/remove/")
    page.goto("/desk/invitations/")
    page.get_by_label("E-mail addresses").fill("good@example.org\nnot an address\nbob@example.com")
    page.get_by_role("button", name="Send invitations").click()
    auditor.look(page, "invitations, refused", shows=REFUSED)
    page.get_by_role("link", name="Revoke").first.click()
    auditor.look(page, "revoke", shows="text=stops working", within="#main")
    page.goto("/desk/settings/")
    page.get_by_role("textbox", name="Name", exact=True).fill("")
    page.get_by_label("Short name").fill("globex")
    page.get_by_role("button", name="Save the name").click()
    auditor.look(page, "settings, refused", shows=REFUSED)
    many_numbers(crowd)
    page.goto("/desk/settings/person/")
    page.get_by_label("E-mail address").fill(crowd.users["bob"].email)
    page.get_by_role("button", name="Search", exact=True).click()
    auditor.look(page, "a member's data", shows="text=This person is a member")
    page.goto("/desk/settings/person/")
    page.get_by_label("E-mail address").fill("late@example.com")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("button", name="Erase this person").click()
    auditor.look(page, "a person's data, refused", shows=REFUSED, within="#main")
    page.get_by_label("Type the address to confirm").fill("late@example.com")
    page.get_by_role("button", name="Erase this person").click()
    auditor.look(page, "a person's data, erased", shows="text=and is Erased person", within="#main")
    auditor.look(page, "monthly letter", "/tickets/reports/letter/")
    auditor.look(page, "audit", "/desk/audit/")
    auditor.look(page, "audit, refused", "/desk/audit/?first=2020-02-01&last=2020-01-01", within="#main")
    member_changes.unseed_member(nora, crowd.tenants["acme"].tenant_id)
    auditor.look(page, "former members", "/tickets/handover/")
    auditor.look(page, "hand on", f"/tickets/handover/{nora}/")
    removed = person("bob", "acme")
    member_changes.unseed_member(crowd.users["bob"].id, crowd.tenants["acme"].tenant_id)
    auditor.look(removed, "out", "/tickets/")
    assert not auditor.found


def test_an_invitation(crowd: World, browse: NewPage, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(404, 422)
    alice = crowd.context("alice", "acme")
    invited = ("new@example.org", "charlie@example.com")
    sent = invitations.invite_all(alice, addresses=invited, role=Role.AGENT, by=Actor(alice.user_id))
    new, known = (f"/invitation/{one.sent.secret}/" for one in sent if one.sent)
    visitor = browse()
    visitor.goto(new)
    visitor.get_by_role("button", name="Create account and join").click()
    auditor.look(visitor, "invitation, refused", shows=REFUSED)
    auditor.look(visitor, "invitation, has an account", known)
    auditor.look(visitor, "invitation, gone", "/invitation/nothing/")
    charlie = person("charlie")
    auditor.look(charlie, "invitation, somebody else", new)
    auditor.look(charlie, "invitation, signed in", known)
    auditor.look(charlie, "pick, invited", "/tenants/")
    assert not auditor.found


def test_the_pages_of_rules(desk: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(422)
    alice, page, rules = desk.context("alice", "acme"), person("alice", "acme"), "/desk/settings/rules/"
    auditor.look(page, "rules, none", rules, within="#main")
    page.goto(f"{rules}new/")
    page.get_by_role("button", name="Save").click()
    auditor.look(page, "rule, refused", shows=REFUSED)
    given = {"when": {"event": "created"}, "if": {"status": "any"}, "then": {"add_tags": ["wave"]}}
    rule = rule_changes.create(alice, "Wave", given, by=Actor(alice.user_id))
    auditor.look(page, "rules", rules, within="#main")
    auditor.look(page, "rule", f"{rules}{rule.rule_id}/", within="#main")
    auditor.look(page, "rehearsal, asked", f"{rules}{rule.rule_id}/rehearsal/", within="#main")
    rehearsal_requests.ask(alice, rule, by=Actor(alice.user_id))
    auditor.look(page, "rehearsal, running", f"{rules}{rule.rule_id}/rehearsal/", within="#main")
    rehearsal_job.follower(per_second=1e6).turn()
    auditor.look(page, "rehearsal, done", f"{rules}{rule.rule_id}/rehearsal/", within="#main")
    assert not auditor.found


def test_the_queue(desk: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(403, 409, 428)
    page = person("bob")
    auditor.look(page, "queue", "/tickets/")
    page.get_by_label("Select #4").check()
    page.get_by_text("Someone else", exact=True).click()
    expect(page.locator("#people-list .option")).to_have_count(2)
    auditor.look(page, "queue, selected, people", within=".list, .queue-head")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    auditor.look(page, "help", within="#help")
    page.keyboard.press("Escape")
    auditor.look(page, "queue, empty", "/tickets/?status=closed&resolver=me", within="#main")
    auditor.look(page, "people", "/tickets/people/")
    desk.tickets("acme", 50)
    page.goto("/tickets/")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("[data-row]")).to_have_count(5)
    auditor.look(page, "queue, second page", within=".pager")
    changing.change_status(desk.context("alice", "acme"), 1, to=Status.PENDING, version=2)
    for number in (1, 2, 3):
        page.get_by_label(f"Select #{number}", exact=True).check()
    page.get_by_role("group", name="Selected tickets").get_by_role("button", name="Closed").click()
    auditor.look(page, "bulk, refused", shows="h1:text('Nothing was changed')")
    page.goto("/tickets/")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("group", name="Selected tickets").get_by_role("button", name="Closed").click()
    auditor.look(page, "bulk, question", shows="h1:text('Close 49 tickets?')")
    page.get_by_role("button", name="Close 49 tickets").click()
    auditor.look(page, "bulk, undo", shows=".notice-undo")
    viewer = person("vera")
    auditor.look(viewer, "queue, viewer", "/tickets/")
    alice = desk.context("alice", "acme")
    saved_views.save(alice, "Urgent first", "status=any&sort=-priority", is_desks=True, by=SYSTEM)
    (view,) = saved_views.read(alice).desk
    saved_views.star(desk.context("bob", "acme"), view.id, on=True, by=SYSTEM)
    auditor.look(page, "views", "/tickets/views/")
    auditor.look(page, "view, new", "/tickets/views/new/?status=open&tag=vip")
    page.goto("/tickets/?status=any&sort=-priority")
    page.locator("#list-menu > summary").click()
    auditor.look(page, "queue, sorted, with views and its menu")
    page.locator("[data-row-link]").first.click()
    auditor.look(page, "ticket, its place in a list", shows=".way-place", within=".ticket-way")
    auditor.look(viewer, "403", "/tickets/new/")
    assert not auditor.found


def test_a_filtered_queue(desk: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(400)
    changing.change_status(desk.context("bob", "acme"), 4, to=Status.PENDING, version=1)
    page = person("bob")
    every_filter = (
        "status=unresolved&resolver=none&priority=urgent&tag=a-tag-that-is-nearly-forty-characters"
        "&created=2025-12-28..2026-01-03&reopened=..2026-11-20&commented=2026-01-01.."
    )
    auditor.look(page, "filtered, mixed", "/tickets/?status=any&created=2026-01-01..", shows=".tickets-mixed")
    page.locator("#filter-menu > summary").click()
    auditor.look(page, "filtered, form", shows="#filter-tag", within="#filter-menu")
    auditor.look(page, "filtered, nothing", f"/tickets/?{every_filter}", shows=".chips-note", within="#main")
    auditor.look(page, "filtered, refused", "/tickets/?created=yesterday")
    auditor.look(person("vera"), "filtered, viewer", "/tickets/?status=any")
    assert not auditor.found


def test_a_ticket(desk: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(409, 422)
    page = person("alice", "acme")
    auditor.look(page, "ticket, short", "/tickets/2/")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(REFUSED)).to_be_visible()
    page.get_by_text("Assign to someone else").click()
    expect(page.locator("#people-list .option")).to_have_count(2)
    auditor.look(page, "ticket, empty comment, people", within="#reply, .ticket-side")
    page.goto("/tickets/1/")
    page.get_by_role("checkbox", name="Internal note").check()
    auditor.look(page, "ticket, long, note")
    auditor.look(person("vera"), "ticket, viewer", "/tickets/1/")
    auditor.look(page, "assign", "/tickets/1/assign/")
    page.goto("/tickets/new/")
    page.get_by_label("Tags").fill("#, |")
    page.get_by_role("button", name="Create ticket").click()
    auditor.look(page, "new, refused", shows=REFUSED)
    auditor.look(page, "edit", "/tickets/1/edit/")
    bob = desk.context("bob", "acme")
    text = changing.read_description(bob, 1)
    changing.edit(bob, 1, version=2, title="Theirs", description=text, priority=Priority.LOW, tags=[])
    page.get_by_label("Title").fill("Mine")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bob Example changed this ticket")
    page.get_by_text("Combine both versions by hand").click()
    auditor.look(page, "conflict, by hand")
    assert not auditor.found


def test_targets_and_snoozing(world: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(422)
    alice = world.context("alice", "acme")
    set_targets(alice, TargetRule(priority=Priority.URGENT, first=60), TargetRule(first=HOUR, solution=8 * HOUR))
    (number,) = world.tickets("acme", 1)
    at, page = clock.parse(changing.read(alice, number).created_at) + timedelta(hours=2), person("alice", "acme")
    tracking.tell(alice, ticket_events.subject(number), "1", at)
    auditor.look(page, "a missed target", f"/tickets/{number}/", shows=".receipt")
    page.locator(".receipt summary").click()
    auditor.look(page, "its receipt", within="#activity")
    auditor.look(page, "a countdown", "/tickets/", shows=".due")
    auditor.look(page, "targets", "/desk/settings/targets/")
    page.get_by_label("Solution").first.fill("soon")
    page.get_by_label("Monday").fill("17:00-09:00")
    page.get_by_role("button", name="Save").click()
    auditor.look(page, "targets, refused", shows=REFUSED)
    auditor.look(page, "snooze", f"/tickets/{number}/snooze/")
    page.locator("[name=until]").fill("2020-01-01T09:00")
    page.get_by_role("button", name="Snooze", exact=True).click()
    auditor.look(page, "snooze, refused", shows="text=Choose a time between", within="#main")
    snoozing.snooze(alice, number, until=clock.now() + timedelta(hours=3))
    auditor.look(page, "snoozed", f"/tickets/{number}/")
    assert not auditor.found


def test_names_of_one_long_word_widen_no_page(world: World, person: NewPage) -> None:
    alice, word, found = world.context("alice", "acme"), "Bundesverwaltungsgericht" * 4, []
    creating.create(alice, title=f"{word}{word}"[:200], description="", tags=["mw" * 19])
    desk_settings.rename(alice, name=word[:80], slug="acme", by=SYSTEM)
    accounts.set_profile(alice.user_id, name=word[:80], profile=accounts.Profile(), by=SYSTEM)
    page = person("alice", "acme")
    for path in ("/tickets/", "/tickets/1/", "/desk/members/", "/account/", "/tickets/dashboard/"):
        page.goto(path)
        for scheme, size in WAYS:
            show(page, scheme, size)
            found += layout(page, f"{path}, {size['width']}")
    assert not found


def test_forms_that_wait(world: World, person: NewPage, auditor: Auditor, witness: Witness) -> None:
    witness.accepts(401, 409)
    world.tickets("acme", 1)
    page = person("alice", "acme")
    page.goto("/tickets/1/")
    page.get_by_label("Comment", exact=True).fill(WORDY)
    give_address_to_globex(world, instead="industries")
    page.get_by_role("button", name="Comment", exact=True).click()
    auditor.look(page, "409", shows="h1:text('That page belongs to Acme')")
    page.get_by_role("button", name="Switch to Acme and continue").click()
    auditor.look(page, "resume", shows="h1:text('Continue where you left off')")
    page.context.clear_cookies(name="pooldesk_session")
    page.get_by_role("button", name="Send it now").click()
    auditor.look(page, "401", shows="h1:text('Sign in')")
    assert not auditor.found


def test_forms_that_cannot_be_taken_now(
    world: World,
    person: NewPage,
    auditor: Auditor,
    witness: Witness,
    settings: LazySettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    witness.accepts(429, 503)
    settings.TENANT_RATES, hand = "standard=4", HandClock()
    monkeypatch.setattr(tenant_middleware, "limiter", TenantLimiter(clock=hand))
    world.tickets("acme", 1)
    page, vera = person("bob"), world.browser("vera", "acme")
    page.goto("/tickets/1/")
    page.get_by_label("Comment", exact=True).fill(WORDY)
    with engine_down(settings):
        page.get_by_role("button", name="Comment", exact=True).click()
        auditor.look(page, "503", shows="h1:text('We cannot reach the database right now')")
    assert 429 in (vera.get("/tickets/").status_code for _ in range(100))
    page.get_by_role("button", name="Try again").click()
    auditor.look(page, "429", shows="h1:text('Too much at once')")
    hand.now += 10
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text("It stops at row 512")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    assert not auditor.found


def test_the_past(desk: World, person: NewPage, auditor: Auditor) -> None:
    alice = desk.context("alice", "acme")
    changing.change(alice, 4, Wishes(resolver=desk.users["bob"].id))
    then = clock.stamp()
    changing.change(alice, 2, Wishes(title="On fire", priority=Priority.URGENT, status=Status.CLOSED))
    changing.change(alice, 4, Wishes(resolver=""))
    for name in ("bob", "vera"):
        member_changes.remove_member(alice, user_id=desk.users[name].id, by=SYSTEM)
    page = person("alice", "acme")
    for path, box, button in (
        ("tickets/past", "#2", "Restore the selected tickets"),
        ("desk/members/past", "Vera Example", "Restore the selected members"),
        ("tickets/2/past", "", "Restore this ticket"),
    ):
        auditor.look(page, path, f"/acme/{path}/?at={then}")
        if box:
            page.get_by_role("checkbox", name=box).check()
        page.get_by_role("button", name=button).click()
        auditor.look(page, f"{path}, before it is restored", shows="main button:text-is('Restore')")
    assert not auditor.found


def test_acting_as_a_member(desk: World, person: NewPage, auditor: Auditor) -> None:
    desk.users["root"] = make_operator()
    page, begins = person("root"), "Act as this member and change tickets"
    auditor.look(page, "a member in the admin", membership_url(desk, "bob", "acme"))
    page.get_by_role("button", name=begins).click()
    auditor.look(page, "the reason", shows="label:text('Reason')")
    page.get_by_label("Reason").fill("They cannot see ticket 1." + "x" * 250)
    page.get_by_role("button", name=begins).click()
    auditor.look(page, "the question before changes", shows="text=They cannot see ticket 1.")
    page.get_by_role("button", name=begins).click()
    auditor.look(page, "the queue of somebody else", shows="text=you act as Bob Example in Acme")
    auditor.look(page, "the admin during a visit", "/admin/")
    auditor.look(person("alice", "acme"), "access by the platform", "/acme/desk/settings/access/")
    page.go_back()
    page.get_by_role("button", name="Stop").click()
    expect(page).to_have_url(f"{page.url.split('/admin')[0]}{membership_url(desk, 'bob', 'acme')}")
    assert not auditor.found
