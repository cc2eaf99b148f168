"""The pages that are measured: how a signed-in person asks for each, and how to tell that it came."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Final
from urllib.parse import urlencode

from benchmarks.exchange import Answer, RawRequest, in_process
from benchmarks.fill import COMMENTS, EMAIL, MINE, SLUG, Filled
from benchmarks.stack import BenchmarkError
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
_TITLE: Final = "The label printer prints only every second label"
_SENTENCE: Final = "We have looked into it: the **second** entry was the wrong one. Please try `sync --again`.\n\n"
_SOUGHT: Final = ("printer offline", "invoice address", "webhook morning", "mobile minutes")
_AGAIN: Final = 6  # tickets that are read again and again
_ANSWERS: Final = 10  # on the page of a requester
_PARAGRAPHS: Final = 50  # of the article


def _address(path: str) -> str:
    """Return a page's address: those of the desk stand behind its slug."""
    return f"/{SLUG}{path}" if path.startswith(("/tickets/", "/search/")) else path


@dataclass
class SignedInVisitor:
    """A signed-in browser. `sequences` of its requests may be on their way at the same time."""

    tenant: Filled
    cookie: str
    csrf: str
    mark: str
    second_page: str
    groups: list[list[TicketState]]
    sequences: int
    key: str  # of the API
    outside: Mapping[str, str]  # addresses of pages for people outside the desk, by the names of the measured ones
    turns: Counter[tuple[str, int]] = field(default_factory=Counter)

    def request(self, page: MeasuredPage, sequence: int) -> RawRequest:
        """Return the next request of this sequence for this page."""
        turn = self.turns[page.name, sequence]
        self.turns[page.name, sequence] += 1
        return page.make(self, sequence, turn)

    def get(self, path: str) -> RawRequest:
        return RawRequest("GET", _address(path), self.cookie)

    def post(self, path: str, *fields: tuple[str, str]) -> RawRequest:
        hidden = [("csrfmiddlewaretoken", self.csrf), ("_page", self.mark), ("request_id", uuid.uuid4().hex)]
        return RawRequest("POST", _address(path), self.cookie, urlencode([*hidden, *fields]))

    def call(self, path: str, body: object = None) -> RawRequest:
        """Return a request of the API: a GET, or a POST of this body."""
        return RawRequest(
            "POST" if body else "GET", f"/api/v1{path}", body=json.dumps(body) if body else "", key=self.key
        )

    def talked(self, sequence: int, turn: int, most: int = 10_000) -> int:
        """Return a discussed ticket, one of the first `most` in turn."""
        numbers = self.tenant.talked[:most]
        return numbers[(turn * self.sequences + sequence) % len(numbers)]

    def verify(self) -> None:
        """Raise BenchmarkError where the tickets of the bulk changes are not as those should have left them."""
        for group in self.groups:
            if self.tenant.seen(s.number for s in group) != group:
                raise BenchmarkError("The bulk changes did not all happen.")


@dataclass(frozen=True)
class MeasuredPage:
    """One measured page. `status` and `shows` tell that it came: a pattern and how often it occurs.

    It is counted after a `rest` in seconds, where a process remembers for a moment what others of its kind have read.
    """

    name: str
    title: str
    make: Callable[[SignedInVisitor, int, int], RawRequest]  # of a visitor, the number of a sequence, and its turn
    shows: tuple[str, int] = ("", 0)
    status: int = 200
    rest: float = 0.0

    def check(self, answer: Answer) -> None:
        pattern, count = self.shows
        found = len(re.findall(pattern, answer.text)) if pattern else 0
        if answer.status != self.status or found != count:
            raise BenchmarkError(
                f"{self.title}: status {answer.status}, {found} of {count} parts, "
                f"instead of status {self.status}.\n{answer.text[:400]}"
            )


