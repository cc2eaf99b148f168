"""Show a requester their ticket by a signed link, and let them answer, close and rate it, and ask for other links."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from django import forms
from django.forms import Form
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import guest, on_get, on_post
from portal.web.client_address import client_address
from tenants.sign_in import attempt_limits
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import GuestRequest
from tickets.attachments import downloads
from tickets.attachments.forms import NO_FILES, SentFiles, guest_files_of
from tickets.attachments.presenters import GUEST_FIELD
from tickets.attachments.presenters import field as files_field
from tickets.attachments.views import answer_guest_upload
from tickets.desk import changing, commenting, rating
from tickets.desk.changing import Wishes
from tickets.desk.rating import WORDS_LIMIT, NotRatable
from tickets.letters import desk_addresses
from tickets.outside import pages
from tickets.replies.ticket_links import TicketLink
from tickets.requester_pages import presenters, requester_page
from tickets.requester_pages.requester_page import LinkGone, Visit
from tickets.ticket.fields import COMMENT_LIMIT, Rating, Status
from tickets.ticket.ticket_events import TO_ALL


def _desk(link: TicketLink | None, *, is_former: bool = False) -> TenantContext:
    """Return the desk that a link names, also where the link is over if `is_former`: one read. Raises LinkGone."""
    if link is None or (link.is_over and not is_former):
        raise LinkGone
    try:
        return pages.desk_of_tenant(desk_addresses.desk_at_work(link.tenant_id))
    except NotFound:
        raise LinkGone from None


def _of_ticket(arguments: Mapping[str, Any]) -> TenantContext:
    return _desk(TicketLink.read(arguments["token"]))


def _of_all(arguments: Mapping[str, Any]) -> TenantContext:
    return _desk(TicketLink.read_all(arguments["token"]))


def _of_former(arguments: Mapping[str, Any]) -> TenantContext:
    return _desk(TicketLink.read(arguments["token"]), is_former=True)


# Declare a view whose address has as `token` a link to one ticket, or to all tickets of a person.
of_ticket: Final = guest(_of_ticket)
of_all: Final = guest(_of_all)
of_former: Final = guest(_of_former)  # a link to one ticket that may be over


_ID: Final = re.compile(r"[0-9a-f]{32}\Z")


class _OnceForm(forms.Form):
    """A form that is taken once: sent again, it changes nothing. Its id names the files that were sent for it, too."""

    request_id = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        sent = str(self.data.get("request_id", ""))
        self.once = sent if _ID.match(sent) else uuid.uuid4().hex


class AnswerForm(_OnceForm):
    """The answer of a requester."""

    body = forms.CharField(
        label=_("Your answer"),
        widget=forms.Textarea(attrs={"rows": 6}),
        max_length=COMMENT_LIMIT,
        strip=False,
        error_messages={"required": _("Write something first.")},
    )


class RatingForm(_OnceForm):
    """The rating of a ticket by its requester."""

    rating = forms.ChoiceField(
        label=_("Were we of help?"),
        choices=[(Rating.GOOD.value, _("Good")), (Rating.BAD.value, _("Bad"))],
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose good or bad."), "invalid_choice": _("Choose good or bad.")},
    )
    words = forms.CharField(
        label=_("What should we know?"),
        required=False,
        max_length=WORDS_LIMIT,
        widget=forms.Textarea(attrs={"rows": 3}),
        strip=False,
    )


_PAGE: Final = "tickets:r_ticket"
# What a page says at its top after a form; its address names the sentence, and holds no text.
_DONE: Final = ("answered", "closed", "rated", "mailed", "often")

_BUSY: Final = _("This request is being changed at this moment. Nothing was lost: please send it again.")
_OFTEN: Final = _(
    "Many messages came by links to your requests. Nothing was lost: send it again in a quarter of an hour."
)
_NOTHING: Final = _("Write something first.")
_OVER: Final = _("This request cannot be rated any more.")


@of_ticket
@on_get(get="looks, mail settings, requester, ticket", query="ticket", trips=4, reads=12)
def ticket(request: GuestRequest, token: str) -> HttpResponse:
    """Show the ticket: two round trips. Reading changes nothing: programs that scan mail open links."""
    return _page(request, token)


@of_ticket
@on_get()
@on_post(
    get="attempts, file, looks, mail settings, requester, ticket",
    query="ticket",
    write="attempts, request, ticket",
    trips=7,
    reads=15,
    writes=25,
)
def answer(request: GuestRequest, token: str) -> HttpResponse:
    """Add the requester's answer, which opens the ticket again."""
    if request.method != "POST":
        return redirect(_PAGE, token)
    form = AnswerForm(request.POST)
    link, files = _link(token), NO_FILES
    visit, summary = requester_page.let_in(request.desk, link)
    with _language(request, visit):
        files = guest_files_of(request, request.desk, form.once)
        if files.files and not request.POST.get("body", "").strip():
            form.fields["body"].required = False
        for problem in files.problems:
            form.add_error(None, problem)
        if form.is_valid() and requester_page.has_written_often(visit):
            form.add_error(None, _OFTEN)
        if form.is_valid():
            said = {"body": form.cleaned_data["body"], "files": files.files, "request_id": form.once}
            try:
                if not files.files and requester_page.has_just_said(visit, summary, said["body"]):
                    return _back(token, "answered")
                commenting.comment(visit.desk, int(summary.number), then=Status.OPEN, **said)
            except Conflict:
                form.add_error(None, _BUSY)
            except Invalid as error:
                form.add_error(*(("body", _NOTHING) if error.field == "body" else (None, error.message)))
            else:
                return _back(token, "answered")
    return _page(request, token, answer_form=form, files=files, status=422)


