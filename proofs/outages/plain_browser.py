"""Talk to the portal as a browser without JavaScript does: with cookies and the hidden fields of forms."""

from __future__ import annotations

import http.client
import urllib.parse
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Final

from portal.engines.ports import LOOPBACK

_TIMEOUT: Final = 30  # seconds for one answer


class NothingCameBack(Exception):
    """The web server is away, or went away before it had answered: a browser shows a page of its own."""


@dataclass(frozen=True)
class PageAnswer:
    """Hold what came back. `location` is the path that a redirect names."""

    status: int
    location: str
    text: str


@dataclass
class PageForm:
    """Hold where a form of a page goes, and what its hidden fields have."""

    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


class _Forms(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._open: PageForm | None = None
        self.found: list[PageForm] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = PageForm(given.get("action") or self._path)
            self.found.append(self._open)
        elif self._open and (name := given.get("name")):
            self._open.names.add(name)
            if given.get("type") == "hidden":
                self._open.hidden[name] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None


def form_with(answer: PageAnswer, path: str, *names: str) -> PageForm | None:
    """Return the first form of a page that has all of these fields."""
    forms = _Forms(path)
    forms.feed(answer.text)
    return next((form for form in forms.found if form.names >= set(names)), None)


class PlainBrowser:
    """One person's browser; each request takes a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port, self._cookies = port, SimpleCookie()

    def ask(self, path: str, form: dict[str, str] | None = None) -> PageAnswer:
        """Get a page, or post a form. Raises NothingCameBack."""
        headers = {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in self._cookies.items())}
        body = None
        if form is not None:
            body = urllib.parse.urlencode(form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=_TIMEOUT)
        try:
            connection.request("GET" if form is None else "POST", path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise NothingCameBack(str(error)) from error
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            self._cookies.load(line)
        return PageAnswer(answer.status, urllib.parse.urlsplit(answer.getheader("Location", "")).path, text)
