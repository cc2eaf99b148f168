"""Charlie, who belongs only to Globex, walks every route of the portal against Acme's objects.

The routes are read from the URL configuration: a new one is walked without a change here. A route with a
parameter that the walk does not know fails, so that nobody adds one unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from portal import clock
from portal.dynamo import meter
from portal.nosql import session_store, stored
from portal.objects.object_store import ObjectStore
from portal.web.access import Access
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.membership import invitations
from tenants.sign_in import accounts
from tenants.tenancy.context import Role
from tests.desk.test_cost import _watching
from tests.public_form.conftest import open_form
from tests.support import embedded
from tests.support.api_client import api_client
from tests.support.api_keys import make_key
from tests.support.articles import published
from tests.support.world import PASSWORD, Browser, World
from tickets.articles import articles
from tickets.attachments import attachments
from tickets.bulk_jobs import bulk_requests
from tickets.desk import changing, commenting, creating
from tickets.desk.many import TicketEdit
from tickets.letters import ledger
from tickets.letters import stored as letter_keys
from tickets.letters.envelope import Envelope
from tickets.public_form import challenges
from tickets.ready_answers import answer_changes, answer_reading
from tickets.ready_answers.answer_reading import Given
from tickets.requesters import requesters
from tickets.rules import rehearsal_requests, rule_changes
from tickets.rules import stored as rule_keys
from tickets.rules.stored import RunItem
from tickets.ticket.causes import Cause

# Values of Acme's for each route parameter. Acme has tickets up to 12, Globex has none. The fixture `acme` puts a real
# member and a real invitation in.
ACMES = {
    "rule": f"rule_{'0' * 20}",
    "run": f"{'0' * 20}-{'0' * 32}-7",
    "desk": "acme",
    "slug": "acme",
    "rest": "7/",
    "number": "7",
    "version": "1",
    "field_id": "text_1",
    "kind_id": "kind_1",
    "group_id": "group_1",
    "user_id": "d" * 32,
    "section": "abc0123456789",
    "view": "abc012345678",
    "words": "decoration",
    "uid": "MQ",
    "token": "abc-def",
    "object_id": "a" * 32,
    "app_label": "tenants",
    "user": "d" * 32,
    "member_id": "d" * 32,
    "webhook_id": "ep_0123456789abcdef",
    "requester": f"rq_{'d' * 32}",
    "letter": "d" * 48,
    "letter_id": "d" * 48,
    "requester_id": f"rq_{'d' * 32}",
    "entry": "0123456789ab",
    "job": "0" * 20,
    "job_id": "0" * 20,
    "kind": "blocks",
    "other": "8",
    "answer_id": f"ra_{'d' * 32}",
    "answer": f"ra_{'d' * 32}",
    "file_id": "d" * 32,
    "part": "a",
    "invite": "e" * 32,
    "session": "f" * 32,
    "passkey": "f" * 32,
    "endpoint": "ep_0123456789abcdef",
    "api_key": "Ab0Cd1Ef",
    "delivery": f"evt_{'1' * 32}_0.2026-01-31T12:00:00.000000Z",
}
SECRET = "Acme's secret"
VERSION = 2  # of ticket 7, which was assigned to Bob
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}


def routes(patterns: list[URLPattern | URLResolver] | None = None, prefix: str = "") -> Iterator[tuple[str, object]]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern).lstrip("^").rstrip("$")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        else:
            yield path, pattern.callback


def filled(route: str, desk: str = "acme") -> str:
    """The route's address for what is Acme's, at the desk of this name."""
    values = ACMES | {"desk": desk}
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: values[m[1]], route)


ALL_ROUTES = list(routes())
# Those of the operators' admin are many and alike: they are walked by one test each, in one world.
ROUTES = [(r, v) for r, v in ALL_ROUTES if v.access.level not in ("operator", "api")]  # type: ignore[attr-defined]
OPERATOR_ROUTES = [r for r, v in ALL_ROUTES if v.access.level == "operator"]  # type: ignore[attr-defined]
MEMBER_ROUTES = [(r, v.access) for r, v in ROUTES if v.access.level == "member"]  # type: ignore[attr-defined]
# Those of the API know no cookie: they are walked with a key of Globex that has every scope.
API_CALLS = [(r, m) for r, v in ALL_ROUTES if v.access.level == "api" for m in v.access.scopes]  # type: ignore[attr-defined]
GUEST_ROUTES = [r for r, v in ROUTES if v.access.level == "guest"]  # type: ignore[attr-defined]
OWN_ROUTES = [r for r, v in ROUTES if v.access.level == "signed_in" and "<" in r]  # type: ignore[attr-defined]
DESK_ROUTES = [r for r, _ in MEMBER_ROUTES if r.startswith("<slug:desk>/")]
OBJECT_ROUTES = [r for r in DESK_ROUTES if r.count("<") > 1]
# Addresses without a desk's name, which lead to the pinned desk's and show nothing themselves.
WITHOUT_DESK = {
    f"{part}/<anything:rest>" for part in ("tickets", "search", "requesters", "articles", "letters", "desk")
}

FORM = {
    "title": "Stolen",
    "body": "Stolen",
    "priority": "low",
    "status": "closed",
    "to": "closed",
    "resolver": "me",
    "version": "2",
    "role": "viewer",
    "tickets": ["7.2.open."],
    "request_id": "c" * 32,
    "name": "Stolen",
    "scopes": ["tickets:read"],
    "grace": "0",
    "change": "follow",
}


@pytest.fixture(scope="module")
def acme() -> World:
    """One world for all: whatever an outsider does changes nothing."""
    embedded.make_empty()
    world = embedded.world(shards=1)
    accounts.create(email="root@example.com", name="Root", password=PASSWORD, is_operator=True, by=SYSTEM)
    alice = world.context("alice", "acme")
    for n in range(12):
        creating.create(alice, title=f"{SECRET} {n}", description=SECRET)
    by = Actor(alice.user_id)
    ACMES["job"] = ACMES["job_id"] = bulk_requests.ask(
        alice, TicketEdit.of({}, add_tags=[SECRET.lower()]), numbers={7: None}, by=by
    )
    (outcome,) = invitations.invite_all(alice, addresses=["acmes-secret@example.com"], role=Role.AGENT, by=by)
    assert outcome.sent is not None
    ACMES["user"], ACMES["invite"] = world.users["bob"].id, outcome.sent.invite.invite_id
    ACMES["session"] = stored.session(world.browser("bob", "acme").session_key)
    ACMES["api_key"] = make_key(alice)[0].api_key_prefix
    ACMES["requester"] = requesters.ensure(alice, "acmes-secret@example.org", name=SECRET).id
    ACMES["requester_id"] = ACMES["requester"]
    arrived = Envelope("acmes-secret", SECRET, (SECRET,), clock.stamp())
    waiting = ledger.new(alice.repository, ACMES["letter"], arrived, size=9, subject=SECRET)
    ledger.note(alice.repository, waiting, state=ledger.WAITING, reason=SECRET, open_to_people=True)
    own = ObjectStore("tenant", alice.tenant_id)
    own.put(letter_keys.raw_key(alice.tenant_id, arrived.name), f"Subject: {SECRET}".encode(), about=arrived.about())
    open_form(world)
    for number in range(8):  # only the last one is for guests
        published(alice, "Hours" if number == 7 else SECRET, public=number == 7)
    kept = answer_changes.create(alice, Given(SECRET, "secret", SECRET), shared=True, by=SYSTEM)
    ACMES["answer"] = ACMES["answer_id"] = kept.answer_id
    rule = rule_changes.create(alice, SECRET, {"then": {"add_tags": [SECRET.lower()]}}, by=by)
    rehearsal_requests.ask(alice, rule, by=by)
    cause = Cause(rule.rule_id, 1, rule_keys.event_id(clock.stamp(), "0" * 32), 1)
    ACMES["rule"] = ACMES["rule_id"] = rule.rule_id
    ACMES["run"] = ACMES["run_id"] = cause.run_id(7)
    run = RunItem(alice.repository.key(rule_keys.runs), rule_keys.run(rule.rule_id, ACMES["run"]), expires_at=2**40)
    run.rule_id, run.run_id, run.version, run.number = rule.rule_id, ACMES["run"], 1, 7
    run.event, run.cause, run.at = "created", str(cause), clock.stamp()
    alice.repository.put(run)
    file = attachments.store(alice, f"{SECRET}.txt", SECRET.encode())
    commenting.comment(alice, 7, body=SECRET, files=[file])
    ACMES["file_id"] = file.id
    changing.assign(alice, 7, to=world.users["bob"].id, version=1)
    return world


def test_the_walk_knows_the_portals_routes() -> None:
    assert len(ROUTES) > 15
    assert len(OBJECT_ROUTES) >= 5
    assert "account/sessions/<str:session>/end/" in OWN_ROUTES
    assert len(OPERATOR_ROUTES) >= 30
    assert ("api/v1/tickets", "GET") in API_CALLS


def test_every_page_of_a_desk_has_its_name_in_the_address() -> None:
    assert {r for r, _ in MEMBER_ROUTES} - {*DESK_ROUTES} == WITHOUT_DESK
    assert [r for r, v in ALL_ROUTES if "<slug:desk>" in r and v.access.level != "member"] == []  # type: ignore[attr-defined]


# Each walk is one test, whose message names the route: nobody who walks changes anything that the next route would see.


def test_every_route_says_who_may_call_it() -> None:
    assert [r for r, view in ALL_ROUTES if not isinstance(getattr(view, "access", None), Access)] == []


def test_a_visitor_is_sent_to_sign_in(acme: World) -> None:
    visitor = Client()
    for route, _ in MEMBER_ROUTES:
        response = visitor.get(filled(route))
        assert (response.status_code, response.headers.get("Location", "")[:7]) == (302, "/login/"), route


def test_acmes_address_is_to_an_outsider_as_that_of_a_desk_that_does_not_exist(acme: World) -> None:
    browser = acme.browser("charlie")
    for route in DESK_ROUTES:
        with _watching() as bills:
            answers = [browser.get(filled(route, desk)) for desk in ("acme", "nowhere")]
        assert [a.status_code for a in answers] == [404, 404], route
        assert _without_token(answers[0]) == _without_token(answers[1]), route
        at_acmes, nowhere = [[(c.operation, c.table) for c in bill.calls] for bill in bills]
        assert at_acmes == nowhere, route


def test_a_form_sent_to_acmes_address_does_not_arrive_there(acme: World) -> None:
    browser, mark = acme.browser("charlie"), acme.context("bob", "acme").page_mark
    for route in DESK_ROUTES:
        with _watched() as operations:
            with_own_mark = browser.send(filled(route), FORM)
            with_acmes_mark = browser.post(filled(route), {**FORM, "_page": mark})
        assert (with_own_mark.status_code, with_own_mark["Location"]) == (307, filled(route, "globex")), route
        assert with_acmes_mark.status_code == 409, route
        assert not operations & WRITES, route


def test_an_outsider_finds_nothing_of_acmes(acme: World) -> None:
    browser, before = acme.browser("charlie"), _acmes_own(acme)
    for route in OBJECT_ROUTES:
        read, written = browser.get(filled(route, "globex")), browser.send(filled(route, "globex"), FORM)
        assert read.status_code in (404, 405), route
        assert written.status_code in (404, 405), route
        assert SECRET not in read.content.decode() + written.content.decode(), route
    assert _acmes_own(acme) == before


def _acmes_own(acme: World) -> tuple[object, ...]:
    """What an outsider could have changed by a route: a member's role, an invitation, a ticket, a requester."""
    alice = acme.context("alice", "acme")
    pending = [invite.invite_id for invite in invitations.pending(alice.repository)]
    person = requesters.find(alice, ACMES["requester"])
    article = articles.draft(alice, 7).edit
    answer = answer_reading.read(alice, ACMES["answer"]).version
    return acme.context("bob", "acme").role, pending, changing.read(alice, 7).version, person, article, answer


