"""Attack every address of the portal and of the API, in this process, and look for another tenant's texts in answers.

Written against Django's test client because it goes through every middleware, without a socket in between. Whatever a
request makes the portal ask for is watched, and nothing is written. A call of the API that has to be refused must get
the very code of its refusal: a key that is refused for another reason proves nothing about this one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import unescape
from http.cookies import SimpleCookie
from itertools import product
from typing import Any, ClassVar, Final

from django.conf import settings
from django.test import Client, override_settings

from proofs.isolation.data_attack import Crossing
from proofs.isolation.oracle import Oracle
from proofs.isolation.targets import Target
from proofs.isolation.transport import Crossed
from proofs.isolation.walk import api_tricks, portal_tricks
from proofs.isolation.walk.api_tricks import LentKeys, lend
from proofs.isolation.walk.http_request import HttpRequest, Route, api_routes, routes
from proofs.isolation.walk.visitors import Visitor, Visitors
from proofs.isolation.walk.watch import Watch
from tenants.api_keys.scopes import Scope
from tenants.membership import mails

HOST: Final = "testserver"
UNLIMITED: Final = {
    "TENANT_RATES": "off", "RATES_SHARED": False, "NOISE_NOTED": False, "GUEST_RATE": 0.0, "DEBUG": False,
    "PORTAL_BASE_URL": f"https://{HOST}",  # no address of a page can be written without it, outside of DEBUG
}  # fmt: skip
_SHORTEST: Final = 12  # characters of a title that is worth looking for


@dataclass
class Visits:
    """Count what was visited, and what the portal answered: (route, method) to statuses; (trick) to statuses."""

    routes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    tricks: dict[str, Counter[str]] = field(default_factory=dict)
    honest: int = 0
    withheld: int = 0
    crossing: Crossing | None = None
    refused: Crossing | None = None

    @property
    def total(self) -> int:
        return sum((c.total() for c in self.routes.values()), self.honest)


class ForeignTexts:
    """The texts that one tenant's answers alone may show: its id, people and titles, each absent from all others."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._of = {t.id: {t.id} | {s for s in t.texts if len(s) >= _SHORTEST} for t in targets}
        self._all = {t.id: {*t.texts, t.tenant.name} for t in targets}

    def kept_from(self, homes: Collection[str], asked: Any) -> Iterator[str]:
        """Return those that somebody at home in these tenants may not see, and which are not in the request itself: an
        echo tells nothing."""
        said = repr(asked)
        seen = "\0".join(text for home in homes if home in self._all for text in self._all[home])
        for tenant_id, texts in self._of.items():
            if tenant_id not in homes:
                yield from (text for text in texts if text not in said and text not in seen)


@dataclass(frozen=True)
class HttpAttack:
    """Requests by number. A request refused by a rate limit proves nothing, so there are no limits."""

    prefix: ClassVar[str]  # before the number of a request
    own_settings: ClassVar[dict[str, Any]] = {}

    seed: int
    targets: Sequence[Target]
    visitors: Visitors

    @property
    def plan(self) -> Sequence[Any]:
        """Return what is to be requested, by number."""
        raise NotImplementedError

    def request(self, number: int) -> HttpRequest:
        """Return the request of this number, the same for the same seed."""
        raise NotImplementedError

    def greetings(self) -> Iterator[tuple[HttpRequest, Callable[[Any, str], bool]]]:
        """Yield the honest requests, and whether an answer and its text are as they should be: else no refusal of the
        rest means anything."""
        raise NotImplementedError

    def prepared(self) -> AbstractContextManager[object]:
        return nullcontext()

    def run(self, numbers: Sequence[int], visits: Visits, advance: Callable[[int], object]) -> None:
        """Make these requests, up to the first that shows a hole."""
        watch, texts = Watch({t.id: Oracle(t.id) for t in self.targets}), ForeignTexts(self.targets)
        browser = Client(raise_request_exception=False)
        changed = UNLIMITED | self.own_settings | {"ALLOWED_HOSTS": [*settings.ALLOWED_HOSTS, HOST]}
        with override_settings(**changed), watch.watching(), self.prepared():
            try:
                for made, is_right in self.greetings():
                    answer = _make(browser, watch, made, texts, visits, f"{self.prefix}0")
                    if answer is None:
                        return
                    if not is_right(*answer):
                        why = f"An honest request of a tenant's own was answered {answer[0].status_code}."
                        visits.refused = Crossing(f"{self.prefix}0", why, made.described)
                        return
                    visits.honest += 1
                for number in numbers:
                    made = self.request(number)
                    answer = _make(browser, watch, made, texts, visits, f"{self.prefix}{number}")
                    if answer is None:
                        return
                    status = str(answer[0].status_code)
                    visits.routes.setdefault((made.route.path or "/", made.method), Counter())[status] += 1
                    for trick in made.tricks:
                        visits.tricks.setdefault(trick, Counter())[status] += 1
                    advance(1)
            finally:
                mails.wait_until_sent()
                visits.withheld = watch.withheld


