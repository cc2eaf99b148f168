"""Let people edit and delete comments, and see how a text will look."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_lazy

from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import member, on_get, on_post
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest
from tickets.desk import comment_changes
from tickets.desk.comment_changes import TooLate
from tickets.desk.forms import WrittenField
from tickets.desk.ticket_presenters import entry_url
from tickets.letters import ledger
from tickets.ticket import fields, stored
from tickets.ticket.stored import HELD, ActivityItem


class CommentTextForm(forms.Form):
    """The text of a comment that exists, on the mark of the text that its author saw."""

    body = WrittenField(
        fields.comment,
        limit=fields.COMMENT_LIMIT,
        label=gettext_lazy("Text"),
        error_messages={"required": gettext_lazy("Write something, or delete the comment.")},
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text=gettext_lazy("You can use Markdown."),
    )
    seen = forms.CharField(max_length=32, widget=forms.HiddenInput)


@member(Role.AGENT)
@on_get(get="ticket", trips=1, reads=3)
@on_post(get="ticket", write="ticket", trips=5, reads=500, writes=15)
def edit(request: TenantRequest, number: int, entry: str) -> HttpResponse:
    sort = sort_of(entry)
    _, item = comment_changes.read(request.tenant, number, sort)
    form, status = CommentTextForm(request.POST or None, initial=_initial(item)), 200
    if item.files:
        body_field: Any = form.fields["body"]
        body_field.required, body_field.stored = False, lambda text: fields.comment(text) if text.strip() else ""
    if not (request.method == "POST" or comment_changes.may_change(request.tenant, item)):
        raise TooLate
    if request.method == "POST" and form.is_valid():
        body, seen = form.cleaned_data["body"], form.cleaned_data["seen"]
        try:
            comment_changes.edit(request.tenant, number, sort, body=body, seen=seen)
        except (Invalid, Conflict) as error:
            status = error.status if isinstance(error, Conflict) else 422
            _, item = comment_changes.read(request.tenant, number, sort)
            data = request.POST.copy()
            data["seen"] = comment_changes.mark_of(item)  # saved once more, it replaces the text that is shown
            form.data = data
            form.add_error("body", error.message)
        else:
            messages.success(request, _done(item, gettext("The note is changed."), gettext("The comment is changed.")))
            return redirect(_address(number, item))
    if form.errors and status == 200:
        status = 422
    return render(request, "tickets/comment_edit.html", context_of(number, item) | {"form": form}, status=status)


@member(Role.AGENT)
@on_get(get="ticket", trips=1, reads=3)
@on_post(get="file, ticket", write="file, ticket", trips=9, reads=12, writes=20)
def delete(request: TenantRequest, number: int, entry: str) -> HttpResponse:
    """Ask whether a comment or an internal note is to be deleted, and delete it."""
    sort = sort_of(entry)
    _, item = comment_changes.read(request.tenant, number, sort)
    if request.method == "POST":
        if item.letter and comment_changes.may_change(request.tenant, item):
            letter: dict[str, Any] = item.letter.attribute_values
            if digest := letter.get("digest"):
                ledger.forget_original(request.tenant.repository, digest)
        comment_changes.delete(request.tenant, number, sort)
        messages.success(request, _done(item, gettext("The note is deleted."), gettext("The comment is deleted.")))
        return redirect(_address(number, item))
    if not comment_changes.may_change(request.tenant, item):
        raise TooLate
    return render(request, "tickets/comment_delete.html", context_of(number, item))


def sort_of(reference: str) -> str:
    """Return the sort key of the comment that an address names. Raises NotFound."""
    try:
        return stored.of_reference(reference)
    except ValueError as error:
        raise NotFound(gettext("There is no such comment.")) from error


def _initial(item: ActivityItem) -> dict[str, str]:
    return {"body": item.body, "seen": comment_changes.mark_of(item)}


def _done(item: ActivityItem, of_note: str, of_comment: str) -> str:
    return of_note if item.kind == "note" else of_comment


def _word(item: ActivityItem) -> str:
    return "note" if item.kind == "note" else "comment"


def context_of(number: int, item: ActivityItem) -> dict[str, object]:
    return {
        "number": number,
        "what": _word(item),
        "now": item.body,
        "author_name": item.author_name,
        "warning": _letter_warning(item),
        "files": len(item.files or ()),
        "back": _address(number, item),
    }


def _address(number: int, item: ActivityItem) -> str:
    return entry_url(number, item.sk)


def _letter_warning(item: ActivityItem) -> str:
    """Say what becomes of the letter that a comment was sent as, "" for one that was not."""
    if not item.delivery:
        return ""
    if item.delivery == HELD:
        return gettext("This reply has not left as a letter yet. What you do now may still reach it, but need not.")
    return gettext("This reply has left as a letter. A letter cannot be unsent: the requester keeps it as it was.")


@member(Role.AGENT)
@on_post()
def preview(request: TenantRequest) -> HttpResponse:
    """Show a text as it will look in a ticket."""
    return render(request, "tickets/_preview.html", {"text": request.POST.get("body", "")[:_PREVIEWED]})


_PREVIEWED: Final = 60_000  # characters, more than any text may have
