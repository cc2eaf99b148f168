"""Write tickets and comments as people do: who gets an error page sends it again, who gets none at all does as well."""

from __future__ import annotations

import html
import re
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from proofs.outages.plain_browser import NothingCameBack, PageAnswer, PageForm, PlainBrowser, form_with

COMMENTS: Final = 12  # on one ticket: all of them stand on its first page
_PATIENCE: Final = 300  # seconds until a write that is sent again and again has failed
_PAUSE: Final = 0.3
_TICKET: Final = re.compile(r"/acme/tickets/(\d+)/")


class PromiseBroken(Exception):
    """The portal answered something that no outage explains. The message says what."""


@dataclass(frozen=True)
class Written:
    """Hold what somebody typed, the ticket that the portal acknowledged it in, and when by the monotonic clock."""

    marker: str
    number: int
    is_ticket: bool
    at: float = 0.0


def typed(marker: str) -> str:
    """Return the text that carries a marker, with characters that a page has to escape."""
    return f'{marker} the <lift> & "stairs"'


@dataclass
class PeopleTally:
    """Count what people met, all of them together."""

    acknowledged: list[Written] = field(default_factory=list)
    error_pages: int = 0  # with the text in it, sent again from there
    unanswered: int = 0
    broken: list[str] = field(default_factory=list)  # sentences: promises that did not hold
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, written: Written) -> None:
        with self.lock:
            self.acknowledged.append(written)

    def count(self, what: str) -> None:
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)


def signed_in(port: int, address: str, password: str) -> PlainBrowser:
    """Return the browser of somebody who has just signed in. Raises PromiseBroken and NothingCameBack."""
    browser = PlainBrowser(port)
    form = form_with(browser.ask("/login/"), "/login/", "email", "password")
    answer = browser.ask("/login/", (form.hidden if form else {}) | {"email": address, "password": password})
    if answer.status != 302:
        raise PromiseBroken(f"{address} cannot sign in: {answer.status} {_heading(answer)}")
    return browser


class PersistentPerson(threading.Thread):
    """Somebody who opens a ticket, comments on it, opens the next, until told to stop."""

    def __init__(
        self, port: int, name: str, address: str, password: str, tally: PeopleTally, stop: threading.Event
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._browser, self._tally, self._stopped = signed_in(port, address, password), tally, stop
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
        form = self._form(path, field_name)
        form.hidden |= {field_name: typed(marker), **more}
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                answer = self._browser.ask(form.action, form.hidden)
            except NothingCameBack:
                self._tally.count("unanswered")
            else:
                if answer.status == 302 and (place := _TICKET.fullmatch(answer.location)):
                    self.acknowledged += 1
                    self._tally.note(Written(marker, int(place[1]), is_ticket, time.monotonic()))
                    return int(place[1])
                form = self._kept(answer, form, field_name, marker)
            time.sleep(_PAUSE)
        raise PromiseBroken(f"{marker} was not taken within {_PATIENCE} s")

    def _kept(self, answer: PageAnswer, sent: PageForm, field_name: str, marker: str) -> PageForm:
        """Return the form of an error page that sends the text again. Raises PromiseBroken if it has none."""
        if answer.status != 503:
            raise PromiseBroken(f"{marker} was answered with {answer.status} {answer.location} {_heading(answer)}")
        form = form_with(answer, sent.action, field_name)
        shown = html.unescape(answer.text)
        if form is None or form.hidden[field_name] != typed(marker) or f">{typed(marker)}<" not in shown:
            raise PromiseBroken(f"the page of an outage has lost {marker}")
        self._tally.count("error_pages")
        return form

    def _form(self, path: str, field_name: str) -> PageForm:
        """Read a page until it comes, and return its form."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                answer = self._browser.ask(path)
            except NothingCameBack:
                pass
            else:
                if answer.status == 200 and (form := form_with(answer, path, field_name)):
                    return form
                if answer.status != 503:
                    raise PromiseBroken(
                        f"{path} was answered with {answer.status} {answer.location} {_heading(answer)}"
                    )
            time.sleep(_PAUSE)
        raise PromiseBroken(f"{path} did not come within {_PATIENCE} s")


def _heading(answer: PageAnswer) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", answer.text, re.DOTALL)
    return found[1].strip() if found else ""


def read_back(browser: PlainBrowser) -> dict[int, str]:
    """Return the pages of all of Acme's tickets by number. Raises PromiseBroken and NothingCameBack."""
    pages, number, missing = {}, 0, 0
    while missing < 20:  # a number that was drawn and not used leaves a gap
        number += 1
        answer = browser.ask(f"/acme/tickets/{number}/")
        missing = missing + 1 if answer.status == 404 else 0
        if answer.status not in (200, 404):
            raise PromiseBroken(f"#{number} was answered with {answer.status} {answer.location}")
        if answer.status == 200:
            pages[number] = html.unescape(answer.text)
    return pages
