"""Show the inbox, follow and mute tickets, complete names of members, and stop mail by the link in it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from portal import clock
from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import in_person, member, on_get, on_post, open_while_closing, public, unlimited
from tenants.membership import mail_choices, members
from tenants.membership.forms import labels
from tenants.membership.mail_choices import MailKind
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest, refusal_told
from tickets.desk import changing
from tickets.notices import following, inbox, report_turns, stored, telling
from tickets.notices.following import MuteLink
from tickets.notices.inbox import InboxPage, TicketNotices
from tickets.ticket.fields import Status

_EXCERPT: Final = 160  # characters
_EVENTS: Final = 4  # of one ticket that are named


def _page_values(
    tenant: TenantContext, page: InboxPage, *, kind: str, only_unread: bool, is_first: bool
) -> dict[str, Any]:
    """Return the values of the page. `all_unread` are the tickets that its button marks as read."""
    narrowed = ({"kind": kind} if kind else {}) | ({"unread": "1"} if only_unread else {})
    return {
        "tickets": [_ticket(one) for one in page.tickets],
        "all_unread": sorted(inbox.unread(tenant)),
        "is_first": is_first,
        "is_narrow": bool(narrowed),
        "only_unread": only_unread,
        "kind": kind,
        "kinds": [{"label": one.word, "value": one.value} for one in MailKind],
        "next_url": _address(narrowed | {"before": page.before}) if page.before else "",
        "first_url": _address(narrowed),
    }


def _address(params: dict[str, str]) -> str:
    return reverse("tickets:inbox") + (f"?{urlencode(params)}" if params else "")


def _ticket(one: TicketNotices) -> dict[str, Any]:
    words = [MailKind(row.kind).word if row.kind in list(MailKind) else _("News") for row in one.rows]
    counted = {word: words.count(word) for word in words}
    summary, latest = one.summary, one.latest
    excerpt = " ".join(latest.body.split()) if latest else ""
    return {
        "number": one.number,
        "is_unread": one.is_unread,
        "title": summary.title if summary else "",
        "is_gone": summary is None,
        "status": {"value": summary.status, "label": Status(summary.status).label} if summary else None,
        "at": clock.parse(one.rows[0].at) if one.rows else None,
        "events": [f"{word} ({many})" if many > 1 else word for word, many in counted.items()][:_EVENTS],
        "by": latest.author_name if latest else "",
        "excerpt": f"{excerpt[:_EXCERPT].rstrip()} \u2026" if len(excerpt) > _EXCERPT else excerpt,
        "url": reverse("tickets:ticket", args=[one.number]),
    }


_CHANGES: Final = {
    "follow": (following.follow, gettext_noop("You follow this ticket. You get its comments by mail.")),
    "unfollow": (following.unfollow, gettext_noop("You do not follow this ticket any more.")),
    "mute": (following.mute, gettext_noop("This ticket is muted. You get no mail about it.")),
}


@member(Role.VIEWER)
@on_post(write="ticket", trips=3, writes=12)
def follow(request: TenantRequest, number: int) -> HttpResponse:
    """Follow a ticket, end that, or mute it."""
    change, said = _CHANGES.get(request.POST.get("change", ""), (None, ""))
    if change is None:
        raise Invalid(_("This change is incomplete. Reload the ticket and try again."))
    with refusal_told(request, Conflict):
        change(request.tenant, number, request.tenant.user_id)
        messages.success(request, _(said))
    return redirect("tickets:ticket", number)


@member(Role.AGENT)
@on_get(query="members by name", trips=3, reads=8)
def names(request: TenantRequest) -> JsonResponse:
    """List the names that a comment can mention: one Query. Where there are `more`, a page asks with `?q=` for those
    with what is typed in their names."""
    tenant, typed = request.tenant, request.GET.get("q", "").strip()
    if typed:
        people, more = members.matching(tenant.repository, typed), False
    else:
        known = members.at_hand(tenant)
        people, more = list(known.people), not known.is_all
    shown = [{"name": one.name, "role": one.role.label} for one in people if one.id != tenant.user_id]
    return JsonResponse({"people": shown, "more": more})


_TYPED_LIMIT: Final = 2000  # characters


@member(Role.AGENT)
@on_get(query="members by name", trips=3, reads=50)
def people_options(request: TenantRequest) -> HttpResponse:
    """Offer those who can have tickets for what is typed in the field `of`, or in the field `several`, behind the last
    comma."""
    tenant, several = request.tenant, request.GET.get("several", "")
    typed = request.GET.get(several or request.GET.get("of", ""), "")[:_TYPED_LIMIT]
    before, comma, last = typed.rpartition(",") if several else ("", "", typed)
    sought, head = last.strip(), f"{before}{comma} " if comma else ""
    found = members.matching(tenant.repository, sought) if sought else members.at_hand(tenant).people
    options = [head + label for label in labels([one for one in found if one.is_agent], by_address=sought).values()]
    return render(request, "tickets/_people_options.html", {"options": options})


@member(Role.VIEWER)
@on_get(get="member, ticket", trips=2, reads=3)
def followers(request: TenantRequest, number: int) -> HttpResponse:
    """List who follows a ticket: one read of the ticket, and one of its followers' memberships."""
    summary = changing.read(request.tenant, number, consistent=False)
    people = members.members_with(request.tenant.repository, summary.followers or ())
    found = sorted(people, key=lambda one: one.name.casefold())
    page = {"followers": found, "number": number, "title": summary.title}
    return render(request, "notices/followers.html", page)