def test_what_is_a_persons_own_is_nobody_elses(acme: World) -> None:
    """Charlie, and Alice, who owns the desk that Bob works in, get at nothing of Bob's own."""
    before = session_store.of_user(acme.users["bob"].id)
    for route in OWN_ROUTES:
        for browser in (acme.browser("charlie"), acme.browser("alice", "acme")):
            browser.get(filled(route))
            browser.send(filled(route), FORM)
        now = session_store.of_user(acme.users["bob"].id)
        assert [s.session_key for s in now] == [s.session_key for s in before] != [], route


def test_no_page_of_another_tenant_shows_anything_of_acmes(acme: World) -> None:
    browser, tenant_id = acme.browser("charlie"), acme.tenants["acme"].tenant_id
    hints = {"HTTP_X_TENANT_ID": tenant_id, "HTTP_X_TENANT": "acme"}
    query = f"?tenant={tenant_id}&tenant_id={tenant_id}&slug=acme"
    for route, _ in MEMBER_ROUTES:
        response = browser.get(filled(route, "globex") + query, **hints)  # type: ignore[arg-type]
        assert SECRET not in response.content.decode(), route
        assert tenant_id not in response.content.decode(), route


def test_reading_never_writes(acme: World) -> None:
    for browser in (acme.browser("alice", "acme"), Client()):
        for route, _ in ROUTES:
            with meter.measure() as outer:
                calls = _calls_of(browser, filled(route))
            assert not {c.operation for c in calls} & WRITES, route
            assert not {c.operation for c in outer.calls} & WRITES, route


