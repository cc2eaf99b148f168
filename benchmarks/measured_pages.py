"""The pages that are measured: how a signed-in person asks for each, and how to tell that it came."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from html import unescape
from typing import Final
from urllib.parse import urlencode

from benchmarks.exchange import Answer, RawRequest, Send
from benchmarks.fill import Filled
from benchmarks.stack import BenchmarkError
from benchmarks.ticket_ranges import AGAIN, COMMENTS, MINE
from portal import clock
from portal.streams import watermark
from tenants.api_keys import key_changes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import SYSTEM
from tickets.articles import article_changes
from tickets.articles.articles import Text
from tickets.desk import bulk, changing, commenting, creating, lists
from tickets.desk.changing import TicketState
from tickets.public_form import form_settings
from tickets.replies import mail_settings, ticket_links
from tickets.requesters import requesters
from tickets.search import suggesting, ticket_search
from tickets.ticket.fields import Status

_SESSION, _CSRF = "pooldesk_session", "pooldesk_csrf"
_LIST: Final = f"/tickets/?status={Status.PENDING.value}"
_SENTENCE: Final = "We have looked into it: the **second** entry was the wrong one. Please try `sync --again`.\n\n"


@dataclass
class SignedInVisitor:
    """A signed-in browser in one tenant. `sequences` of its requests may be on their way at the same time."""

    tenant: Filled
    cookie: str
    csrf: str
    mark: str
    second_page: str
    groups: list[list[TicketState]]
    sequences: int
    key: str  # of the API
    outside: Mapping[str, str]  # addresses of pages for people outside the desk, by the names of the measured ones
    turns: dict[tuple[str, int], int] = field(default_factory=dict)

    def request(self, page: MeasuredPage, sequence: int) -> RawRequest:
        """Return the next request of this sequence for this page."""
        turn = self.turns.get((page.name, sequence), 0)
        self.turns[page.name, sequence] = turn + 1
        return page.make(self, sequence, turn)

    def get(self, path: str) -> RawRequest:
        return RawRequest("GET", self.tenant.address(path), self.cookie)

    def post(self, path: str, fields: list[tuple[str, str]]) -> RawRequest:
        fields = [("csrfmiddlewaretoken", self.csrf), ("_page", self.mark), *fields]
        return RawRequest("POST", self.tenant.address(path), self.cookie, urlencode(fields))

    def ask_as_guest(self, name: str) -> RawRequest:
        """Return the request of somebody outside for a page of theirs."""
        return RawRequest("GET", self.outside[name])

    def call(self, path: str, body: object = None) -> RawRequest:
        """Return a request of the API: a GET, or a POST of this body."""
        sent = "" if body is None else json.dumps(body)
        return RawRequest("POST" if sent else "GET", f"/api/v1{path}", body=sent, key=self.key)

    def verify(self) -> None:
        """Raise BenchmarkError where the tickets of the bulk changes are not as those should have left them."""
        for group in self.groups:
            if self.tenant.seen(s.number for s in group) != group:
                raise BenchmarkError(f"The bulk changes in {self.tenant.slug} did not all happen.")


@dataclass(frozen=True)
class MeasuredPage:
    """One measured page. `status` and `shows` tell that it came: a pattern and how often it occurs.

    It is counted after a `rest` in seconds, where a process remembers for a moment what others of its kind have read.
    Where it `grows`, a larger tenant may cost more, but for round trips: an index grows with what it holds. One that
    `is_outside` is asked for by somebody without an account, and is compared with the list as well.
    """

    name: str
    title: str
    make: Callable[[SignedInVisitor, int, int], RawRequest]
    status: int = 200
    shows: tuple[str, int] = ("", 0)
    rest: float = 0.0
    grows: bool = False
    is_outside: bool = False

    def check(self, answer: Answer, tenant: Filled) -> None:
        pattern, count = self.shows
        found = len(re.findall(pattern, answer.text)) if pattern else 0
        if answer.status != self.status or found != count:
            raise BenchmarkError(
                f"{self.title} in {tenant.slug}: status {answer.status}, {found} of {count} parts, "
                f"instead of status {self.status}.\n{answer.text[:400]}"
            )


def _ticket(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    return visitor.get(f"/tickets/{visitor.tenant.layout.talked[(turn * visitor.sequences + sequence) % AGAIN]}/")


def _ticket_first_seen(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    talked = visitor.tenant.layout.talked
    return visitor.get(f"/tickets/{talked[(turn * visitor.sequences + sequence) % len(talked)]}/")


def _new(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    fields = [
        ("title", "The label printer prints only every second label"),
        ("description", _SENTENCE * 3),
        ("priority", "normal"),
        ("tags", "hardware, printer"),
        ("request_id", uuid.uuid4().hex),
    ]
    return visitor.post("/tickets/new/", fields)


def _comment(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    # No two sequences write on the same ticket: that two people do is what the tests are for.
    numbers = visitor.tenant.layout.commented[sequence :: visitor.sequences]
    fields = [("body", _SENTENCE * 2), ("request_id", uuid.uuid4().hex)]
    return visitor.post(f"/tickets/{numbers[turn % len(numbers)]}/comment/", fields)


def _bulk(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    """Close the sequence's tickets and, the next time, open them again, so that they never run out."""
    group = visitor.groups[sequence]
    to = Status.OPEN if group[0].status is Status.CLOSED else Status.CLOSED
    visitor.groups[sequence] = [TicketState(s.number, s.version + 1, to, s.resolver, due=s.due) for s in group]
    selected = [("tickets", str(s)) for s in group]
    return visitor.post("/tickets/bulk/", [("to", to.value), ("confirmed", "yes"), *selected])


