"""Show and change ready answers, offer them to whoever writes a comment, and fill one in for a ticket."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.dynamo.client import alongside
from portal.errors import Forbidden
from portal.web import markdown
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from tenants.membership import members
from tenants.membership.forms import OfferedMembers, offered_members
from tenants.membership.members import AtHand
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of
from tickets.ready_answers import answer_changes, answer_reading, inserting
from tickets.ready_answers.answer_reading import Given
from tickets.ready_answers.forms import ReadyAnswerForm, initial_of
from tickets.ready_answers.stored import DESK, ReadyAnswerItem, ReadyAnswerRow

_TYPED = 100  # characters of a query


@member(Role.AGENT)
@on_get(get="counter", query="ready answer", trips=2, reads=40)
def list_answers(request: TenantRequest) -> HttpResponse:
    """List the shared answers or one's own, or those that `?q=` finds: two round trips with how often each was used."""
    tenant, typed = request.tenant, request.GET.get("q", "").strip()[:_TYPED]
    shared, cursor = request.GET.get("whose") != "mine", ""
    if typed:
        rows = answer_reading.find(tenant, typed, limit=answer_reading.PAGE)
    else:
        rows, cursor = answer_reading.listed(tenant, shared=shared, after=request.GET.get("after", ""))
    uses = answer_reading.uses(tenant, [row.answer_id for row in rows])
    context = {
        "q": typed,
        "shared": shared,
        "answers": [_line(row, uses[row.answer_id]) for row in rows],
        "next": cursor,
        "is_first": not request.GET.get("after"),
    }
    return render(request, "ready_answers/list.html", context)


def _line(row: ReadyAnswerRow, uses: int) -> dict[str, Any]:
    return {
        "id": row.answer_id,
        "title": row.title,
        "shortcut": row.shortcut,
        "is_shared": row.owner == DESK,
        "uses": ngettext("used %(num)s time", "used %(num)s times", uses) % {"num": uses}
        if uses
        else _("not used yet"),
    }


@member(Role.AGENT)
@on_get(query="members by name", trips=1, reads=8)
@on_post(query="members by name", write="audit row, membership, ready answer", trips=8, reads=20, writes=30)
def new_answer(request: TenantRequest) -> HttpResponse:
    form = ReadyAnswerForm(
        request.POST or None,
        people=_people(request, members.at_hand(request.tenant)),
        may_share=request.tenant.is_admin,
        is_new=True,
        initial={"whose": "shared" if request.GET.get("whose") == "shared" else "mine"},
    )
    if request.method == "POST" and form.is_valid() and request.POST.get("then") != "preview":
        with told_in(form):
            answer_changes.create(request.tenant, form.given, shared=form.shared, by=actor_of(request))
            messages.success(request, _("Answer saved."))
            return _to_list(shared=form.shared)
    return _form_page(request, form, None)


@member(Role.AGENT)
@on_get(get="member, ready answer", query="members by name", trips=2, reads=10)
@on_post(
    get="member, ready answer",
    query="members by name",
    write="audit row, membership, ready answer",
    trips=8,
    reads=20,
    writes=40,
)
def edit_answer(request: TenantRequest, answer: str) -> HttpResponse:
    """Edit an answer; who may not change a shared one reads it."""
    read, aside = (
        partial(answer_reading.read, request.tenant, answer),
        partial(members.at_hand, request.tenant),
    )
    item, known = alongside(read, aside=aside)
    people = _people(request, known, item.resolver)
    if request.method == "POST":
        _refuse_changing(request, item)
    how: Any = {"people": people, "may_share": False, "is_new": False}
    stored = ReadyAnswerForm(initial=initial_of(Given.of(item), int(item.version)), **how)
    if request.method != "POST":
        return _form_page(request, stored, item, people=people)
    form = ReadyAnswerForm(request.POST, **how)
    if form.is_valid() and request.POST.get("then") != "preview":
        version = form.cleaned_data["version"] or 0
        with told_in(form, lambda: stored):
            answer_changes.change(request.tenant, answer, form.given, version=version, by=actor_of(request))
            messages.success(request, _("Answer saved."))
            return _to_list(shared=item.owner == DESK)
    return _form_page(request, form, item)


@member(Role.AGENT)
@on_get(get="ready answer", trips=1, reads=2)
@on_post(get="ready answer", write="audit row, membership, ready answer", trips=5, reads=5, writes=30)
def delete_answer(request: TenantRequest, answer: str) -> HttpResponse:
    item = answer_reading.read(request.tenant, answer)
    _refuse_changing(request, item)
    if request.method != "POST":
        return render(request, "ready_answers/delete.html", {"answer": item})
    answer_changes.delete(request.tenant, answer, by=actor_of(request))
    messages.success(request, _("Answer deleted."))
    return _to_list(shared=item.owner == DESK)


def _to_list(*, shared: bool) -> HttpResponse:
    to = redirect("tickets:answers")
    if not shared:
        to["Location"] += "?whose=mine"
    return to


def _may_change(request: TenantRequest, item: ReadyAnswerItem | None) -> bool:
    return item is None or item.owner != DESK or request.tenant.is_admin


def _refuse_changing(request: TenantRequest, item: ReadyAnswerItem) -> None:
    if not _may_change(request, item):
        raise Forbidden(_("Only admins and owners can change shared answers."))


def _people(request: TenantRequest, known: AtHand, *also: str) -> OfferedMembers:
    return offered_members(request.tenant, known, also=filter(None, also))


def _form_page(
    request: TenantRequest,
    form: ReadyAnswerForm,
    item: ReadyAnswerItem | None,
    *,
    people: Iterable[tuple[str, str]] = (),
) -> HttpResponse:
    body = str(form.data.get("body", "")) if form.is_bound else item.body if item else ""
    context = {
        "form": form,
        "answer": item,
        "is_shared": item is not None and item.owner == DESK,
        "can_change": _may_change(request, item),
        "changes": [*answer_reading.actions(item, dict(people))] if item else [],
        "is_preview": request.POST.get("then") == "preview",
        "preview": markdown.render(body),
    }
    return render(request, "ready_answers/form.html", context, status=status_of(form))


# --- in the composer ---


@member(Role.AGENT)
@on_get(query="ready answer", trips=1, reads=6)
def answer_options(request: TenantRequest) -> JsonResponse:
    """Offer the answers that fit what is typed: one round trip, however many answers there are."""
    found = answer_reading.find(request.tenant, request.GET.get("q", "")[:_TYPED])
    shown = [{"id": row.answer_id, "title": row.title, "shortcut": row.shortcut} for row in found]
    return JsonResponse({"answers": shown})


@member(Role.AGENT)
@on_get(get="member, ready answer, ticket", trips=2, reads=4)
def fill_answer(request: TenantRequest, number: int, answer: str) -> JsonResponse:
    """Return an answer for a ticket: its text with the ticket's values, and what it changes with the comment."""
    return JsonResponse(inserting.filled(request.tenant, number, answer).told)
