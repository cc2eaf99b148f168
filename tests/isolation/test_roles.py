"""From which role upwards each page of a desk opens. The table says it a second time, apart from the views."""

from __future__ import annotations

import re

import pytest

from tenants.tenancy.context import Role
from tests.isolation.test_outsider import MEMBER_ROUTES, filled
from tests.support import embedded
from tests.support.world import World

DESK = "<slug:desk>/"
TICKET = "tickets/<ticket_number:number>/"
BULKS = "tickets/bulk/jobs/"
BULK = f"{BULKS}<str:job>/"
API_KEYS = "desk/settings/api-keys/"
API_KEY = f"{API_KEYS}<str:api_key>/"
WEBHOOKS = "desk/settings/webhooks/"
ENDPOINT = f"{WEBHOOKS}<str:endpoint>/"
REQUESTERS = "requesters/"
REQUESTER = f"{REQUESTERS}<str:requester>/"
ARTICLES = "articles/"
VIEWS = "tickets/views/"
VIEW = f"{VIEWS}<str:view>/"
ARTICLE = f"{ARTICLES}<int:number>/"
VERSION = f"{ARTICLE}versions/<int:version>/"
ANSWERS = "tickets/answers/"
ANSWER = f"{ANSWERS}<str:answer>/"
LETTERS = "letters/"
LETTER = f"{LETTERS}<str:letter>/"
DELIVERY = f"{ENDPOINT}deliveries/<str:delivery>/"
RULES = "desk/settings/rules/"
RULE = f"{RULES}<str:rule>/"
PAGES = {
    Role.VIEWER: (
        "", "desk/leave/", "tickets/", "tickets/updates/", "tickets/display/", "tickets/people/", "tickets/export/",
        VIEWS, f"{VIEWS}new/", f"{VIEWS}counts/", VIEW, *(f"{VIEW}{act}/" for act in ("move", "star", "delete")),
        f"{TICKET}follow/", f"{TICKET}followers/", "desk/mail/",
        "tickets/live/", "inbox/", "inbox/mark/", "inbox/seen/",
        ARTICLES, ARTICLE,
        TICKET, f"{TICKET}next/", f"{TICKET}previous/",
        f"{TICKET}updates/", "search/", "search/suggest/", "search/commands/",
        f"{TICKET}files/", f"{TICKET}files/<str:file_id>/",
        f"{TICKET}files/<str:file_id>/preview/", f"{TICKET}linked/",
    ),
    Role.AGENT: (
        REQUESTERS, f"{REQUESTERS}new/", f"{REQUESTERS}options/", REQUESTER, f"{RULE}runs/<str:run>/",
        f"{REQUESTER}beside/<ticket_number:number>/",
        *(f"{REQUESTER}{act}/" for act in ("edit", "merge", "separate", "links/end")),
        f"{ARTICLES}new/", f"{ARTICLES}options/", VERSION, f"{VERSION}restore/",
        *(f"{ARTICLE}{act}/" for act in ("edit", "publish", "withdraw", "versions")),
        ANSWERS, f"{ANSWERS}new/", f"{ANSWERS}options/", ANSWER, f"{ANSWER}delete/", f"{TICKET}answers/<str:answer>/",
        LETTERS, f"{LETTERS}waiting/", f"{LETTERS}held/file/", LETTER,
        *(f"{LETTER}{act}/" for act in ("original", "raw", "file", "discard", "block")),
        "desk/signature/", "tickets/new/", "tickets/files/", "tickets/preview/",
        "tickets/bulk/", "tickets/bulk/undo/", "tickets/bulk/edit/", BULKS, BULK, f"{BULK}cancel/", f"{BULK}undo/",
        "tickets/dashboard/", "tickets/spam/", "tickets/spam/mark/",
        "tickets/tags/", "tickets/tags/options/",
        "tickets/people/names/", "tickets/people/options/", "tickets/away/",
        *(f"{TICKET}{change}/" for change in ("comment", "edit", "change", "assign", "requester", "links/end")),
        *(f"{TICKET}{act}/" for act in ("merge", "separate", "snooze", "spam", "spam/take-back", "wake")),
        *(f"{TICKET}comments/<str:entry>/{act}/" for act in ("edit", "delete", "split")),
        f"{TICKET}tick/", f"{TICKET}linked/add/", f"{TICKET}linked/remove/",
    ),
    Role.ADMIN: (
        f"{TICKET}redact/",
        "desk/members/", "desk/members/<str:user>/role/", "desk/members/<str:user>/remove/",
        "desk/invitations/", "desk/invitations/<str:invite>/resend/", "desk/invitations/<str:invite>/revoke/",
        "desk/audit/", "desk/audit/export/", "desk/settings/usage/",
        "desk/settings/mail/", "desk/settings/mail/sender/", "desk/settings/mail/check/",
        "desk/settings/mail/links/end/",
        *(f"desk/settings/fields/{rest}" for rest in ("", "new/", "move/", "<slug:field_id>/")),
        *(f"desk/settings/fields/kinds/{rest}" for rest in ("new/", "<slug:kind_id>/")),
        RULES, f"{RULES}new/", RULE,
        *(f"{RULE}{act}/" for act in ("edit", "switch", "delete", "runs")),
        f"{RULE}rehearsal/", f"{RULE}rehearsal/cancel/",
        *(f"desk/settings/groups/{rest}" for rest in ("", "new/", "people/<str:user_id>/")),
        *(f"desk/settings/groups/<slug:group_id>/{rest}" for rest in ("", "delete/")),
        "desk/settings/public/", "desk/settings/public/looks/", "desk/settings/public/preview/",
        "desk/settings/targets/",
        f"{ARTICLE}delete/", *(f"{ARTICLES}sections/{rest}" for rest in ("", "<str:section>/", "<str:section>/move/")),
        f"{LETTERS}reconcile/", "tickets/files/usage/", f"{TICKET}files/<str:file_id>/remove/",
        "tickets/tags/edit/", "tickets/past/", "tickets/past/restore/", f"{TICKET}past/", f"{TICKET}redact/",
        "desk/members/past/",
        "desk/members/past/restore/",
        "tickets/handover/", "tickets/handover/<str:user>/", "tickets/dashboard/verified/",
        "tickets/reports/", "tickets/reports/file/", "tickets/reports/mail/",
        API_KEYS, f"{API_KEYS}new/", API_KEY, *(f"{API_KEY}{act}/" for act in ("edit", "roll", "revoke")),
        WEBHOOKS, f"{WEBHOOKS}new/", f"{WEBHOOKS}events/", ENDPOINT, DELIVERY, f"{DELIVERY}redeliver/",
        *(f"{ENDPOINT}{act}/" for act in ("edit", "rotate", "pause", "resume", "remove", "test", "redeliver")),
    ),
    Role.OWNER: (
        "desk/settings/", "desk/settings/defaults/", "desk/settings/access/",
        "desk/settings/costs/", "desk/settings/costs/file/",
        "desk/settings/close/", "desk/settings/close/undo/",
        "desk/settings/sign-in/",
        *(f"desk/settings/isolation/{page}" for page in ("", "attack/", "stop/", "files/<str:run>/")),
        *(f"desk/evidence/{page}" for page in ("", "verify/", "download/", "end/")), "desk/access-review/",
        "desk/auditors/", "desk/auditors/<str:user>/until/", "desk/auditors/<str:user>/end/",
        "desk/settings/isolation/",
        *(f"desk/settings/isolation/{act}/" for act in ("attack", "stop", "files/<str:run>")),
        "desk/settings/export/",
        *(f"desk/settings/export/{act}/" for act in ("ask", "cancel", "download", "files/<str:part>")),
        "desk/settings/person/", "desk/settings/person/export/", "desk/settings/person/erase/",
        "tickets/dashboard/verify/", "tickets/dashboard/verify/stop/", "tickets/reports/letter/",
    ),
}  # fmt: skip
LEAST = {page: role for role, pages in PAGES.items() for page in pages}
PEOPLE = {Role.VIEWER: "vera", Role.AGENT: "bob", Role.ADMIN: "ada", Role.OWNER: "alice"}
BELOW = {Role.AGENT: Role.VIEWER, Role.ADMIN: Role.AGENT, Role.OWNER: Role.ADMIN}