def _make(
    browser: Client, watch: Watch, made: HttpRequest, texts: ForeignTexts, visits: Visits, name: str
) -> tuple[Any, str] | None:
    """Return the answer and its text, or None after a crossing, which is then noted under this name."""
    before = watch.withheld
    try:
        with watch.visit(made.homes):
            answer = _send(browser, made)
        text = unescape(getattr(answer, "content", b"").decode(errors="replace"))
        text += "\n".join(f"{name}: {value}" for name, value in answer.items())
        status = answer.status_code
        # The desk that a guest asks shows its name and the form, and no text of a person or a ticket.
        homes = frozenset[str]() if made.is_of_guest and not made.is_by_link else made.homes
        for foreign in texts.kept_from(homes, made.described):
            if foreign in text:
                raise Crossed(f"The answer, {status}, holds {foreign!r} of another tenant.")
        if made.key and made.key in text:
            raise Crossed(f"The answer, {status}, holds the key that the call was made with.")
        code = answer.json()["code"] if made.refused and status >= 400 else ""
        if code != made.refused:
            raise Crossed(f"The answer is {status} {code}, and not {made.refused}.")
        # The API says so where a write of its own was withheld.
        if status >= 500 and not (made.key and watch.withheld > before):
            raise Crossed(f"The answer is {status}: the portal failed, which is no refusal.")
    except Crossed as error:
        visits.crossing = Crossing(name, str(error), made.described)
        return None
    return answer, text


def _send(browser: Client, made: HttpRequest) -> Any:
    browser.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: made.cookie} if made.cookie else {})
    content, kind = made.content
    headers: dict[str, Any] = dict(made.headers)
    if made.key:
        headers["HTTP_AUTHORIZATION"] = f"Bearer {made.key}"
    return browser.generic(made.method, made.address, content, kind, secure=True, **headers)


@dataclass(frozen=True)
class PortalAttack(HttpAttack):
    """Visits of each address for each tenant, by GET and by POST, with the tricks of each pass."""

    prefix: ClassVar[str] = "http-"
    own_settings: ClassVar[dict[str, Any]] = {"EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend"}

    @cached_property
    def plan(self) -> Sequence[tuple[Route, str, Visitor, Sequence[str]]]:
        return [*product(routes(), ("GET", "POST"), self.visitors.members.values(), portal_tricks.PASSES)]

    def request(self, number: int) -> HttpRequest:
        rng = random.Random(f"{self.seed} http {number}")  # noqa: S311  # it has to be repeatable
        route, method, visitor, names = self.plan[number]
        names = [rng.choice(names)] if names is portal_tricks.IN_TURN else names
        strangers = [target for target in self.targets if target.id not in visitor.homes]
        victim = rng.choice(strangers or [target for target in self.targets if target.id != visitor.target.id])
        return portal_tricks.visit(rng, visitor, victim, self.visitors, route, method, names)

    def greetings(self) -> Iterator[tuple[HttpRequest, Callable[[Any, str], bool]]]:
        honest = [(portal_tricks.plain(visitor), visitor.target) for visitor in self.visitors.members.values()]
        for made, target in (*honest, *((portal_tricks.guest(target), target) for target in self.targets)):
            yield made, partial(_shows, target.tenant.name)

    def prepared(self) -> AbstractContextManager[object]:
        return portal_tricks.open_forms()


@dataclass(frozen=True)
class ApiAttack(HttpAttack):
    """Calls of the API: each trick on each route for each tenant, with a victim drawn from the others."""

    prefix: ClassVar[str] = "api-"
    own_settings: ClassVar[dict[str, Any]] = {"API_KEY_ATTEMPTS": 0}

    @cached_property
    def keys(self) -> LentKeys:
        return lend(self.targets)

    @cached_property
    def routes(self) -> Sequence[Route]:
        return [*api_routes()]

    @cached_property
    def plan(self) -> Sequence[tuple[Route, Target, str]]:
        return [*product(self.routes, self.targets, api_tricks.API_TRICKS)]

    def prepared(self) -> AbstractContextManager[object]:
        return self.keys.attached()

    def request(self, number: int) -> HttpRequest:
        rng = random.Random(f"{self.seed} api {number}")  # noqa: S311  # it has to be repeatable
        route, own, trick = self.plan[number]
        victim = rng.choice([target for target in self.targets if target.id != own.id])
        play = api_tricks.TrickPlay(rng, self.keys, self.visitors)
        return api_tricks.call(play, trick, own, victim, route)

    def greetings(self) -> Iterator[tuple[HttpRequest, Callable[[Any, str], bool]]]:
        listing = next(r for r in self.routes if r.scope is Scope.TICKETS_READ and "<" not in r.path)
        for target in self.targets:
            own = {row.title for row in target.summaries}
            yield (
                api_tricks.own_list(self.keys, target, listing),
                lambda answer, text, own=own: (  # type: ignore[misc]
                    answer.status_code == 200 and {one["title"] for one in answer.json().get("data", ())} <= own
                ),
            )


def _shows(name: str, answer: Any, text: str) -> bool:
    return answer.status_code == 200 and name in text
