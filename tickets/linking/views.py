"""Show links between tickets, add and remove them, and make a ticket of a comment."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_lazy

from portal import plain_text
from portal.errors import Conflict, Invalid
from portal.web import markdown
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from portal.web.middleware import is_piece
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest
from tickets.desk import changing, comment_changes, ticket_presenters, timelines
from tickets.desk.comment_views import context_of, sort_of
from tickets.desk.forms import WrittenField
from tickets.linking import linking
from tickets.ticket import fields, stored
from tickets.ticket.stored import LINK_KINDS, LINK_LABELS, SummaryItem


class LinkForm(forms.Form):
    """Take the kind of a link and the number of the other ticket, as people write it: 12 or #12."""

    kind = forms.ChoiceField(
        label=gettext_lazy("This ticket"), choices=[(kind, gettext_lazy(LINK_LABELS[kind])) for kind in linking.CHOSEN]
    )
    other = forms.RegexField(
        r"^\s*#?\s*[1-9]\d{0,14}\s*$",
        label=gettext_lazy("Number of the other ticket"),
        error_messages={
            "required": gettext_lazy("Enter the number of a ticket."),
            "invalid": gettext_lazy("Enter a number, such as 12 or #12."),
        },
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )

    def clean_other(self) -> int:
        return int("".join(filter(str.isdigit, self.cleaned_data["other"])))


class _Named(forms.Form):
    kind = forms.ChoiceField(choices=[(kind, kind) for kind in LINK_KINDS])
    other = forms.IntegerField(min_value=1, max_value=10**15 - 1)


@member(Role.VIEWER)
@on_get(get="ticket", query="ticket", trips=2, reads=10)
def linked(request: TenantRequest, number: int) -> HttpResponse:
    """Show the links of a ticket with title and status of the others: a part of the ticket's page, read after it.

    A Query and a BatchGetItem, however many there are.
    """
    tenant = request.tenant
    _, detail = timelines.described(tenant, number)
    if not is_piece(request):
        return redirect("tickets:ticket", number)
    links = list(detail.links or ())
    wanted = [(stored.ticket, (int(one.number),), stored.SUMMARY) for one in links]
    others = tenant.repository.get_many(SummaryItem, wanted) if wanted else []
    lines = [
        ticket_presenters.link_line(one.kind, int(one.number), other) for one, other in zip(links, others, strict=True)
    ]
    context = {"ticket": {"number": number}, "links": lines, "can_write": tenant.is_agent, "is_read": True}
    return render(request, "tickets/_links.html", context)


@member(Role.AGENT)
@on_get(get="ticket", trips=1, reads=1)
@on_post(get="ticket", write="ticket", trips=5, reads=8, writes=20)
def link(request: TenantRequest, number: int) -> HttpResponse:
    summary = changing.read(request.tenant, number, consistent=False)
    form = LinkForm(request.POST or None)
    if form.is_bound and form.is_valid():
        kind, other = form.cleaned_data["kind"], form.cleaned_data["other"]
        with told_in(form):
            linking.link(request.tenant, number, kind, other)
            messages.success(
                request, gettext("%(link)s #%(number)s.") % {"link": gettext(LINK_LABELS[kind]), "number": other}
            )
            return redirect("tickets:ticket", number)
    context = {"form": form, "number": number, "title": summary.title}
    return render(request, "tickets/link.html", context, status=status_of(form))


@member(Role.AGENT)
@on_post(get="ticket", write="ticket", trips=4, reads=6, writes=20)
def unlink(request: TenantRequest, number: int) -> HttpResponse:
    """End a link between two tickets."""
    form = _Named(request.POST)
    if not form.is_valid():
        changing.read(request.tenant, number, consistent=False)
        raise Invalid(gettext("This change is incomplete. Reload the ticket and try again."))
    kind, other = form.cleaned_data["kind"], form.cleaned_data["other"]
    linking.unlink(request.tenant, number, kind, other)
    messages.success(request, gettext("The link to #%(other)s is removed.") % {"other": other})
    return redirect("tickets:ticket", number)


# --- a comment becomes a ticket ---


class SplitForm(forms.Form):
    """The title of a ticket that a comment becomes."""

    title = WrittenField(
        fields.title,
        limit=fields.TITLE_LIMIT,
        label=gettext_lazy("Title of the new ticket"),
        error_messages={"required": gettext_lazy("Enter a title.")},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    request_id = forms.RegexField(r"^[0-9a-f]{32}$", widget=forms.HiddenInput, initial=changing.new_request_id)


@member(Role.AGENT)
@on_get(get="ticket", trips=1, reads=3)
@on_post(get="file, requester, ticket", write="counter, file, request, ticket", trips=11, reads=25, writes=40)
def split(request: TenantRequest, number: int, entry: str) -> HttpResponse:
    sort = sort_of(entry)
    _, item = comment_changes.read(request.tenant, number, sort)
    if item.deleted_at:
        raise Conflict(gettext("This comment was deleted. Nothing is left to be split off."))
    form = SplitForm(request.POST or None, initial={"title": _first_line(item.body)})
    if form.is_bound and form.is_valid():
        title, request_id = form.cleaned_data["title"], form.cleaned_data["request_id"]
        with told_in(form):
            made = linking.split(request.tenant, number, sort, title=title, request_id=request_id)
            messages.success(
                request,
                gettext("Ticket #%(made)s created from a comment of #%(number)s.") % {"made": made, "number": number},
            )
            return redirect("tickets:ticket", made)
    return render(
        request, "tickets/comment_split.html", context_of(number, item) | {"form": form}, status=status_of(form)
    )


def _first_line(text: str) -> str:
    lines = (markdown.render(line).striptags() for line in text.splitlines())
    return plain_text.line(next(filter(None, lines), ""))[: fields.TITLE_LIMIT]