def _comment(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    # No two sequences write on the same ticket: that two people do is what the tests are for.
    numbers = visitor.tenant.commented[sequence :: visitor.sequences]
    return visitor.post(f"/tickets/{numbers[turn % len(numbers)]}/comment/", ("body", _SENTENCE * 2))


def _bulk(visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    """Close the sequence's tickets and, the next time, open them again, so that they never run out."""
    group = visitor.groups[sequence]
    to = Status.OPEN if group[0].status is Status.CLOSED else Status.CLOSED
    visitor.groups[sequence] = [TicketState(s.number, s.version + 1, to, s.resolver, due=s.due) for s in group]
    selected = [("tickets", str(s)) for s in group]
    return visitor.post("/tickets/bulk/", ("to", to.value), ("confirmed", "yes"), *selected)


def _sought(turn: int, length: int | None = None) -> str:
    """Return a word of an eighth of the tickets, and one of a fourth of these, or only its first letters."""
    word, _, second = _SOUGHT[turn % len(_SOUGHT)].partition(" ")
    return urlencode({"q": f"{word} {second[:length]}"})


_ROW, _ENTRY = r'name="tickets" value="', r'<li[^>]* id="entry-'
_NEW: Final = (("title", _TITLE), ("description", _SENTENCE * 3), ("priority", "normal"), ("tags", "hardware, printer"))
_CREATED: Final = {"title": _TITLE, "description": _SENTENCE * 3, "tags": ["hardware", "printer"]}


def _outside(name: str, visitor: SignedInVisitor, sequence: int, turn: int) -> RawRequest:
    return RawRequest("GET", visitor.outside[name])


PAGES: Final = (
    MeasuredPage("list", "list, 49 rows", lambda v, s, t: v.get(_LIST), (_ROW, bulk.MOST)),
    MeasuredPage("mine", "small list, 8 rows", lambda v, s, t: v.get(f"{_LIST}&resolver=me"), (_ROW, MINE)),
    MeasuredPage("next", "second page", lambda v, s, t: v.get(v.second_page), (_ROW, bulk.MOST)),
    MeasuredPage(
        "ticket", "ticket, 20 comments",
        lambda v, s, t: v.get(f"/tickets/{v.talked(s, t, _AGAIN)}/"), (_ENTRY, COMMENTS + 2),
    ),
    MeasuredPage(
        "ticket-cold", "ticket, never seen",
        lambda v, s, t: v.get(f"/tickets/{v.talked(s, t)}/"), (_ENTRY, COMMENTS + 2),
    ),
    MeasuredPage("new", "open a ticket", lambda v, s, t: v.post("/tickets/new/", *_NEW), status=302),
    MeasuredPage("comment", "write a comment", _comment, status=302),
    MeasuredPage("bulk", "close 40 at once", _bulk, status=302),
    MeasuredPage(
        "dashboard", "dashboard, 30 days", lambda v, s, t: v.get("/tickets/dashboard/"), ('id="lately-title"', 1),
        rest=2 * watermark.CACHED_SECONDS,
    ),
    MeasuredPage(
        "search", "search, 20 hits",
        lambda v, s, t: v.get(f"/search/?{_sought(t)}"), ("data-row-link", ticket_search.SHOWN),
    ),
    MeasuredPage(
        "type-ahead", "type-ahead", lambda v, s, t: v.get(f"/search/suggest/?{_sought(t, 4)}"),
        ('id="suggested-ticket-', suggesting.TICKETS),
    ),
    MeasuredPage(
        "api-list", "API: list, 50 rows",
        lambda v, s, t: v.call(f"/tickets?status={Status.PENDING.value}"), ('"number":', lists.PAGE_SIZE),
    ),
    MeasuredPage(
        "api-ticket", "API: activity, 20 comments",
        lambda v, s, t: v.call(f"/tickets/{v.talked(s, t, _AGAIN)}/activity"), ('"kind":', COMMENTS + 2),
    ),
    MeasuredPage("api-new", "API: create a ticket", lambda v, s, t: v.call("/tickets", _CREATED), status=201),
    MeasuredPage("chooser", "choose a tenant", lambda v, s, t: v.get("/tenants/"), ('aria-current="true"', 1)),
    *(
        MeasuredPage(name, title, partial(_outside, name), shows)
        for name, title, shows in (
            ("form", "public form", ('name="challenge"', 1)),
            ("requester", "requester's page, 11 messages", ("card-body guest-message", _ANSWERS + 1)),
            ("article", "article, 5 KB", ("<strong>second</strong>", _PARAGRAPHS)),
        )
    ),
)  # fmt: skip


def visit(tenant: Filled, *, password: str, sequences: int) -> SignedInVisitor:
    """Sign in and enter this tenant. Raises BenchmarkError when that does not work."""
    csrf, session = secrets.token_hex(16), ""
    for path, fields in (
        ("/login/", {"email": EMAIL, "password": password}),
        ("/tenants/switch/", {"tenant": tenant.context.tenant_id}),
    ):
        body = urlencode({"csrfmiddlewaretoken": csrf, **fields})
        answer = in_process(RawRequest("POST", path, f"{_CSRF}={csrf}; {_SESSION}={session}", body))
        if answer.status != 302:
            raise BenchmarkError(f"POST {path} answered {answer.status}.\n{answer.text[:400]}")
        session = answer.cookies.get(_SESSION, session)
    cookie = f"{_CSRF}={csrf}; {_SESSION}={session}"
    listed = in_process(RawRequest("GET", _address(_LIST), cookie)).text
    mark = re.search(r'name="_page" value="([^"]+)"', listed)
    following = re.search(r'id="page-next" href="([^"]+)"', listed)
    if mark is None or following is None:
        raise BenchmarkError(f"The list has no second page.\n{listed[:400]}")
    groups = [tenant.seen(group) for group in tenant.groups[:sequences]]
    key, outside = _key(tenant), _pages_outside(tenant)
    return SignedInVisitor(tenant, cookie, csrf, mark[1], unescape(following[1]), groups, sequences, key, outside)


def _key(tenant: Filled) -> str:
    """Make an API key of the tenant that works for a day."""
    scopes = frozenset({Scope.TICKETS_READ, Scope.TICKETS_WRITE, Scope.NOTES_READ})
    name = f"Bench {uuid.uuid4().hex[:8]}"
    choice = KeyChoice(name=name, scopes=scopes, expires_at=clock.now() + timedelta(days=1))
    return key_changes.create(tenant.context, choice=choice, request_id=uuid.uuid4().hex, by=SYSTEM)[1]


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
        "form": f"/forms/{SLUG}/",
        "requester": f"/r/{link.token}/",
        "article": f"/help/{SLUG}/{article.number}-how-to-clean-the-printer/",
    }