def _activity(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    return visitor.call(
        f"/tickets/{visitor.tenant.layout.talked[(turn * visitor.sequences + sequence) % AGAIN]}/activity"
    )


def _search(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    """Ask for two words that stand in an eighth of the tickets, and in a fourth of these."""
    return visitor.get(f"/search/?{urlencode({'q': _SOUGHT[turn % len(_SOUGHT)]})}")


def _type_ahead(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    """Ask for the same, as somebody types it: the first word, and the beginning of the second one."""
    word, _, second = _SOUGHT[turn % len(_SOUGHT)].partition(" ")
    return visitor.get(f"/search/suggest/?{urlencode({'q': f'{word} {second[:4]}'})}")


def _create(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    title = "The label printer prints only every second label"
    return visitor.call("/tickets", {"title": title, "description": _SENTENCE * 3, "tags": ["hardware", "printer"]})


_ROW, _ENTRY = r'name="tickets" value="', r'<li[^>]* id="entry-'
_SOUGHT: Final = ("printer offline", "invoice address", "webhook morning", "mobile minutes")

_ANSWERS: Final = 10  # on the page of a requester
_PARAGRAPHS: Final = 50  # of the article


def _outside(name: str, title: str, *, shows: tuple[str, int]) -> MeasuredPage:
    return MeasuredPage(name, title, lambda v, *_: v.ask_as_guest(name), shows=shows, is_outside=True)


PAGES: Final = (
    MeasuredPage("list", "list, 49 rows", lambda v, *_: v.get(_LIST), shows=(_ROW, bulk.MOST)),
    MeasuredPage("mine", "small list, 8 rows", lambda v, *_: v.get(f"{_LIST}&resolver=me"), shows=(_ROW, MINE)),
    MeasuredPage("next", "second page", lambda v, *_: v.get(v.second_page), shows=(_ROW, bulk.MOST)),
    MeasuredPage("ticket", "ticket, 20 comments", _ticket, shows=(_ENTRY, COMMENTS + 2)),
    MeasuredPage("ticket-cold", "ticket, never seen", _ticket_first_seen, shows=(_ENTRY, COMMENTS + 2)),
    MeasuredPage("new", "open a ticket", _new, status=302),
    MeasuredPage("comment", "write a comment", _comment, status=302),
    MeasuredPage("bulk", "close 40 at once", _bulk, status=302),
    MeasuredPage(
        "dashboard",
        "dashboard, 30 days",
        lambda v, *_: v.get("/tickets/dashboard/"),
        shows=('id="lately-title"', 1),
        rest=2 * watermark.CACHED_SECONDS,
    ),
    MeasuredPage("search", "search, 20 hits", _search, shows=(r"data-row-link", ticket_search.SHOWN), grows=True),
    MeasuredPage(
        "type-ahead", "type-ahead", _type_ahead, shows=('id="suggested-ticket-', suggesting.TICKETS), grows=True
    ),
    MeasuredPage(
        "api-list",
        "API: list, 50 rows",
        lambda v, *_: v.call(f"/tickets?status={Status.PENDING.value}"),
        shows=('"number":', lists.PAGE_SIZE),
    ),
    MeasuredPage("api-ticket", "API: activity, 20 comments", _activity, shows=('"kind":', COMMENTS + 2)),
    MeasuredPage("api-new", "API: create a ticket", _create, status=201),
    MeasuredPage("chooser", "choose a tenant", lambda v, *_: v.get("/tenants/"), shows=('aria-current="true"', 1)),
    _outside("form", "public form", shows=('name="challenge"', 1)),
    _outside("requester", "requester's page, 11 messages", shows=("card-body guest-message", _ANSWERS + 1)),
    _outside("article", "article, 5 KB", shows=(r"<strong>second</strong>", _PARAGRAPHS)),
)


def visit(send: Send, tenant: Filled, *, email: str, password: str, sequences: int) -> SignedInVisitor:
    """Sign in and enter this tenant. Raises BenchmarkError when that does not work."""
    csrf = secrets.token_hex(16)
    session = ""

    def post(path: str, fields: dict[str, str]) -> str:
        nonlocal session
        body = urlencode({"csrfmiddlewaretoken": csrf, **fields})
        answer = send(RawRequest("POST", path, f"{_CSRF}={csrf}; {_SESSION}={session}", body))
        if answer.status != 302:
            raise BenchmarkError(f"POST {path} answered {answer.status}.\n{answer.text[:400]}")
        return answer.cookie(_SESSION) or session

    session = post("/login/", {"email": email, "password": password})
    session = post("/tenants/switch/", {"tenant": tenant.tenant_id})
    cookie = f"{_CSRF}={csrf}; {_SESSION}={session}"
    listed = send(RawRequest("GET", tenant.address(_LIST), cookie)).text
    mark = re.search(r'name="_page" value="([^"]+)"', listed)
    following = re.search(r'id="page-next" href="([^"]+)"', listed)
    if mark is None or following is None:
        raise BenchmarkError(f"The list of {tenant.slug} has no second page.\n{listed[:400]}")
    groups = [tenant.seen(group) for group in tenant.layout.groups[:sequences]]
    key, outside = _key(tenant), _pages_outside(tenant)
    return SignedInVisitor(tenant, cookie, csrf, mark[1], unescape(following[1]), groups, sequences, key, outside)


def _key(tenant: Filled) -> str:
    """Make an API key of the tenant that works for a day."""
    scopes = frozenset({Scope.TICKETS_READ, Scope.TICKETS_WRITE, Scope.NOTES_READ})
    name = f"Bench {uuid.uuid4().hex[:8]}"
    choice = KeyChoice(name=name, scopes=scopes, expires_at=clock.now() + timedelta(days=1))
    _, text = key_changes.create(tenant.context, choice=choice, request_id=uuid.uuid4().hex, by=SYSTEM)
    return text


def _pages_outside(tenant: Filled) -> dict[str, str]:
    """Open the tenant's public form, publish an article, let a requester ask; return the addresses of their pages."""
    desk = tenant.context
    form = form_settings.read(desk)
    form_settings.change(desk, values={**asdict(form), "is_on": True}, version=form.version, by=SYSTEM)
    text = Text("How to clean the printer", _SENTENCE * _PARAGRAPHS, "", True)
    article = article_changes.create(desk, text, by=SYSTEM)
    article_changes.publish(desk, int(article.number), text, edit=int(article.edit), by=SYSTEM)
    person = requesters.ensure(desk, "ada@example.org", name="Ada Lovelace")
    number = creating.create(desk, requester=person, title="The label printer", description=_SENTENCE)
    for _ in range(_ANSWERS):
        commenting.comment(desk, number, body=_SENTENCE * 2)
    link = ticket_links.ticket_link(desk, changing.read(desk, number), person, mail_settings.read(desk))
    return {
        "form": f"/forms/{tenant.slug}/",
        "requester": f"/r/{link.token}/",
        "article": f"/help/{tenant.slug}/{article.number}-how-to-clean-the-printer/",
    }