# --- the inbox ---


@member(Role.VIEWER)
@on_get(get="ticket", query="notice", trips=2, reads=8)
def inbox_page(request: TenantRequest) -> HttpResponse:
    """Show what concerns the person, narrowed to what is unread, or to one kind."""
    kind, before = request.GET.get("kind", ""), request.GET.get("before", "")
    kind = kind if kind in list(MailKind) else ""
    only_unread = "unread" in request.GET
    if before and not inbox.is_place(before):
        return redirect("tickets:inbox")
    page = inbox.page(request.tenant, kind=kind, only_unread=only_unread, before=before)
    context = _page_values(request.tenant, page, kind=kind, only_unread=only_unread, is_first=not before)
    return render(request, "notices/inbox.html", context)


@open_while_closing
@in_person
@member(Role.VIEWER)
@on_post(write="inbox", trips=3, writes=2)
def mark(request: TenantRequest) -> HttpResponse:
    """Mark tickets as read, one as unread, or mute one; return to the list."""
    numbers, change = _numbers(request), request.POST.get("change", "")
    if change == "unread" and numbers:
        inbox.mark_unread(request.tenant, numbers[0])
    elif change == "mute" and numbers:
        with suppress(NotFound):
            following.mute(request.tenant, numbers[0], request.tenant.user_id)
        inbox.mark_read(request.tenant, numbers[:1])
        messages.success(request, _("Ticket #%(number)s is muted. You hear no more of it.") % {"number": numbers[0]})
    else:
        inbox.mark_read(request.tenant, numbers)
    back = request.POST.get("back", "")
    is_own = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.startswith("/")
    return redirect(back if is_own else "tickets:inbox")


@open_while_closing
@in_person
@member(Role.VIEWER)
@on_post(write="inbox", trips=3, writes=2)
def seen(request: TenantRequest) -> HttpResponse:
    """Mark the news of a ticket as read, which an open page of it does by itself. Answer with the header's link."""
    numbers = _numbers(request)
    inbox.mark_read(request.tenant, numbers)
    return render(request, "notices/_bell.html", {"still_unread": len(inbox.unread(request.tenant) - {*numbers})})


def _numbers(request: TenantRequest) -> list[int]:
    return [int(text) for text in request.POST.getlist("number") if stored.IS_NUMBER.match(text)]


@csrf_exempt  # a mail program has no token; the view checks all other forms itself
@unlimited
@public
@on_get(get="member", trips=2, reads=2)
@on_post(get="member", write="due row, member, ticket", trips=6, reads=3, writes=20)
def mute(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to stop mail, and stop it. Reading writes nothing: mail scanners open links too.

    A mail program sends one form of its own, which the link alone gives the right to. Source: RFC 8058.
    """
    is_one_click = request.POST.get("List-Unsubscribe") == "One-Click"
    return _mute(request, token) if is_one_click else csrf_protect(_mute)(request, token)


def _mute(request: HttpRequest, token: str) -> HttpResponse:
    link = MuteLink.read(token)
    tenant = telling.desk_at_work(link.tenant_id) if link else None
    if link is None or tenant is None:
        return _gone(request, _("This link is incomplete, or its desk is no more. Copy the whole link from the mail."))
    try:
        page = _mute_page(request, link, tenant)
    except NotFound as error:
        return _gone(request, error.message)
    except Conflict as error:
        page = {"problem": error.message}
    context = {"desk": tenant.name, "link": link, "label": _label(link)}
    answer = render(request, "notices/mute.html", context | page, status=409 if "problem" in page else 200)
    answer["Cache-Control"] = "private, no-store"
    return answer


def _label(link: MuteLink) -> str:
    what = link.report or link.kind
    return str(what.label) if what else ""


def _mute_page(request: HttpRequest, link: MuteLink, tenant: TenantContext) -> dict[str, Any]:
    """Do what the form asks for, and return what the page says then. Raises NotFound, Conflict."""
    if members.member(tenant.repository, link.user_id) is None:
        raise NotFound(_("You are not a member of this desk any more, and get no mail from it."))
    if request.method != "POST":
        return {"state": "asked"}
    takes_back = request.POST.get("change") == "undo"
    if link.report is not None:
        report_turns.choose(tenant, link.user_id, link.report, wanted=takes_back)
    elif link.kind is not None:
        change_kind = mail_choices.allow if takes_back else mail_choices.refuse
        change_kind(tenant.repository, link.user_id, link.kind)
    else:
        change_ticket = following.unfollow if takes_back else following.mute
        change_ticket(tenant, link.number, link.user_id)
    return {"state": "undone" if takes_back else "muted"}


def _gone(request: HttpRequest, why: str) -> HttpResponse:
    return render(request, "notices/mute_gone.html", {"why": why}, status=404)
