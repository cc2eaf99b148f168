"""The attack on the portal itself: every address of the URL configuration, with real sessions, in this process.

Written against Django's test client because it goes through every middleware, without a socket in between.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.test import Client, override_settings

from proofs.isolation.data_attack import Crossing
from proofs.isolation.oracle import Oracle
from proofs.isolation.targets import Target
from proofs.isolation.transport import Crossed
from proofs.isolation.visits import tricks
from proofs.isolation.visits.foreign_texts import ForeignTexts
from proofs.isolation.visits.routes import Route, routes
from proofs.isolation.visits.visit import Visit, plain
from proofs.isolation.visits.visitors import Visitor, Visitors
from proofs.isolation.visits.watch import Watch
from tenants.membership import mails

HOST: Final = "testserver"
_HTTP: Final = "http-"  # before the number of a visit


@dataclass
class Visits:
    """Count what was visited, and what the portal answered: (route, method) to statuses; (trick) to statuses."""

    routes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    tricks: dict[str, Counter[str]] = field(default_factory=dict)
    honest: int = 0
    withheld: int = 0
    events: int = 0
    asked: int = 0
    crossing: Crossing | None = None
    refused: Crossing | None = None

    @property
    def total(self) -> int:
        return sum((c.total() for c in self.routes.values()), self.honest)


@dataclass(frozen=True)
class Attack:
    """Visits by number; the first ones go to each address for each tenant, by GET and by POST."""

    seed: int
    targets: Sequence[Target]
    visitors: Visitors

    @cached_property
    def _known(self) -> Sequence[Route]:
        return [*routes()]

    @property
    def least(self) -> int:
        return len(self._known) * len(self.visitors.members) * 2 * len(tricks.PASSES)

    def run(self, numbers: Sequence[int], visits: Visits, advance: Callable[[int], object]) -> None:
        """Make these visits, up to the first that shows a hole."""
        watch = Watch({t.id: Oracle(t.id) for t in self.targets})
        browser = Client(raise_request_exception=False)
        secret = ForeignTexts(self.targets)
        hosts = [*settings.ALLOWED_HOSTS, HOST]
        nowhere = "django.core.mail.backends.dummy.EmailBackend"
        # A visit that is refused at the door for being one too many shows nothing.
        own = {
            "ALLOWED_HOSTS": hosts,
            "DEBUG": False,
            "EMAIL_BACKEND": nowhere,
            "TENANT_RATES": "off",
            "RATES_SHARED": False,
            "NOISE_NOTED": False,  # nor is it a tenant's noise
            "PORTAL_BASE_URL": f"https://{HOST}",  # without which no mail can be written outside of DEBUG
        }
        with override_settings(**own), watch.attached():
            try:
                if not self._greet(browser, watch, visits, secret):
                    return
                for number in numbers:
                    visit = self.visit(number)
                    status, _ = _make(browser, watch, visit, secret, visits, number)
                    if not status:
                        return
                    visits.routes.setdefault((visit.route.path or "/", visit.method), Counter())[status] += 1
                    for trick in visit.tricks or ("numbers and names only",):
                        visits.tricks.setdefault(trick, Counter())[status] += 1
                    advance(1)
            finally:
                mails.wait_until_sent()
                visits.withheld, visits.events, visits.asked = watch.withheld, watch.events, watch.asked

    def visit(self, number: int) -> Visit:
        rng = random.Random(f"{self.seed} http {number}")  # noqa: S311  # it has to be repeatable
        people, known = [*self.visitors.members.values()], self._known
        if number < self.least:
            number, which = divmod(number, len(tricks.PASSES))
            number, who = divmod(number, len(people))
            visitor, route, method = people[who], known[number // 2], ("GET", "POST")[number % 2]
            names: Sequence[str] = tricks.PASSES[which]
        else:
            visitor, method, names = rng.choice(people), rng.choice(["GET", "GET", "POST", "HEAD"]), tricks.some(rng)
            (route,) = rng.choices(known, [r.weight for r in known])
        return tricks.visit(rng, visitor, self._victim(rng, visitor), self.visitors, route, method, names)

    def _victim(self, rng: random.Random, visitor: Visitor) -> Target:
        strangers = [t for t in self.targets if t.id not in visitor.homes]
        return rng.choice(strangers or [t for t in self.targets if t.id != visitor.target.id])

    def _greet(self, browser: Client, watch: Watch, visits: Visits, secrets: ForeignTexts) -> bool:
        """Tell whether every visitor sees the own queue; else no refusal of the rest means anything."""
        for visitor in self.visitors.members.values():
            visit = plain(visitor)
            status, body = _make(browser, watch, visit, secrets, visits, 0)
            if not status:
                return False
            if status != "200" or visitor.target.tenant.name not in body:
                visits.refused = Crossing(f"{_HTTP}0", f"A member's own queue answered {status}.", visit.described)
                return False
            visits.honest += 1
        return True


def _make(
    browser: Client, watch: Watch, visit: Visit, secrets: ForeignTexts, visits: Visits, number: int
) -> tuple[str, str]:
    """Return status and text of the answer, or "" for both after a crossing, which is then noted under this number."""
    try:
        with watch.visit(visit.homes):
            response = _send(browser, visit)
        body = unescape(getattr(response, "content", b"").decode(errors="replace"))
        body += "\n".join(f"{name}: {value}" for name, value in response.items())
        for text in secrets.kept_from(visit.homes, visit.described):
            if text in body:
                status = response.status_code
                raise Crossed(f"The answer, {status}, holds {text!r} of a tenant that the visitor is not in.")
        if response.status_code >= 500:
            raise Crossed(f"The answer is {response.status_code}: the portal failed, which is no refusal.")
    except Crossed as error:
        visits.crossing = Crossing(f"{_HTTP}{number}", str(error), visit.described)
        return "", ""
    return str(response.status_code), body


def _send(browser: Client, visit: Visit) -> Any:
    browser.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: visit.cookie})
    path = visit.path + (f"?{urlencode(visit.query, doseq=True)}" if visit.query else "")
    data = urlencode(visit.form if visit.method == "POST" else {}, doseq=True)
    headers: dict[str, Any] = dict(visit.headers)
    return browser.generic(visit.method, path, data, "application/x-www-form-urlencoded", secure=True, **headers)
