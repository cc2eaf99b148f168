"""One Chromium and one server for the whole folder; for each test a clean engine and browser contexts of its own."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.browser.page_audit import WIDE
from tests.browser.portal_process import Portal, serve_here
from tests.support.world import PASSWORD, World

# The shell is the same engine without windows: a page in it takes a third of the processor time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
# No sandbox, because tests often run as root; nothing else that would call home.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-quic", "--in-process-gpu", "--process-per-site",
]  # fmt: skip
PATIENCE = 90_000  # milliseconds until something that should appear counts as missing
# Nothing moves, because a colour on its way from one to the other is neither, and each frame takes processor time.
OPTIONS = {"viewport": WIDE, "reduced_motion": "reduce"}
# Chromium says this of every answer of 400 and above; what answers are right, a test says itself.
_STATUS_LINE = re.compile(r"Failed to load resource: the server responded with a status of \d+")

collect_ignore = [] if os.environ.get("SCREENSHOTS") == "1" else ["test_screenshots.py"]

NewPage = Callable[..., Page]


class Witness:
    """Sees what goes wrong in any page of a test without showing on it, and fails the test for it."""

    def __init__(self, portal: Portal) -> None:
        self.portal = portal
        self.problems: list[str] = []
        self.accepted: set[int] = set()
        self.accepted_lines: tuple[str, ...] = ()
        self._seers = {
            "console": self._console,
            "weberror": lambda error: self.problems.append(f"uncaught: {error.error}"),
            "request": self._request,
            "response": self._response,
        }

    def accepts(self, *statuses: int) -> None:
        """From here on, answers with these statuses are what the test is about."""
        self.accepted.update(statuses)

    def accepts_console(self, *parts: str) -> None:
        """Lines with one of these parts are what the browser should say."""
        self.accepted_lines += parts

    def watch(self, context: BrowserContext) -> None:
        for event, see in self._seers.items():
            context.on(event, see)  # type: ignore[call-overload]

    def leave(self, context: BrowserContext) -> None:
        for event, see in self._seers.items():
            context.remove_listener(event, see)

    def _console(self, message: ConsoleMessage) -> None:
        text = message.text
        if message.type not in ("error", "warning") or _STATUS_LINE.match(text):
            return
        if not any(part in text for part in self.accepted_lines):
            self.problems.append(f"console: {text}")

    def _request(self, request: Request) -> None:
        # Files go to the bucket itself, and come from there.
        if not request.url.startswith((f"{self.portal.url}/", "data:", f"{settings.OBJECTS_ORIGIN}/")):
            self.problems.append(f"a request to another origin: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.accepted:
            log = f"\n{self.portal.end_of_log()}" if response.status >= 500 else ""
            self.problems.append(f"{response.status} for {response.request.method} {response.url}{log}")


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    # Not for the session: while Playwright runs, its event loop runs in this thread, for all other tests too.
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def portal(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    with serve_here(tmp_path_factory.mktemp("portal") / "server.log") as portal:
        yield portal


@pytest.fixture
def witness(portal: Portal) -> Iterator[Witness]:
    witness = Witness(portal)
    yield witness
    assert not witness.problems, "\n".join(witness.problems)


class Profiles:
    """Browsers that are as if they were new. One that is new begins with a process, and fetches and compiles what all
    pages share, so each is kept, with its page, for the next test."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._kept: dict[str, list[Page]] = {}

    def take(self, url: str) -> Page:
        kept = self._kept.setdefault(url, [])
        return kept.pop() if kept else self.new(url)

    def new(self, url: str, **options: Any) -> Page:
        context = self._chromium.new_context(**{"base_url": url, **OPTIONS, **options})
        context.set_default_timeout(PATIENCE)
        return context.new_page()

    def give_back(self, url: str, page: Page) -> None:
        """Let it forget what a test can have left there, but for what only a new page forgets: see `browse`."""
        context = page.context
        for other in context.pages:
            if other is not page:
                other.close()
        if page.is_closed():
            context.close()
            return
        page.unroute_all()
        page.set_extra_http_headers({})
        context.set_offline(False)
        context.clear_cookies()
        page.goto("/healthz")
        page.mouse.move(0, 0)
        page.emulate_media(media="null", color_scheme="null")
        if page.viewport_size != WIDE:
            page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        if page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); return '__pwClock' in window; }"):
            context.close()
        else:
            self._kept[url].append(page)


@pytest.fixture(scope="package")
def profiles(chromium: Browser) -> Profiles:
    return Profiles(chromium)


@pytest.fixture
def browse(profiles: Profiles, witness: Witness) -> Iterator[NewPage]:
    """`browse()`: a page of a new browser; with the value of a session cookie, one that is signed in already.

    With `is_given_up` no other test gets it: for one who adds scripts or devices, which no page forgets.
    """
    taken: list[Page] = []
    own: list[BrowserContext] = []
    url = witness.portal.url

    def new_page(cookie: str = "", *, is_given_up: bool = False, **options: Any) -> Page:
        if is_given_up or options:
            page = profiles.new(url, **options)
            own.append(page.context)
        else:
            page = profiles.take(url)
            taken.append(page)
        witness.watch(page.context)
        if cookie:
            page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": url}])
        return page

    yield new_page
    for context in own:
        context.close()
    for page in taken:
        witness.leave(page.context)  # what an open page says as it is left comes without the cookie
        profiles.give_back(url, page)


@pytest.fixture
def person(world: World, browse: NewPage) -> NewPage:
    """`person("alice", "acme")`: a page of a new browser, in which Alice is signed in and has chosen Acme."""

    def signed_in(who: str, where: str | None = None, **options: Any) -> Page:
        cookies = world.browser(who, where).cookies
        return browse(cookies[settings.SESSION_COOKIE_NAME].value, **options)

    return signed_in


def is_at(page: Page, path: str) -> None:
    """The address of the page ends so, now or soon."""
    expect(page).to_have_url(re.compile(re.escape(path) + "$"))


def sign_in(page: Page, email: str, password: str = PASSWORD) -> None:
    """By the form, as a person does."""
    page.goto("/")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()
