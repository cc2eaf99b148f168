"""Mark tickets as spam, look through them, and take the mark back."""

from __future__ import annotations

from functools import reduce

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal import clock, plain_text
from portal.errors import Conflict, NotFound
from portal.web import locales
from portal.web.access import counted, member, on_get, on_post
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.desk import changing, ticket_presenters
from tickets.requesters import presenters as requester_presenters
from tickets.spam import spam_marking
from tickets.spam.spam_marking import Marked
from tickets.ticket.stored import is_requester


@member(Role.AGENT)
@on_get(get="requester, ticket", query="tickets of a requester", trips=2, reads=4)
@on_post(
    get="address, mail settings, requester",
    query="ticket, tickets of a requester",
    write="audit row, mail settings, membership, ticket",
    trips=14,
    reads=25,
    writes=50,
)
def mark(request: TenantRequest, number: int) -> HttpResponse:
    """Mark a ticket as spam and block its sender; before, ask a list's key about it, and then offer the sender's other
    tickets."""
    if request.method == "POST":
        with refusal_told(request, Conflict):
            marked = spam_marking.mark(request.tenant, number, by=actor_of(request))
            messages.success(request, _said(number, marked), extra_tags=marked.receipt(request.tenant))
            has_others = bool(spam_marking.others(request.tenant, marked.summary))
            return redirect("tickets:spam_mark", number) if has_others else redirect("tickets:queue")
        return redirect("tickets:ticket", number)
    summary = changing.read(request.tenant, number)
    if summary.merged_into:
        return redirect("tickets:ticket", int(summary.merged_into))
    context = {
        "ticket": ticket_presenters.listed(request.tenant, summary),
        "is_spam": bool(summary.spam_at),
        "is_outside": is_requester(summary.requester),
        "others": requester_presenters.tickets(spam_marking.others(request.tenant, summary)),
    }
    return render(request, "spam/mark.html", context)


def _said(number: int, marked: Marked) -> str:
    said = _("Ticket #%(number)s is spam.") if marked.is_new else _("Ticket #%(number)s was marked as spam before.")
    told = [said % {"number": number}]
    if marked.blocked:
        names = reduce(lambda one, other: _("%(one)s and %(other)s") % {"one": one, "other": other}, marked.blocked)
        many = len(marked.blocked)
        told.append(
            ngettext(
                "%(names)s cannot write to this desk any more.", "%(names)s cannot write to this desk any more.", many
            )
            % {"names": names}
        )
    elif marked.not_blocked:
        told.append(marked.not_blocked)
    return " ".join(told)


@member(Role.AGENT)
@on_post(query="ticket", write="audit row, ticket", per="ticket", each=(6, 4, 25))
def mark_many(request: TenantRequest) -> HttpResponse:
    """Mark the chosen tickets of a sender who is blocked already."""
    numbers = [one for text in request.POST.getlist("tickets") if (one := plain_text.whole_number(text, digits=15))]
    done, offered = 0, numbers[: spam_marking.OFFERED]
    counted(request, len(offered))
    for number in offered:
        with refusal_told(request, Conflict, NotFound):
            done += spam_marking.mark(request.tenant, number, by=actor_of(request), block=False).is_new
    if done:
        messages.success(
            request,
            ngettext("%(num)s ticket was marked as spam.", "%(num)s tickets were marked as spam.", done)
            % {"num": done},
        )
    return redirect("tickets:queue")


@member(Role.AGENT)
@on_post(
    get="mail settings, requester",
    query="ticket",
    write="audit row, mail settings, membership, ticket",
    trips=11,
    reads=12,
    writes=60,
)
def unmark(request: TenantRequest, number: int) -> HttpResponse:
    """Take the mark of spam back."""
    with refusal_told(request, Conflict):
        summary = spam_marking.unmark(request.tenant, number, by=actor_of(request))
        told = [_("Ticket #%(number)s is back in the lists, as it was.") % {"number": number}]
        told += [_("Its sender is not blocked any more.")] if summary.spam_blocks else []
        messages.success(request, " ".join(told))
        return redirect("tickets:ticket", number)
    return redirect("tickets:spam")


@member(Role.AGENT)
@on_get(query="tickets by status", trips=1, reads=10)
def all_spam(request: TenantRequest) -> HttpResponse:
    """List what is marked as spam, the last first."""
    page = spam_marking.page(request.tenant, after=request.GET.get("after", ""))
    rows = [
        {
            "ticket": ticket_presenters.listed(request.tenant, row),
            "marked_at": clock.parse(row.updated_at),
            "ends_on": locales.current().day(clock.parse(row.updated_at) + spam_marking.KEPT),
        }
        for row in page.rows
    ]
    return render(request, "spam/list.html", {"rows": rows, "next": page.next, "days": spam_marking.KEPT.days})