@pytest.fixture(scope="module")
def desk() -> World:
    """One world for all pages: whoever is refused changes nothing."""
    embedded.make_empty()
    world = embedded.world(shards=1)
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    world.tickets("acme", 8)
    return world


def test_the_table_has_each_page_of_a_desk() -> None:
    assert LEAST.keys() == {route.removeprefix(DESK) for route, _ in MEMBER_ROUTES if route.startswith(DESK)}


@pytest.mark.parametrize("role", BELOW)
def test_a_page_refuses_the_role_below_its_own(desk: World, role: Role) -> None:
    browser = desk.browser(PEOPLE[BELOW[role]], "acme")
    for page in PAGES[role]:
        address = filled(DESK + page)
        for answer in (browser.get(address), browser.send(address)):
            assert answer.status_code == 403, page
            said = re.sub(r"\s+", " ", answer.content.decode())
            needed = role.label if role is Role.OWNER else f"{role.label} or above"
            assert f"This needs the role {needed}." in said, page


@pytest.mark.parametrize("role", PEOPLE)
def test_a_page_opens_to_its_own_role(desk: World, role: Role) -> None:
    browser = desk.browser(PEOPLE[role], "acme")
    for page in PAGES[role]:
        assert browser.get(filled(DESK + page)).status_code != 403, page
