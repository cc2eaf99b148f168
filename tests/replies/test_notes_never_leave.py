"""Internal notes never leave the desk: no mail to anybody but its agents has a word of one, and no requester's page.

Two filters stand on each way that a note could take. Each is shown to hold alone, with the others taken away; and with
all of them taken away the same test finds the note in a mail, so that it would notice. A filter that is removed from
the code therefore fails a test here.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from email.message import EmailMessage as Letter
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client, override_settings

from delivery.outbox.stored import OUTBOX
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import context
from tenants.tenancy.context import Role
from tests.support import mailing
from tests.support.mail_receiver import MailReceiver
from tests.support.outbox import rows
from tests.support.sources import mentions
from tests.support.stored import send
from tests.support.world import World
from tickets.desk import changing, commenting
from tickets.notices import following, telling
from tickets.replies import mail_settings, public_entries, reply_delivering, ticket_links
from tickets.replies.public_entries import PublicEntry
from tickets.requesters import requesters
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem

SECRET = "Zebra"  # a word of each note, and of nothing else
AGENTS = {"alice@example.com", "bob@example.com"}
STEPS = ("comment", "note", "note and resolve", "reopen", "assign", "mention in a note", "title")


@pytest.fixture(autouse=True)
def by_the_outbox() -> Iterator[None]:
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        yield


@pytest.fixture
def desk(world: World, number: int, inbox: MailReceiver) -> World:
    """A requester's ticket that quotes all it can, and that agents and a viewer follow."""
    mail_settings.change(world.context("alice", "acme"), values={"history": 20}, version=0, by=SYSTEM)
    for who in ("alice", "vera"):
        person = world.context(who, "acme")
        following.follow(person, number, person.user_id)
    return world


def everything_in(letter: Letter) -> str:
    """Headers, and each part decoded."""
    texts = [f"{name}: {value}" for name, value in letter.items()]
    texts += [str(part.get_content()) for part in letter.walk() if not part.is_multipart()]
    return "\n".join(texts)


def leaks(inbox: MailReceiver) -> list[str]:
    """Who was told of a note and is no agent of the desk."""
    for _ in range(3):  # decisions first, then the mails that they gather
        mailing.carry()
    found = []
    for (_, recipients), letter in zip(inbox.envelopes, inbox.letters, strict=True):
        if SECRET in everything_in(letter):
            if set(recipients) <= AGENTS:
                assert "reply+" not in everything_in(letter), "an answer by mail is public, and would quote the note"
            found += [one for one in recipients if one not in AGENTS]
    return found


def page_of(world: World, number: int) -> str:
    """The requester's page as it is now, with all that it leads to."""
    bob = world.context("bob", "acme")
    ada = requesters.known(bob, changing.read(bob, number).requester)
    link = ticket_links.ticket_link(bob, changing.read(bob, number), ada, mail_settings.read(bob))
    address, pages = f"/r/{link.token}/", []
    for more in ("", "?before=x", "?rating=good"):
        pages.append(Client().get(address + more).content.decode())
    sent = {"body": "", "request_id": "1" * 32}  # a form that is refused shows the page as well
    pages.append(Client().post(f"{address}answer/", sent).content.decode())
    assert "The engine stops" in pages[0] or "Title" in pages[0], "there is a page to look at"
    return "\n".join(pages)


def note(world: World, number: int, text: str = "") -> None:
    body = f"# {SECRET}\n\n> {SECRET}\n\n**{SECRET}** {text}"
    commenting.comment(world.context("bob", "acme"), number, body=body, internal=True)


def act(world: World, number: int, step: str) -> None:
    bob = world.context("bob", "acme")
    summary = changing.read(bob, number)
    if step == "comment":
        commenting.comment(bob, number, body="We *look* into it.", cc=["grace@example.org"])
    elif step == "note":
        note(world, number)
    elif step == "note and resolve":
        then = Status.RESOLVED if summary.status == Status.OPEN else None
        commenting.comment(bob, number, body=f"{SECRET} did it.", internal=True, then=then)
    elif step == "reopen" and summary.status == Status.RESOLVED:
        changing.change_status(bob, number, to=Status.OPEN, version=int(summary.version))
    elif step == "assign":
        to = world.users["bob" if summary.resolver == world.users["alice"].id else "alice"].id
        changing.assign(bob, number, to=to, version=int(summary.version))
    elif step == "mention in a note":
        note(world, number, "@Vera Example, @Alice Example and ada@example.org")
    elif step == "title":
        changing.edit(bob, number, version=int(summary.version), title=f"Title {summary.version}")


@pytest.mark.parametrize("seed", range(12))
def test_no_history_of_a_ticket_lets_a_note_out(desk: World, number: int, inbox: MailReceiver, seed: int) -> None:
    for step in random.Random(seed).choices(STEPS, k=8):  # noqa: S311  # the same each time
        act(desk, number, step)
    act(desk, number, "comment")
    assert leaks(inbox) == []
    assert SECRET not in page_of(desk, number)
    assert any("grace@example.org" in recipients for _, recipients in inbox.envelopes), "somebody outside was told"