@of_ticket
@on_get()
@on_post(get="looks, mail settings, requester, ticket", write="ticket", trips=5, reads=8, writes=20)
def close(request: GuestRequest, token: str) -> HttpResponse:
    if request.method == "POST":
        visit, summary = requester_page.let_in(request.desk, _link(token))
        if summary.status != Status.CLOSED:
            changing.change(visit.desk, int(summary.number), Wishes(status=Status.CLOSED))
        return _back(token, "closed")
    return redirect(_PAGE, token)


@of_ticket
@on_get()
@on_post(
    get="attempts, looks, mail settings, requester, ticket",
    query="ticket",
    write="attempts, request, ticket",
    trips=6,
    reads=15,
    writes=20,
)
def rate(request: GuestRequest, token: str) -> HttpResponse:
    """Store a rating. The address in a letter leads to the page, whose button sends it."""
    if request.method != "POST":
        return redirect(_PAGE, token)
    form = RatingForm(request.POST)
    visit, summary = requester_page.let_in(request.desk, _link(token))
    if form.is_valid() and requester_page.has_written_often(visit):
        form.add_error(None, _OFTEN)
    if form.is_valid():
        to, words = Rating(form.cleaned_data["rating"]), form.cleaned_data["words"]
        try:
            rating.rate(visit.desk, int(summary.number), to, words=words, request_id=form.once)
        except NotRatable:
            form.add_error(None, _OVER)
        except Conflict:
            form.add_error(None, _BUSY)
        else:
            return _back(token, "rated")
    return _page(request, token, rating_form=form, status=422)


@of_ticket
@on_post(
    get="attempts, file, looks, mail settings, requester, ticket", write="attempts, file", trips=8, reads=40, writes=5
)
def upload(request: GuestRequest, token: str) -> HttpResponse:
    """Answer with a signed form for one file of the answer that is being written."""
    visit, _summary = requester_page.let_in(request.desk, _link(token))
    once = AnswerForm({"request_id": request.GET.get("form", "")}).once
    with _language(request, visit):
        return answer_guest_upload(request, request.desk, once)


@of_ticket
@on_get(get="file, looks, mail settings, requester, ticket", trips=4, reads=10)
def file(request: GuestRequest, token: str, file_id: str) -> HttpResponse:
    """Lead to a file of a public message."""
    visit, summary = requester_page.let_in(request.desk, _link(token))
    response = HttpResponseRedirect(
        downloads.address_of(visit.desk, int(summary.number), file_id, merged=summary.merged or ())
    )
    response["Cache-Control"], response["Referrer-Policy"] = "private, no-store", "no-referrer"
    return response


# --- other links ---


