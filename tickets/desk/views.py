"""Show the pages of the desk: the queue and bulk changes, one ticket, changes of its fields, and people to choose."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from portal import clock
from portal.errors import Conflict, Invalid
from portal.web import locales
from portal.web.access import counted, member, on_get, on_post, open_while_closing
from portal.web.heavy_work import heavy
from portal.web.middleware import is_piece
from tenants.lifecycle import desk_settings
from tenants.membership import members
from tenants.membership.forms import offered_members
from tenants.membership.members import ListedMember
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, set_cookie
from tickets.attachments.attachments import FileRef
from tickets.attachments.forms import NO_FILES, files_of
from tickets.attachments.presenters import field as files_field
from tickets.custom_fields import definitions
from tickets.desk import (
    bulk,
    changing,
    commenting,
    creating,
    lists,
    many,
    queue_presenters,
    ticket_presenters,
    timelines,
    undoing,
)
from tickets.desk.bulk import BulkRefused
from tickets.desk.changing import EditConflict, TicketState, Wishes
from tickets.desk.commenting import WrittenComment
from tickets.desk.forms import ChangeForm, CommentForm, NewTicketForm, RequesterOfTicketForm, TicketForm
from tickets.desk.queue_presenters import QueueAddress
from tickets.live import page_tokens
from tickets.ready_answers import presenters as answer_presenters
from tickets.ready_answers.presenters import NOTHING, ChosenAnswers, Composing
from tickets.replies import withdrawing
from tickets.requesters import naming, requesters
from tickets.requesters.requesters import Requester
from tickets.saved_views import presenters, saved_views
from tickets.saved_views import presenters as view_presenters
from tickets.saved_views.presenters import ListDisplay, ListPlace
from tickets.ticket.fields import STATUS, Status
from tickets.ticket.set_aside import SetAside
from tickets.ticket.stored import is_requester, of_reference


@member(Role.VIEWER)
@on_get(query="members by name", trips=3, reads=8)
def people(request: TenantRequest) -> HttpResponse:
    """Ask whose tickets to list: those who can have tickets, as links to the queue."""
    address = QueueAddress.of(request.GET.dict())
    return people_page(request, {"ticket": None}, lambda m: address.url(resolver=m.id, name=m.name))


def people_page(
    request: TenantRequest, context: dict[str, Any], link: Callable[[ListedMember], str] | None = None
) -> HttpResponse:
    """Show the members who can have tickets, narrowed by `?q=`: buttons of a form, or links where `link` makes them.

    In a large desk these are the first ones, and of those who match as well.
    """
    tenant, search = request.tenant, request.GET.get("q", "").strip()
    if search:
        found = members.matching(tenant.repository, search)
        is_part = len(found) == members.SEARCHED
    else:
        known = members.at_hand(tenant)
        found = [*members.with_ids(tenant.repository, known, [tenant.user_id]).people]
        is_part = not known.is_all
    found.sort(key=lambda one: one.id != tenant.user_id)
    times = Counter(one.name for one in found)
    chosen = [
        {
            "id": m.id,
            "name": m.name,
            "role_label": m.role.label,
            "email": m.email if tenant.is_agent and times[m.name] > 1 else "",
            "is_me": m.id == tenant.user_id,
            "url": link(m) if link else None,
        }
        for m in found
        if m.is_agent
    ]
    template = "tickets/_people.html" if "HX-Request" in request.headers else "tickets/assign.html"
    return render(request, template, context | {"people": chosen, "q": search, "is_part": is_part})


# --- the queue ---


_DISPLAY_KEPT: Final = 365 * 86400  # seconds
HANDFUL = 5  # as many are closed together without a question


@member(Role.VIEWER)
@on_get(
    get="agent, saved views",
    query="noted tickets, noted tickets by resolver, tickets by resolver, tickets by status",
    trips=3,
    reads=60,
)
def queue(request: TenantRequest) -> HttpResponse:
    params = request.GET.dict()
    try:
        if tidied := queue_presenters.tidied(params):
            return redirect(tidied)
        address = QueueAddress.of(params)
        first = queue_presenters.first_place(params)
        list_of = partial(queue_presenters.queue_page, request.tenant, address, params.get("after", ""), first)
        context: dict[str, Any] = list_of()
        if not is_piece(request):  # to a piece, what stands beside the list stays as it is
            context |= view_presenters.starred(request.tenant, saved_views.read(request.tenant), address.url())
    except Invalid as error:
        context = queue_presenters.refused_page(request.tenant, params, error)
        return render(request, "tickets/queue.html", context | _display(request), status=400)
    return render(request, "tickets/queue.html", context | _display(request))


def _display(request: TenantRequest) -> dict[str, Any]:
    return {"display": ListDisplay.parse(request.COOKIES.get(presenters.COOKIE, ""))}


@open_while_closing
@member(Role.VIEWER)
@on_post()
def choose_display(request: TenantRequest) -> HttpResponse:
    """Keep in this browser how lists are shown."""
    answer = redirect(back_address(request))
    chosen = ListDisplay.of([*request.POST.getlist("column"), request.POST.get("density", "")])
    set_cookie(answer, presenters.COOKIE, str(chosen), max_age=_DISPLAY_KEPT)
    return answer


@member(Role.VIEWER)
@on_get(query="noted tickets, tickets by resolver, tickets by status", trips=1, reads=15)
def queue_updates(request: TenantRequest) -> HttpResponse:
    """Tell whether an open page of the queue is out of date: nothing, or a notice that offers to load it again."""
    address, told = QueueAddress.of(request.GET.dict()), request.GET.get("told", "0")
    count = lists.changed_since(
        request.tenant,
        status=address.statuses,
        resolver=address.resolver(request.tenant),
        only=address.only,
        seen=request.GET.get("seen", ""),
    )
    if str(count) == told:
        return HttpResponse(status=204)
    again = request.GET.copy()
    again["told"] = str(count)
    text = ngettext(
        "%(num)s ticket in this list has been updated.", "%(num)s tickets in this list have been updated.", count
    )
    if count >= lists.NEWS_LIMIT:
        text = _("%(num)s or more tickets in this list have been updated.")
    text, label = text % {"num": count}, _("Show them") if count > 1 else _("Show it")
    context = {
        "text": text,
        "label": label,
        "list_url": address.url(),
        "updates_url": f"{request.path}?{again.urlencode()}",
        "live_token": page_tokens.token(request.tenant),
    }
    return render(request, "tickets/_updates.html", context)


@member(Role.AGENT)
@on_post(get="ticket", write="ticket", trips=2, per="ticket", each=(0, 2, 12))
@heavy
def bulk_change(request: TenantRequest) -> HttpResponse:
    """Set all selected tickets of a list to one status, or none of them. Closing many is asked about first."""
    back = back_address(request)
    to = STATUS.clean(request.POST.get("to", ""))
    try:
        selected = [TicketState.parse(text) for text in request.POST.getlist("tickets")]
        counted(request, len(selected))
        many = HANDFUL < len(selected) <= bulk.limit(request.tenant)
        if to is Status.CLOSED and many and "confirmed" not in request.POST:
            context = {"to": to, "tickets": queue_presenters.selection(selected), "back": back}
            return render(request, "tickets/bulk_confirm.html", context, status=428)
        change = bulk.change_status(request.tenant, selected, to=to)
    except BulkRefused as refused:
        context = queue_presenters.refused_change(refused, to=to, back=back)
        return render(request, "tickets/bulk_refused.html", context, status=409)
    except Invalid as error:
        messages.error(request, error.message)
        return redirect(back)
    told = ngettext("%(num)s ticket is now %(status)s.", "%(num)s tickets are now %(status)s.", change.count)
    text = told % {"num": locales.current().number(change.count), "status": to.word}
    # The notice of such a message has a button that takes the change back: see undoing.py.
    messages.success(request, text, extra_tags=change.receipt)
    return redirect(back)


@member(Role.AGENT)
@on_post(
    get="mail settings, requester, ticket",
    query="ticket",
    write="audit row, counter, file, mail settings, membership, outbox row, request, ticket",
    trips=9,
    reads=8,
    writes=20,
    per="ticket",
    each=(2, 2, 20),
)
@heavy
def undo(request: TenantRequest) -> HttpResponse:
    """Take back what a receipt names, as far as nobody has changed it since."""
    try:
        undone = undoing.take_back(request.tenant, request.POST.get("receipt", ""))
    except (Invalid, Conflict) as error:
        messages.error(request, error.message)
        return redirect(back_address(request))
    counted(request, undone.count)
    if undone.said:
        messages.success(request, undone.said)
    for sentence in ticket_presenters.shortened(undone.left):
        messages.warning(request, sentence)
    if draft := undone.draft:
        return _ticket_page(request, draft["number"], CommentForm(initial=draft["form"]), files=draft["files"])
    return redirect(back_address(request))


def back_address(request: TenantRequest) -> str:
    url = request.POST.get("back", "")
    if url_has_allowed_host_and_scheme(url, allowed_hosts=None) and url.startswith("/"):
        return url
    return reverse("tickets:queue")


# --- one ticket ---


# The button of a ticket's form that shows the fields of the chosen kind.
SWITCH: Final = "switch"


@member(Role.AGENT)
@on_get(get="requester", query="members by name", trips=2, reads=15)
@on_post(
    get="address of a requester, file, member, requester",
    query="members by name, requesters by last word, requesters by name",
    write="address of a requester, audit row, counter, file, membership, outbox row, request, requester, ticket",
    trips=11,
    reads=35,
    writes=50,
)
def new(request: TenantRequest) -> HttpResponse:
    preset = {"priority": desk_settings.default_value(request.tenant, "ticket_priority")}
    if request.method != "POST" and (asked := request.GET.get("requester")):
        person = requesters.find(request.tenant, asked)
        preset["requester"] = (person.typed or person.name) if person else ""
    defined = definitions.of(request.tenant)
    people = offered_members(request.tenant, members.at_hand(request.tenant))
    form = NewTicketForm(request.POST or None, initial=preset, people=people, defined=defined)
    sent = files_of(request, request.tenant) if "files" in request.POST or request.FILES else NO_FILES
    for problem in sent.problems:
        form.add_error("attached", problem)
    if SWITCH in request.POST:
        context = {
            "form": form.switched(request.POST.get("kind_before", "")),
            "ticket": None,
            "attached": files_field(sent.files),
        }
        return render(request, "tickets/form.html", context)
    if request.method == "POST" and form.is_valid():
        request_id = form.cleaned_data["request_id"]
        try:
            number = creating.create(
                request.tenant,
                **form.values,
                requester=_requester(request, form.cleaned_data["requester"], request_id),
                files=sent.files,
                request_id=request_id,
            )
        except Invalid as error:
            field = "attached" if error.field == "files" else error.field
            form.add_error(field if field in form.fields else None, error.message)
        else:
            messages.success(request, _("Ticket #%(number)s created.") % {"number": number})
            return redirect("tickets:ticket", number)
    status = 422 if form.is_bound else 200
    context = {"form": form, "ticket": None, "attached": files_field(sent.files)}
    return render(request, "tickets/form.html", context, status=status)


def _requester(request: TenantRequest, typed: str, request_id: str) -> Requester | None:
    """Return the person outside the desk who is typed, added where they are not known; None for nobody."""
    if not typed:
        return None
    return naming.named(request.tenant, typed, by=actor_of(request), request_id=request_id)


@member(Role.VIEWER)
@on_get(get="ticket", query="ticket", trips=3, reads=25)
def ticket(request: TenantRequest, number: int) -> HttpResponse:
    return _ticket_page(request, number, None)


_REFERENCE_LIMIT: Final = 200  # characters of what names an entry, more than any has


def _entry_named(reference: str) -> str | None:
    """Return the sort key of the entry that an address asks for, None for what cannot be one."""
    with suppress(ValueError):
        return of_reference(reference[:_REFERENCE_LIMIT])
    return None


def _ticket_page(
    request: TenantRequest,
    number: int,
    form: CommentForm | None,
    status: int = 200,
    files: Sequence[FileRef] = (),
    composing: Composing = NOTHING,
) -> HttpResponse:
    """Show the ticket with this form and its files, or with an empty one for None; beside the form what came since
    `seen_at`."""
    asked = request.GET.get("entry", "")
    wanted = _entry_named(asked)
    # Of an older page that a page of the ticket takes in, no form is shown, which alone needs the latest entries.
    has_form = request.tenant.is_agent and request.headers.get("HX-Target") != "earlier"
    before = request.GET.get("before")
    timeline = timelines.ticket(request.tenant, number, before=before, around=wanted, with_latest=has_form)
    if into := int(timeline.summary.merged_into or 0):
        if form is not None:  # what was written for the merged ticket is kept, to be sent to the other one
            return _ticket_page(request, into, form, status, files, composing)
        messages.info(request, _("Ticket #%(number)s was merged into this one.") % {"number": number})
        return redirect(ticket_presenters.entry_url(into, wanted) if wanted else ticket_presenters.ticket_url(into))
    context = ticket_presenters.ticket_page(request.tenant, timeline, wanted=wanted)
    if asked and not context["wanted"]:
        messages.info(request, _("The entry is no longer here, or you may not read it."))
    if form is None:
        form = CommentForm.empty(seen=timeline.summary.status, cc=context["reply"]["cc"])
    else:
        since = request.POST.get("seen_at") or context["seen_at"]
        context["attached"] = files_field(files)
        context["news"] = [e for e in context["activity"] if clock.stamp(e.at) > since]
    place = ListPlace.of(request.GET.dict()) if request.GET else None
    context |= {"comment_form": form, "composing": composing, "way": place.page(number) if place else None}
    return render(request, "tickets/ticket.html", context, status=status)


@member(Role.AGENT)
@on_post(
    get="file, member, ready answer, request, ticket",
    query="ready answer, ticket",
    write="counter, file, outbox row, request, ticket",
    trips=23,
    reads=150,
    writes=80,
)
def comment(request: TenantRequest, number: int) -> HttpResponse:
    sent = files_of(request, request.tenant) if "files" in request.POST or request.FILES else NO_FILES
    then = request.POST.get("then")
    if then in answer_presenters.ACTS:
        body, composing = answer_presenters.composed(request.tenant, number, request.POST)
        form = CommentForm(initial=request.POST.dict() | {"body": body})
        return _ticket_page(request, number, form, files=sent.files, composing=composing)
    form = CommentForm(request.POST)
    if sent.files:
        form.takes_no_text()
    for problem in sent.problems:
        form.add_error("attached", problem)
    if not form.is_valid():
        return _refused_comment(request, number, form, sent.files, status=422)
    data = form.cleaned_data
    hold = int(desk_settings.default_value(request.tenant, withdrawing.HOLD))
    written = list[WrittenComment]()
    try:
        chosen = ChosenAnswers.of(request.POST)
        to, uses = STATUS.clean(then) if then else chosen.then(), chosen.uses(request.tenant)
        before = commenting.comment(
            request.tenant,
            number,
            body=data["body"],
            internal=data["internal"],
            then=to,
            along=chosen.along(request.tenant),
            companion=uses,
            seen=data["seen_at"] if clock.is_stamp(data["seen_at"]) else "",
            cc=[] if data["internal"] else [one for one in re.split(r"[,;\s]+", data["cc"]) if one],
            files=sent.files,
            request_id=data["request_id"],
            hold=hold,
            tell=written.append,
        )
    except (Invalid, Conflict) as error:
        form.add_error({"cc": "cc", "files": "attached"}.get(error.field or "", "body"), error.message)
        return _refused_comment(request, number, form, sent.files, status=422 if isinstance(error, Invalid) else 409)
    if data["seen"] and data["seen"] != before.status and not to:
        changed = _("While you were writing, the status changed from %(before)s to %(after)s.")
        note = _("Your note was added; it left the status as it is.")
        comment = _("Your comment was added; it left the status as it is.")
        told = changed % {"before": Status(data["seen"]).label, "after": Status(before.status).label}
        messages.warning(request, f"{told} {note if data['internal'] else comment}")
    if hold and written:
        receipt = withdrawing.receipt(request.tenant, written[0], uses.counted if uses else ())
        text = ticket_presenters.held_text(written[0].entry, hold)
        messages.success(request, text, extra_tags=f"{receipt} {hold}" if receipt else "")
    return presenters.onwards(request, number, "#latest")


def _refused_comment(
    request: TenantRequest, number: int, form: CommentForm, files: Sequence[FileRef], *, status: int
) -> HttpResponse:
    """Show the form as it was sent, with what was chosen of ready answers."""
    _, composing = answer_presenters.composed(request.tenant, number, request.POST)
    return _ticket_page(request, number, form, status=status, files=files, composing=composing)


@member(Role.VIEWER)
@on_get(get="ticket", query="ticket", trips=2, reads=10)
def ticket_updates(request: TenantRequest, number: int) -> HttpResponse:
    """Answer with what came since an open page of a ticket was read, or with nothing where that is `shown` already."""
    summary, seen = changing.read(request.tenant, number, consistent=False), request.GET.get("seen", "")
    if request.GET.get("shown", seen) >= changing.updated_at(request.tenant, summary):
        return HttpResponse(status=204)
    entries = timelines.news(request.tenant, number, seen=seen)
    return render(request, "tickets/_news.html", ticket_presenters.news(request.tenant, summary, entries, seen))


# --- changes of fields ---


_INCOMPLETE: Final = gettext_noop("This change is incomplete. Reload the ticket and try again.")


@member(Role.AGENT)
@on_get(get="ticket", trips=2, reads=3)
@on_post(get="ticket", query="group turns, ticket", write="ticket", trips=6, reads=12, writes=20)
def edit(request: TenantRequest, number: int) -> HttpResponse:
    summary, defined = changing.read(request.tenant, number), definitions.of(request.tenant)
    context: dict[str, Any] = {"ticket": ticket_presenters.listed(request.tenant, summary)}
    if request.method != "POST":
        initial = ticket_presenters.editable(summary, changing.read_description(request.tenant, number))
        form = TicketForm(initial=initial, defined=defined, stored=summary)
        return render(request, "tickets/form.html", context | {"form": form})
    form = TicketForm(request.POST, defined=defined, stored=summary)
    if SWITCH in request.POST:
        return render(
            request, "tickets/form.html", context | {"form": form.switched(request.POST.get("kind_before", ""))}
        )
    if form.is_valid():
        try:
            written = changing.edit(request.tenant, number, version=form.cleaned_data["version"] or 0, **form.values)
        except EditConflict as conflict:
            return _conflict_page(request, conflict, form)
        except SetAside as error:
            return _set_aside(request, number, error)
        except Invalid as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, _("Changes saved."), extra_tags=many.receipt(request.tenant, [written.changed]))
            return redirect("tickets:ticket", number)
    return render(request, "tickets/form.html", context | {"form": form}, status=422)


@member(Role.AGENT)
@on_post(get="ticket", query="group turns, ticket", write="ticket", trips=5, reads=12, writes=20)
def change(request: TenantRequest, number: int) -> HttpResponse:
    """Make a quick change of fields that have a few values, such as status or priority."""
    form = ChangeForm(request.POST)
    if not form.is_valid() or not form.values:
        raise Invalid(_(_INCOMPLETE))
    return _attempt(request, number, form, Wishes(**form.values))


@member(Role.AGENT)
@on_get(get="ticket", query="members by name", trips=2, reads=10)
@on_post(get="member, ticket", query="ticket", write="ticket", trips=4, reads=10, writes=20)
def assign(request: TenantRequest, number: int) -> HttpResponse:
    if request.method != "POST":
        stored = changing.read(request.tenant, number)
        return people_page(request, {"ticket": ticket_presenters.listed(request.tenant, stored)})
    # Without a name it is not "nobody": a request that lost a field must not take a ticket from somebody.
    form = ChangeForm(request.POST)
    if not form.is_valid() or not form.cleaned_data["resolver"]:
        raise Invalid(_(_INCOMPLETE))
    who = form.cleaned_data["resolver"]
    return _attempt(request, number, form, Wishes(resolver={"me": request.tenant.user_id, "none": ""}.get(who, who)))


@member(Role.AGENT)
@on_get(get="ticket", trips=1, reads=2)
@on_post(
    get="address of a requester, requester, ticket",
    query="requesters by last word, requesters by name, ticket",
    write="address of a requester, audit row, membership, requester, ticket",
    trips=8,
    reads=25,
    writes=40,
)
def requester_of_ticket(request: TenantRequest, number: int) -> HttpResponse:
    """Let a ticket be for another person outside the desk."""
    form, status = RequesterOfTicketForm(request.POST or None), 200
    summary = changing.read(request.tenant, number)
    if request.method == "POST" and form.is_valid():
        try:
            person = _requester(request, form.cleaned_data["requester"], uuid.uuid4().hex)
            seen = form.cleaned_data["version"]
            written = changing.change(request.tenant, number, Wishes(requester=person), version=seen)
        except EditConflict as conflict:
            summary = conflict.stored
            data = request.POST.copy()
            data["version"] = str(int(summary.version))
            form, status = RequesterOfTicketForm(data), 409
            form.add_error(
                None, _("Somebody else has changed the requester meanwhile. Check who it is now, and try again.")
            )
        except SetAside as error:
            return _set_aside(request, number, error)
        except Invalid as error:
            form.add_error("requester", error.message)
        else:
            receipt = many.receipt(request.tenant, [written.changed])
            text = _("The requester is now %(name)s.") % {"name": person.label if person else ""}
            messages.success(request, text, extra_tags=receipt)
            return redirect("tickets:ticket", number)
    status = 422 if form.errors and status == 200 else status
    is_outside = is_requester(summary.requester)
    context = {"form": form, "ticket": ticket_presenters.listed(request.tenant, summary), "is_outside": is_outside}
    return render(request, "tickets/requester.html", context, status=status)


def _attempt(request: TenantRequest, number: int, form: ChangeForm, wishes: Wishes) -> HttpResponse:
    try:
        written = changing.change(request.tenant, number, wishes, version=form.cleaned_data["version"])
    except EditConflict as conflict:
        return _conflict_page(request, conflict, form)
    except SetAside as error:
        return _set_aside(request, number, error)
    except Invalid as error:
        messages.error(request, error.message)
    else:
        if written.changed:
            text, receipt = (
                ticket_presenters.change_text(request.tenant, wishes, written),
                many.receipt(request.tenant, [written.changed]),
            )
            messages.success(request, text, extra_tags=receipt)
            return presenters.onwards(request, number)
    return redirect(presenters.address_of(request, number))


def _set_aside(request: TenantRequest, number: int, error: SetAside) -> HttpResponse:
    messages.error(request, f"{error.message} {_('Nothing was changed.')}")
    return redirect("tickets:ticket", number)


def _conflict_page(request: TenantRequest, conflict: EditConflict, form: TicketForm | ChangeForm) -> HttpResponse:
    """Show both versions side by side, and the person's own ready to be sent again on top of the newer one."""
    data = request.POST.copy()
    data["version"] = str(int(conflict.stored.version))
    if isinstance(form, TicketForm):
        conflict.description = changing.read_description(request.tenant, int(conflict.stored.number))
        for name, value in ticket_presenters.left_alone(form, conflict).items():
            data[name] = value
        form.stored = conflict.stored
        form = form.again(data)
    mine = ticket_presenters.sent_texts(request.tenant, form) or {
        "resolver": _person(request, form.cleaned_data["resolver"])
    }
    theirs = ticket_presenters.stored_texts(request.tenant, conflict.stored, conflict.description)
    context = ticket_presenters.conflict_page(request.tenant, conflict, mine=mine, theirs=theirs)
    return render(
        request, "tickets/conflict.html", context | {"form": form.again(data), "action": request.path}, status=409
    )


def _person(request: TenantRequest, who: str) -> str:
    if who in ("", "none"):
        return _("Unassigned")
    if who in ("me", request.tenant.user_id):
        return request.tenant.user_name
    person = members.member(request.tenant.repository, who)
    return person.name if person else _("A former member")
