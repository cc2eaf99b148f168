"""Write tickets and comments as people do who have a browser without JavaScript, and send again what failed."""

from __future__ import annotations

import html
import http.client
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from portal.engines.endpoint import LOOPBACK

COMMENTS: Final = 12  # on one ticket: all of them stand on its first page
PASSWORD: Final = "demo-pass-123"  # noqa: S105  # of the sample accounts of a demo on this machine
WRITER: Final = "bob@example.com"  # of one desk alone, so that signing in leads there
_TIMEOUT: Final = 30  # seconds for one answer
_PATIENCE: Final = 300  # seconds until a write that is sent again and again has failed
_PAUSE: Final = 0.3
_TICKET: Final = re.compile(r"/acme/tickets/(\d+)/")


class NothingCameBack(Exception):
    """The web server is away, or went away before it had answered: a browser shows a page of its own."""


class PromiseBroken(Exception):
    """The portal answered something that no outage explains. The message says what."""


@dataclass(frozen=True)
class PageAnswer:
    """Hold what came back. `location` is the path that a redirect names."""

    status: int
    location: str
    text: str

    def __str__(self) -> str:
        heading = re.search(r"<h1[^>]*>(.*?)</h1>", self.text, re.DOTALL)
        return f"{self.status} {self.location} {heading[1].strip() if heading else ''}"


@dataclass
class PageForm:
    """Hold where a form of a page goes, and what its hidden fields have."""

    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def form_with(answer: PageAnswer, path: str, *names: str) -> PageForm | None:
    """Return the form of a page that has fields of these names."""
    for attributes, content in re.findall(r"<form\b([^>]*)>(.*?)</form>", answer.text, re.DOTALL):
        fields = [_attributes(one) for one in re.findall(r"<(?:input|textarea|select|button)\b([^>]*)>", content)]
        hidden = {one["name"]: one.get("value", "") for one in fields if one.get("type") == "hidden" and "name" in one}
        found = PageForm(_attributes(attributes).get("action") or path, hidden, {one.get("name", "") for one in fields})
        if found.names >= set(names):
            return found
    return None


def _attributes(text: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', text)}


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Leave a redirect to the reader of the answer."""


class PlainBrowser:
    """One person's browser; each request takes a connection of its own."""

    def __init__(self, port: int) -> None:
        self._site = f"http://{LOOPBACK}:{port}"
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(), _StayHere())

    def ask(self, path: str, form: dict[str, str] | None = None) -> PageAnswer:
        body = None if form is None else urllib.parse.urlencode(form).encode()
        try:
            try:
                answer = self._opener.open(self._site + path, body, timeout=_TIMEOUT)
            except urllib.error.HTTPError as error:  # an answer as well
                answer = error
            with answer:
                location = urllib.parse.urlsplit(answer.headers.get("Location", "")).path
                return PageAnswer(answer.status, location, answer.read().decode())
        except (OSError, http.client.HTTPException) as error:
            raise NothingCameBack(str(error)) from error


def signed_in(port: int, email: str = WRITER) -> PlainBrowser:
    """Return the browser of somebody who has just signed in. Raises PromiseBroken and NothingCameBack."""
    browser = PlainBrowser(port)
    form = form_with(browser.ask("/login/"), "/login/", "email", "password")
    answer = browser.ask("/login/", (form.hidden if form else {}) | {"email": email, "password": PASSWORD})
    if answer.status != 302:
        raise PromiseBroken(f"{email} cannot sign in: {answer}")
    return browser


@dataclass(frozen=True)
class Written:
    """Hold what somebody typed, the ticket that the portal acknowledged it in, and when by the monotonic clock."""

    marker: str
    number: int
    is_ticket: bool
    at: float = 0.0


def typed(marker: str) -> str:
    return f'{marker} the <lift> & "stairs"'


@dataclass
class PeopleTally:
    """Count what people met, all of them together: error pages with the text in it, and requests without answer."""

    acknowledged: list[Written] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)  # sentences: promises that did not hold


class PersistentPerson(threading.Thread):
    """Somebody who opens a ticket, comments on it, opens the next, until told to stop."""

    def __init__(self, port: int, name: str, tally: PeopleTally, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._browser, self._tally, self._stopped = signed_in(port), tally, stop
        self._count = 0
        self.acknowledged = 0

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                number = self._write("/acme/tickets/new/", "title", is_ticket=True, priority="normal")
                for _ in range(COMMENTS):
                    if self._stopped.is_set():
                        return
                    self._write(f"/acme/tickets/{number}/", "body", is_ticket=False)
        except Exception as error:
            self._tally.broken.append(f"{self.name}: {error}")

    def _write(self, path: str, field_name: str, *, is_ticket: bool, **more: str) -> int:
        """Send a text until it is acknowledged; the ticket's number. Raises PromiseBroken."""
        self._count += 1
        marker = f"{self.name}-{self._count:05d}."
        form: PageForm | None = None
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                if form is None:
                    form = self._form(self._browser.ask(path), path, field_name)
                if form is not None:
                    answer = self._browser.ask(form.action, form.hidden | {field_name: typed(marker), **more})
                    if answer.status == 302 and (place := _TICKET.fullmatch(answer.location)):
                        self.acknowledged += 1
                        written = Written(marker, int(place[1]), is_ticket, time.monotonic())
                        self._tally.acknowledged.append(written)
                        return written.number
                    form, more = self._kept(answer, form, field_name, marker), {}
            except NothingCameBack:
                self._tally.counted["unanswered"] += 1
            time.sleep(_PAUSE)
        raise PromiseBroken(f"{marker} was not taken within {_PATIENCE} s")

    def _form(self, answer: PageAnswer, path: str, field_name: str) -> PageForm | None:
        """Return the form of a page, or None where an outage keeps the page away. Raises PromiseBroken."""
        form = form_with(answer, path, field_name)
        if answer.status == 503:
            return None
        if answer.status != 200 or form is None:
            raise PromiseBroken(f"{path} was answered with {answer}")
        return form

    def _kept(self, answer: PageAnswer, sent: PageForm, field_name: str, marker: str) -> PageForm:
        """Return the form of an error page that sends the text again. Raises PromiseBroken if it has none."""
        if answer.status != 503:
            raise PromiseBroken(f"{marker} was answered with {answer}")
        form = form_with(answer, sent.action, field_name)
        shown = html.unescape(answer.text)
        if form is None or form.hidden[field_name] != typed(marker) or f">{typed(marker)}<" not in shown:
            raise PromiseBroken(f"the page of an outage has lost {marker}")
        self._tally.counted["error_pages"] += 1
        return form


def read_back(browser: PlainBrowser) -> dict[int, str]:
    """Return the pages of all of Acme's tickets by number. Raises PromiseBroken and NothingCameBack."""
    pages, number, missing = {}, 0, 0
    while missing < 20:  # a number that was drawn and not used leaves a gap
        number += 1
        answer = browser.ask(f"/acme/tickets/{number}/")
        missing = missing + 1 if answer.status == 404 else 0
        if answer.status not in (200, 404):
            raise PromiseBroken(f"#{number} was answered with {answer}")
        if answer.status == 200:
            pages[number] = html.unescape(answer.text)
    return pages