@of_ticket
@on_get()
@on_post(
    get="attempts, looks, mail settings, requester, ticket", write="attempts, outbox row", trips=5, reads=8, writes=10
)
def ask_for_all(request: GuestRequest, token: str) -> HttpResponse:
    """Send the link to all tickets of the person to their address on record, which nothing here shows."""
    if request.method != "POST":
        return redirect(_PAGE, token)
    visit, summary = requester_page.let_in(request.desk, _link(token))
    network = attempt_limits.network_of(client_address(request))
    sent = requester_page.send_link(request.desk, visit.person.id, int(summary.number), to=TO_ALL, network=network)
    return _back(token, "mailed" if sent else "often")


@of_former
@on_get()
@on_post(get="attempts, mail settings, requester, ticket", write="attempts, outbox row", trips=7, reads=6, writes=10)
def ask_anew(request: GuestRequest, token: str) -> HttpResponse:
    """Send a new link in the place of one that may be over. The answer is the one for a link that never was."""
    link = TicketLink.read(token)
    if request.method == "POST" and link is not None:
        network = attempt_limits.network_of(client_address(request))
        requester_page.send_new_link(request.desk, link, network=network)
    raise LinkGone


@of_all
@on_get(get="looks, mail settings, requester", query="tickets of a requester", trips=1, reads=6)
def all_tickets(request: GuestRequest, token: str) -> HttpResponse:
    """List the tickets of the person, the newest first: two round trips."""
    link = TicketLink.read_all(token)
    if link is None:
        raise LinkGone
    visit, found = requester_page.open_list(request.desk, link, after=request.GET.get("after", ""))
    with _language(request, visit):
        shown = presenters.tickets(found, token=token)
    return _rendered(request, visit, "requester_pages/list.html", {**shown, "token": token})


@of_all
@on_get(get="looks, mail settings, requester, ticket", trips=1, reads=6)
def one_of_all(request: GuestRequest, token: str, number: int) -> HttpResponse:
    link = TicketLink.read_all(token)
    if link is None:
        raise LinkGone
    return redirect(_PAGE, requester_page.link_from_list(request.desk, link, number).token)


# --- the page ---


def _link(token: str) -> TicketLink:
    link = TicketLink.read(token)
    if link is None:
        raise LinkGone
    return link


def _language(request: GuestRequest, visit: Visit) -> AbstractContextManager[str]:
    """Let sentences inside be in the language of the page."""
    return pages.language(request, visit.looks, visit.person.language)


def _back(token: str, done: str) -> HttpResponse:
    return redirect(f"{reverse(_PAGE, args=[token])}?done={done}")


def _page(
    request: GuestRequest,
    token: str,
    *,
    answer_form: AnswerForm | None = None,
    rating_form: RatingForm | None = None,
    files: SentFiles = NO_FILES,
    status: int = 200,
) -> HttpResponse:
    before = request.GET.get("before") or None
    visit, found = requester_page.open_ticket(request.desk, _link(token), before=before)
    with _language(request, visit):
        shown = presenters.ticket(visit, found, token=token)
        answering = answer_form or AnswerForm()
        chosen = request.GET.get("rating", "")
        initial = {
            "rating": chosen if chosen in list(Rating) else shown["rating"],
            "words": shown["words"],
        }
        page: dict[str, Any] = {
            **shown,
            "token": token,
            "answer_form": answering,
            "rating_form": rating_form or RatingForm(initial=initial),
            "form": _with_errors(answer_form, rating_form),
            "attached": files_field(files.files, limits=GUEST_FIELD),
            "upload_url": f"{reverse('tickets:r_upload', args=[token])}?form={answering.once}",
            "done": request.GET.get("done", "") if request.GET.get("done") in _DONE else "",
            "is_past": before is not None,
        }
    return _rendered(request, visit, "requester_pages/ticket.html", page, status=status)


def _with_errors(*forms: Form | None) -> Form:
    """Return the form that was sent, whose errors the page lists at its top."""
    return next((one for one in forms if one is not None), Form())


def _rendered(
    request: GuestRequest, visit: Visit, template: str, values: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    return pages.page(
        request,
        template,
        values,
        looks=visit.looks,
        requester_language=visit.person.language,
        status=status,
        signed_link=True,
    )