def _without_token(response: object) -> str:
    """The page without the token against forgery, which is another one each time."""
    page: str = response.content.decode()  # type: ignore[attr-defined]
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)


def test_the_api_lets_nobody_in_by_a_cookie(acme: World) -> None:
    browser = acme.browser("alice", "acme")
    for route, method in API_CALLS:
        with _watched() as operations:
            answer: Any = browser.generic(method, filled(route), b"{}", "application/json")
        assert (answer.status_code, answer.json()["code"]) == (401, "key_missing"), (method, route)
        assert not operations, (method, route)


def test_a_key_of_another_tenant_finds_nothing_of_acmes(acme: World) -> None:
    client = api_client(acme, where="globex")
    for route, method in API_CALLS:
        answer = client.call(method, filled(route), {}, api="")
        assert SECRET not in answer.content.decode(), (method, route)
        assert acme.tenants["acme"].tenant_id not in answer.content.decode(), (method, route)
        if "<" in route:
            assert answer.status_code in (404, 422), (method, route)
    assert changing.read(acme.context("alice", "acme"), 7).version == VERSION


@contextmanager
def _watched() -> Iterator[set[str]]:
    """The operations of the requests that are made inside."""
    operations: set[str] = set()
    with _watching() as bills:
        yield operations
    operations |= {c.operation for bill in bills for c in bill.calls}


