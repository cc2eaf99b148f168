"""Tell every template who is signed in, for which tenant, and in which section."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop

from portal.web import desk_prefix, locales, price_presenters
from portal.web.middleware import tells_cost
from tenants.tenancy.context import Role, TenantContext


@dataclass(frozen=True)
class DeskPage:
    """A page of the desk's own navigation, for members from `role` on. `also` are the routes that lead on from it."""

    name: str
    title: str
    route: str
    also: tuple[str, ...] = ()
    role: Role = Role.ADMIN
    for_auditors: bool = field(default=False, kw_only=True)

    def is_open_to(self, role: Role) -> bool:
        """Tell whether somebody with this role may open the page."""
        return self.for_auditors if role is Role.AUDITOR else role.at_least(self.role)

    @property
    def label(self) -> str:
        return locales.said(self.title)


@dataclass(frozen=True)
class MainPage(DeskPage):
    """A page of the main navigation. The keys g and `key` lead to it."""

    role: Role = Role.VIEWER
    icon: str = ""
    key: str = ""
    shortcut: str = ""  # the effect of the keys, for the list of all shortcuts

    @property
    def leads(self) -> str:
        return locales.said(self.shortcut)


def _with_steps(route: str, *steps: str) -> tuple[str, ...]:
    return tuple(f"{route}_{step}" for step in steps)


# What the desk has beside its tickets, in groups: the navigation of each of these pages is made of it.
DESK_PAGES: Final[dict[str, tuple[DeskPage, ...]]] = {
    gettext_noop("People"): (
        DeskPage(
            "members", gettext_noop("Members"), "tenants:members",
            (*_with_steps("tenants:member", "role", "remove"), "tickets:handover", "tickets:handovers"),
        ),
        DeskPage(
            "groups", gettext_noop("Groups"), "tickets:groups",
            ("tickets:group", "tickets:group_new", "tickets:group_agent"),
        ),
        DeskPage("invitations", gettext_noop("Invitations"), "tenants:invitations", ("tenants:invitation_revoke",)),
    ),
    gettext_noop("Developers"): (
        DeskPage(
            "api_keys", gettext_noop("API keys"), "tenants:api_keys",
            ("tenants:api_key", *_with_steps("tenants:api_key", "new", "edit", "roll", "revoke")),
        ),
        DeskPage(
            "webhooks", gettext_noop("Webhooks"), "delivery:webhooks",
            ("delivery:webhook", *_with_steps("delivery:webhook", "delivery", "events", "new", "edit")),
        ),
    ),
    gettext_noop("Security"): (
        DeskPage("audit", gettext_noop("Audit trail"), "tenants:audit", for_auditors=True),
        DeskPage(
            "evidence", gettext_noop("Evidence"), "tenants:evidence", ("tenants:evidence_verify",), Role.OWNER,
            for_auditors=True,
        ),
        DeskPage(
            "review", gettext_noop("Access review"), "tenants:access_review", role=Role.OWNER, for_auditors=True
        ),
        DeskPage("auditors", gettext_noop("Auditors"), "tenants:auditors", role=Role.OWNER),
        DeskPage("sign_in", gettext_noop("Signing in"), "tenants:settings_sign_in", role=Role.OWNER),
        DeskPage(
            "isolation", gettext_noop("Isolation"), "tickets:isolation",
            _with_steps("tickets:isolation", "attack", "stop"), Role.OWNER, for_auditors=True,
        ),
        DeskPage(
            "access", gettext_noop("Access by the platform"), "tenants:platform_access", role=Role.OWNER,
            for_auditors=True,
        ),
    ),
    gettext_noop("Data"): (
        DeskPage(
            "past", gettext_noop("Time machine"), "tickets:past",
            ("tickets:past_restore", "tenants:past_members", "tenants:past_members_restore"),
        ),
        DeskPage(
            "export", gettext_noop("Export"), "tickets:desk_export",
            _with_steps("tickets:desk_export", "ask", "cancel", "download"), Role.OWNER,
        ),
        DeskPage(
            "person", gettext_noop("A person\u2019s data"), "tickets:person", ("tickets:person_erase",), Role.OWNER,
        ),
    ),
    gettext_noop("Settings"): (
        DeskPage(
            "settings", gettext_noop("Name and defaults"), "tenants:settings", ("tenants:settings_defaults",),
            Role.OWNER,
        ),
        DeskPage("mail", gettext_noop("Mail"), "tickets:mail_settings", _with_steps("tickets:mail", "sender", "check")),
        DeskPage(
            "public_form", gettext_noop("Public form"), "tickets:public_pages",
            ("tickets:public_looks", "tickets:public_form_preview"),
        ),
        DeskPage(
            "custom_fields", gettext_noop("Fields and kinds"), "tickets:custom_fields",
            ("tickets:custom_field", "tickets:custom_field_new", "tickets:ticket_kind", "tickets:ticket_kind_new"),
        ),
        DeskPage("sla", gettext_noop("Targets"), "tickets:sla"),
        DeskPage(
            "rules", gettext_noop("Rules"), "tickets:rules",
            ("tickets:rule", "tickets:rule_new", "tickets:rule_edit", "tickets:rule_runs", "tickets:rule_rehearsal"),
        ),
        DeskPage("usage", gettext_noop("Usage"), "tenants:usage"),
        DeskPage("costs", gettext_noop("Costs"), "tickets:costs", role=Role.OWNER),
        DeskPage("close", gettext_noop("Close the desk"), "tenants:close", role=Role.OWNER),
    ),
}  # fmt: skip
_REQUESTER_PAGES: Final = ("tickets:requester", "tickets:requester_new", "tickets:requester_edit")
_LETTER_PAGES: Final = ("tickets:letters_waiting", "tickets:letter")
_ARTICLE_PAGES: Final = (
    *("tickets:article", "tickets:article_edit", "tickets:answers"),
    *("tickets:answer", "tickets:answer_new", "tickets:answer_delete"),
)
MAIN_PAGES: Final = (
    MainPage(
        "queue", gettext_noop("Queue"), "tickets:queue",
        icon="list", key="q", shortcut=gettext_noop("Go to the queue"),
    ),
    MainPage(
        "dashboard", gettext_noop("Dashboard"), "tickets:dashboard", ("tickets:reports", "tickets:monthly-letter"),
        Role.AGENT, "chart", "d", gettext_noop("Go to the dashboard"),
    ),
    MainPage(
        "requesters", gettext_noop("Requesters"), "tickets:requesters", _REQUESTER_PAGES, Role.AGENT, "comment", "r",
        gettext_noop("Go to the requesters"),
    ),
    MainPage(
        "letters", gettext_noop("Mail"), "tickets:letters", _LETTER_PAGES, Role.AGENT, "mail", "m",
        gettext_noop("Go to the mail"),
    ),
    MainPage(
        "articles", gettext_noop("Articles"), "tickets:articles", _ARTICLE_PAGES,
        icon="book", key="a", shortcut=gettext_noop("Go to the articles"),
    ),
)  # fmt: skip
_SECTIONS: Final = {
    "tickets:new": "new",
    **dict.fromkeys(("tenants:account", "tenants:profile", "tenants:password_change", "tenants:security"), "account"),
    "tickets:inbox": "inbox",
    **dict.fromkeys(("tenants:authenticator_add", "tenants:recovery_codes"), "account"),
    "tenants:pick": "pick",
    **{route: one.name for one in chain(MAIN_PAGES, *DESK_PAGES.values()) for route in (one.route, *one.also)},
}

