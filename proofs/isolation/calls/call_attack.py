"""The attack on the API: every route, for every tenant, with every trick, in this process.

As with the visits, whatever a call makes the portal ask for is watched, and nothing is written. A call that has to be
refused must get the very code of its refusal: a key that is refused for another reason proves nothing about this one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.test import Client, override_settings

from proofs.isolation.calls import call_tricks
from proofs.isolation.calls.api_routes import CallableRoute, api_routes
from proofs.isolation.calls.call_tricks import ApiCall, TrickPlay
from proofs.isolation.calls.lent_keys import LentKeys, lend
from proofs.isolation.data_attack import Crossing
from proofs.isolation.oracle import Oracle
from proofs.isolation.targets import Target
from proofs.isolation.transport import Crossed
from proofs.isolation.visits.attack import HOST, Visits
from proofs.isolation.visits.foreign_texts import ForeignTexts
from proofs.isolation.visits.visitors import Visitors
from proofs.isolation.visits.watch import Watch
from tenants.api_keys.scopes import Scope

CALLS: Final = "api-"  # before the number of a call


@dataclass(frozen=True)
class CallAttack:
    """Calls by number: each trick on each route for each tenant, with a victim drawn from the others."""

    seed: int
    targets: Sequence[Target]
    visitors: Visitors
    keys: LentKeys
    routes: Sequence[CallableRoute]

    @classmethod
    def of(cls, seed: int, targets: Sequence[Target], visitors: Visitors) -> CallAttack:
        """Prepare the attack on the API as its URL configuration has it now."""
        return cls(seed, targets, visitors, lend(targets), [*api_routes()])

    @property
    def count(self) -> int:
        return len(self.routes) * len(self.targets) * len(call_tricks.TRICKS)

    def run(self, numbers: Sequence[int], calls: Visits, advance: Callable[[int], object]) -> None:
        """Make these calls, up to the first that shows a hole."""
        watch, texts = Watch({t.id: Oracle(t.id) for t in self.targets}), ForeignTexts(self.targets)
        client = Client(raise_request_exception=False)
        # A call that is refused at the door for being one too many shows nothing.
        unlimited = {"TENANT_RATES": "off", "API_KEY_ATTEMPTS": 0, "RATES_SHARED": False}
        own = {"ALLOWED_HOSTS": [*settings.ALLOWED_HOSTS, HOST], "DEBUG": False, "NOISE_NOTED": False}
        with override_settings(**own, **unlimited), watch.attached(), self.keys.attached():
            try:
                if not self._greet(client, watch, calls):
                    return
                for number in numbers:
                    made = self.call(number)
                    status = _make(client, watch, made, texts, calls, number)
                    if not status:
                        return
                    calls.routes.setdefault((made.route.path.path, made.route.method), Counter())[status] += 1
                    calls.tricks.setdefault(made.trick, Counter())[status] += 1
                    advance(1)
            finally:
                calls.withheld, calls.events, calls.asked = watch.withheld, watch.events, watch.asked

    def call(self, number: int) -> ApiCall:
        """Return the call of this number, the same for the same seed but for its keys, which are made anew."""
        rng = random.Random(f"{self.seed} api {number}")  # noqa: S311  # it has to be repeatable
        number, which = divmod(number, len(call_tricks.TRICKS))
        number, who = divmod(number, len(self.targets))
        own = self.targets[who]
        victim = rng.choice([target for target in self.targets if target.id != own.id])
        play = TrickPlay(rng, self.keys, self.visitors)
        return call_tricks.call(play, [*call_tricks.TRICKS][which], own, victim, self.routes[number])

    def _greet(self, client: Client, watch: Watch, calls: Visits) -> bool:
        """Tell whether every tenant's key gets its own tickets; else no refusal of the rest means anything."""
        listing = next(r for r in self.routes if r.scope is Scope.TICKETS_READ and "<" not in r.path.path)
        for target in self.targets:
            made = call_tricks.plain(self.keys, target, listing)
            try:
                with watch.visit(made.homes):
                    response = _send(client, made)
            except Crossed as error:
                calls.crossing = Crossing(f"{CALLS}0", str(error), made.described)
                return False
            titles = {ticket["title"] for ticket in response.json().get("data", ())}
            if response.status_code != 200 or not titles <= {row.title for row in target.summaries}:
                why = f"A tenant's own list of tickets answered {response.status_code}."
                calls.refused = Crossing(f"{CALLS}0", why, made.described)
                return False
            calls.honest += 1
        return True


def _make(client: Client, watch: Watch, made: ApiCall, texts: ForeignTexts, calls: Visits, number: int) -> str:
    """Return the status of the answer, or "" after a crossing, which is then noted under this number."""
    before = watch.withheld
    try:
        with watch.visit(made.homes):
            response = _send(client, made)
        body = unescape(response.content.decode(errors="replace"))
        body += "\n".join(f"{name}: {value}" for name, value in response.items())
        for text in texts.kept_from(made.homes, made.described):
            if text in body:
                raise Crossed(f"The answer, {response.status_code}, holds {text!r} of another tenant.")
        if made.key and made.key in body:
            raise Crossed(f"The answer, {response.status_code}, holds the key that the call was made with.")
        code = response.json()["code"] if response.status_code >= 400 else ""
        if made.refused and code != made.refused:
            raise Crossed(f"The answer is {response.status_code} {code}, and not {made.refused}.")
        if response.status_code >= 500 and watch.withheld == before:
            raise Crossed(f"The answer is {response.status_code}: the API failed.")
    except Crossed as error:
        calls.crossing = Crossing(f"{CALLS}{number}", str(error), made.described)
        return ""
    return str(response.status_code)


def _send(client: Client, made: ApiCall) -> Any:
    client.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: made.cookie} if made.cookie else {})
    path = made.path + (f"?{urlencode(made.query)}" if made.query else "")
    headers = made.headers | ({"Authorization": f"Bearer {made.key}"} if made.key else {})
    body = call_tricks.sent(made)
    kind = "application/json" if body else ""
    return client.generic(made.route.method, path, body, kind, secure=True, headers=headers)