def _calls_of(browser: Client, path: str) -> list[meter.Call]:
    with _watching() as bills:
        browser.get(path)
    return [c for bill in bills for c in bill.calls]


def test_every_unsafe_route_wants_a_csrf_token(acme: World) -> None:
    browser = acme.browser("alice", "acme")
    browser.handler.enforce_csrf_checks = True
    browser.at_desk = str  # type: ignore[method-assign]  # each address as it stands
    for route, _ in [r for r in ROUTES if r[0] not in GUEST_ROUTES]:
        response = browser.post(filled(route), FORM)
        assert response.status_code in (403, 405), route
        assert response.status_code == 403 or "POST" not in response.headers["Allow"], route


# --- pages of people outside the desks ---


def test_guests_see_nothing_of_a_desk_that_is_not_public_and_get_no_cookie(acme: World) -> None:
    visitors = {"nobody": Client(), "a member": acme.browser("bob", "acme"), "another": acme.browser("charlie")}
    for route in GUEST_ROUTES:
        for who, browser in visitors.items():
            for answer in (browser.get(filled(route)), browser.post(filled(route), FORM)):
                page = answer.content.decode()
                assert not answer.cookies, (route, who)
                assert SECRET not in page, (route, who)
                assert acme.tenants["acme"].tenant_id not in page, (route, who)
                assert "Example" not in page, f"{route} names somebody to {who}"


def test_forged_challenges_and_tokens_of_guests_write_nothing(acme: World) -> None:
    globex = challenges.issue(acme.context("charlie", "globex"), bits=0).text
    forged = {"challenge": globex, "proof": "0", "email": "eve@example.org", "subject": "Stolen"}
    forged["files"] = ACMES["file_id"]
    for route in GUEST_ROUTES:
        with _watched() as operations:
            answer = Client().post(f"{filled(route)}?challenge={globex}", {**FORM, **forged})
        assert answer.status_code in (404, 405, 422), route
        assert not operations & WRITES, route


def test_a_desk_without_public_pages_is_to_guests_as_one_that_does_not_exist(acme: World) -> None:
    for route in [r for r in GUEST_ROUTES if "<slug:slug>" in r]:
        answers = [Client().get(filled(route).replace("/acme/", f"/{desk}/")) for desk in ("globex", "nowhere")]
        assert {a.status_code for a in answers} <= {404, 405}, route
        assert answers[0].content == answers[1].content, route


# --- the operators' admin ---


def test_who_owns_a_tenant_and_is_no_operator_is_forbidden_everywhere_in_the_admin(acme: World) -> None:
    browser = acme.browser("alice", "acme")
    before = acme.context("alice", "acme")
    objects = [acme.tenants["acme"].tenant_id, acme.users["bob"].id]
    objects += [f"{objects[0]}_2F{objects[1]}", f"{objects[0]}_2F7", ACMES["session"]]
    with _watched() as operations:
        for route in OPERATOR_ROUTES:
            for object_id in objects if "object_id" in route else objects[:1]:
                path = filled(route).replace(ACMES["object_id"], object_id)
                for response in (browser.get(path), browser.send(path, {**FORM, "_suspend": "1", "post": "yes"})):
                    assert response.status_code == 403, path  # type: ignore[attr-defined]
                    assert SECRET not in response.content.decode()  # type: ignore[attr-defined]
    assert not operations & WRITES
    assert acme.context("alice", "acme") == before


def test_a_visitor_of_the_admin_is_sent_to_sign_in(acme: World) -> None:
    for route in OPERATOR_ROUTES:
        response = Client().get(filled(route))
        assert (response.status_code, response["Location"][:7]) == (302, "/login/"), route


def test_every_unsafe_route_of_the_admin_wants_a_csrf_token(acme: World) -> None:
    browser = Browser()
    browser.sign_in("root@example.com")
    browser.handler.enforce_csrf_checks = True
    for route in OPERATOR_ROUTES:
        assert browser.post(filled(route), FORM).status_code in (403, 405), route