_OF_DESK: Final = frozenset(one.name for pages in DESK_PAGES.values() for one in pages)


def page(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    tenant: TenantContext | None = getattr(request, "tenant", None)
    match = request.resolver_match
    nav = _SECTIONS.get(match.view_name, "") if match else ""
    return {
        "user": user if user is not None and user.is_authenticated else None,
        "tenant": tenant,
        "acting": getattr(request, "acting", None),
        "price_place": _price_place(request, tenant),
        "nav": nav,
        "inbox_unread": (unread := _unread(tenant)),
        "inbox_count": len(unread),
        "desk_mail": (mail := _mail(tenant)),
        "main_pages": _main_pages(tenant, mail),
        "is_desk": nav in _OF_DESK,
        "desk_groups": lambda: _groups(tenant, nav),  # called by the templates that have the navigation
    }


def title_of(route: str) -> str:
    """Return the title of a page of the navigation in English, also of its files, "" for another route. It is
    translated where it is read."""
    pages = (one for pages in DESK_PAGES.values() for one in pages)
    return next((one.title for one in pages if route == one.route or route.startswith(f"{one.route}_")), "")


def _price_place(request: HttpRequest, tenant: TenantContext | None) -> str:
    if tenant is not None and tenant.is_owner:
        return price_presenters.place(desk_prefix.address("tickets:costs"))
    return price_presenters.place() if tells_cost(request) else ""


def _main_pages(tenant: TenantContext | None, mail: dict[str, Any] | None) -> tuple[MainPage, ...]:
    if tenant is None:
        return MAIN_PAGES[:1]
    return tuple(one for one in MAIN_PAGES if one.is_open_to(tenant.role) and (mail or one.name != "letters"))


def _mail(tenant: TenantContext | None) -> dict[str, Any] | None:
    """Return the number of letters that wait, for those who can file them; None where no mail comes in."""
    if tenant is None or not tenant.is_agent:
        return None
    counted = tenant.items.get("letters")
    waiting = max(0, int(counted.total)) if counted else 0
    return {"waiting": waiting} if waiting or settings.MAIL_DOMAIN else None


def _unread(tenant: TenantContext | None) -> frozenset[int]:
    """Return the tickets with news that the person has not seen: the item has come with the desk."""
    item = tenant.items.get("inbox") if tenant else None
    return frozenset(map(int, item.unread or ())) if item else frozenset()


def _groups(tenant: TenantContext | None, nav: str) -> list[dict[str, Any]]:
    """Return the groups that the member may open, each with its pages, and which of both are open now."""
    shown = []
    for label, pages in DESK_PAGES.items():
        allowed = [one for one in pages if tenant is not None and one.is_open_to(tenant.role)]
        links = [{"label": one.label, "url": reverse(one.route), "is_current": one.name == nav} for one in allowed]
        if links:
            is_current = any(link["is_current"] for link in links)
            shown.append({"label": gettext(label), "url": links[0]["url"], "is_current": is_current, "pages": links})
    return shown