def test_a_row_of_the_outbox_that_names_a_note_sends_nothing(desk: World, number: int, inbox: MailReceiver) -> None:
    act(desk, number, "comment")
    note(desk, number)
    named = [row for row in rows() if any("entered" in str(event) for event in row.events)]
    comment_row, note_row = named[0], named[-1]
    raw = note_row.to_dynamodb_dict()
    raw["open"] = {"SS": [f"{len(note_row.events) - 1}/reply"]}
    send("PutItem", TableName=OUTBOX.full_name, Item=raw)
    assert leaks(inbox) == []
    assert comment_row.event_id != note_row.event_id


# --- each filter alone, and none ---


def publish_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the desk publish notes as letters."""
    monkeypatch.setattr(commenting, "_becomes_letter", lambda *_: True)


def read_as_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let letters be made of what an agent may read."""
    of_tenant = context.of_tenant
    as_agent = lambda *args, **how: of_tenant(*args, **(how | {"role": Role.AGENT}))  # noqa: E731
    monkeypatch.setattr(reply_delivering.context, "of_tenant", as_agent)


def take_notes_for_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a note pass for what people outside may read."""

    def anything(entry: ActivityItem | None) -> PublicEntry | None:
        return entry and PublicEntry(entry.sk, entry.at, entry.author, entry.author_name, entry.body)

    monkeypatch.setattr(public_entries, "public", anything)
    monkeypatch.setattr(reply_delivering, "public", anything)


def tell_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let viewers be told of notes."""
    monkeypatch.setattr(telling, "may_read", lambda *_: True)


Removal = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("removed", "is_found"),
    [
        pytest.param([publish_notes], False, id="only marked public ones are sent"),
        pytest.param([take_notes_for_public], False, id="notes are not published, and viewers read none"),
        pytest.param([read_as_agent], False, id="what an agent may read is filtered once more"),
        pytest.param([publish_notes, read_as_agent], False, id="one filter is enough"),
        pytest.param([publish_notes, take_notes_for_public], True, id="nothing keeps the note itself"),
        pytest.param([read_as_agent, take_notes_for_public], True, id="nothing keeps it from the quoted history"),
        pytest.param([tell_viewers], True, id="nothing keeps it from viewers"),
    ],
)
def test_each_filter_holds_alone_and_without_any_the_note_is_found(
    desk: World,
    number: int,
    inbox: MailReceiver,
    monkeypatch: pytest.MonkeyPatch,
    removed: list[Removal],
    is_found: bool,
) -> None:
    for remove in removed:
        remove(monkeypatch)
    note(desk, number)
    act(desk, number, "comment")
    assert bool(leaks(inbox)) is is_found
    on_page = {read_as_agent, take_notes_for_public}
    assert (SECRET in page_of(desk, number)) is (on_page <= {*removed})


# --- no other way ---

MAKES_MAIL = {"OutgoingMail", "EmailMessage", "EmailMultiAlternatives", "hand_over", "send_mail", "MailContent"}
WAYS = {
    "delivery/mail/mail_delivering.py": "carries what others wrote",
    "delivery/mail/outbox_backend.py": "carries what others wrote",
    "delivery/webhooks/pause_mails.py": "of endpoints",
    "portal/mailing/development_mail.py": "letters to a desk, in development",
    "tenants/admin/membership_admin.py": "of operators",
    "tenants/lifecycle/closing_mails.py": "of a desk's closing",
    "tenants/membership/member_changes.py": "of a change of role",
    "tenants/sign_in/factors.py": "of second factors",
    "tenants/membership/mails.py": "of invitations and passwords",
    "tickets/desk_export/export_mails.py": "of an export, which has a link to its page alone",
    "tickets/notices/notice_mails.py": "shown above",
    "tickets/replies/reply_delivering.py": "shown above",
    "tickets/reports/report_mails.py": "of the numbers of a week or a month",
    "tickets/rules/presenters.py": "of a rule, which has the title and what the rule says",
}


def calls_in(path: Path) -> set[str]:
    names = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in names}


def calling(*names: str) -> set[str]:
    """The modules that call something of these names."""
    root = Path(settings.BASE_DIR)
    paths = [path for app in ("portal", "tenants", "delivery", "tickets", "api") for path in (root / app).rglob("*.py")]
    return {str(p.relative_to(root)) for p in paths if mentions(p, *names) and calls_in(p) & {*names}}


def test_each_module_that_makes_mail_is_one_of_those_that_are_shown_or_have_no_text_of_tickets() -> None:
    assert calling(*MAKES_MAIL) == set(WAYS)


def test_letters_and_pages_are_made_of_entries_that_went_through_the_filter_and_of_the_description() -> None:
    assert calling("PublicEntry") == {"tickets/replies/public_entries.py"}
    writer = Path(settings.BASE_DIR, "tickets/replies/reply_mails.py").read_text()
    assert "ActivityItem" not in writer
