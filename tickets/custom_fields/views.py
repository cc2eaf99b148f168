"""Show what a desk has defined, and let its admins change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal.errors import Conflict, Invalid, NotFound
from portal.web.access import member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.custom_fields import defining
from tickets.custom_fields.definitions import FIELDS_LIMIT, KINDS_LIMIT, REQUIRED, CustomField, Definitions
from tickets.custom_fields.forms import FieldForm, KindForm, MoveForm
from tickets.ticket.custom_values import FieldType

_PAGE: Final = "tickets:custom_fields"

_ROOM: Final = "names of 40 characters of four bytes, and a full setup"
_changed = on_post(get="setup", write="audit row, membership, setup", trips=7, reads=6, writes=60, room=_ROOM)


@member(Role.ADMIN)
@on_get(get="setup", trips=1, reads=2)
def definitions_page(request: TenantRequest) -> HttpResponse:
    """Show the fields and the kinds, by one GetItem."""
    defined, seen = defining.read(request.tenant)
    page = {
        "defined": defined,
        "version": seen.version,
        "uses": {one.id: _uses(defined, one) for one in defined.fields},
        "archived_fields": [one for one in defined.fields if one.is_archived],
        "archived_kinds": [one for one in defined.kinds if one.is_archived],
        "fields_limit": FIELDS_LIMIT,
        "kinds_limit": KINDS_LIMIT,
    }
    return render(request, "custom_fields/definitions.html", page)


def _uses(defined: Definitions, one: CustomField) -> str:
    names = {**{kind.id: kind.name for kind in defined.kinds_in_use}, "": _("No kind") if defined.kinds else _("All")}
    told = [
        _("%(name)s (required)") % {"name": name} if one.forms[kind] == REQUIRED else name
        for kind, name in names.items()
        if one.forms.get(kind)
    ]
    return ", ".join(told)


@member(Role.ADMIN)
@on_get(get="setup", trips=1, reads=2)
@_changed
def new_field(request: TenantRequest) -> HttpResponse:
    def save(form: Any) -> str:
        kind = FieldType(form.cleaned_data["type"])
        defining.add_field(request.tenant, kind, form.wishes, version=_version(form), by=actor_of(request))
        return _("The field “%(name)s” is there.") % {"name": form.cleaned_data["name"]}

    return _edit(request, lambda defined, *args, **more: FieldForm(*args, defined=defined, stored=None, **more), save)


@member(Role.ADMIN)
@on_get(get="setup", trips=1, reads=2)
@_changed
def field(request: TenantRequest, field_id: str) -> HttpResponse:
    def make(defined: Definitions, *args: Any, **more: Any) -> FieldForm:
        if (stored := defined.by_id.get(field_id)) is None:
            raise Http404
        return FieldForm(*args, defined=defined, stored=stored, **more)

    def save(form: Any) -> str:
        defining.change_field(request.tenant, field_id, form.wishes, version=_version(form), by=actor_of(request))
        return _("Field saved.")

    return _edit(request, make, save, field_id)


@member(Role.ADMIN)
@on_get(get="setup", trips=1, reads=2)
@_changed
def new_kind(request: TenantRequest) -> HttpResponse:
    def save(form: Any) -> str:
        defining.add_kind(request.tenant, form.wishes, version=_version(form), by=actor_of(request))
        return _("The kind “%(name)s” is there.") % {"name": form.cleaned_data["name"]}

    return _edit(request, lambda defined, *args, **more: KindForm(*args, defined=defined, stored=None, **more), save)


@member(Role.ADMIN)
@on_get(get="setup", trips=1, reads=2)
@_changed
def kind(request: TenantRequest, kind_id: str) -> HttpResponse:
    def make(defined: Definitions, *args: Any, **more: Any) -> KindForm:
        if (stored := defined.kinds_by_id.get(kind_id)) is None:
            raise Http404
        return KindForm(*args, defined=defined, stored=stored, **more)

    def save(form: Any) -> str:
        defining.change_kind(request.tenant, kind_id, form.wishes, version=_version(form), by=actor_of(request))
        return _("Kind saved.")

    return _edit(request, make, save, kind_id)


@member(Role.ADMIN)
@on_post(write="audit row, membership, setup", trips=5, reads=3, writes=35, room=_ROOM)
def move(request: TenantRequest) -> HttpResponse:
    """Move a field or a kind up or down."""
    form = MoveForm(request.POST)
    with refusal_told(request, Invalid, Conflict, NotFound):
        if not form.is_valid():
            raise Invalid(_("This change is incomplete. Reload the page and try again."))
        data = form.cleaned_data
        defining.move(
            request.tenant, data["id"], by_places=data["by_places"], version=data["version"], by=actor_of(request)
        )
    return redirect(_PAGE)


def _version(form: Any) -> int:
    return int(form.cleaned_data["version"])


def _edit(
    request: TenantRequest, make: Callable[..., Any], save: Callable[[Any], str], defined_id: str = ""
) -> HttpResponse:
    """Show a form of definitions or store what it holds. A conflict keeps what was typed, on the newer version."""
    defined, seen = defining.read(request.tenant)
    if request.method != "POST":
        return _form_page(request, make(defined, initial={"version": seen.version}), defined, defined_id)
    form = make(defined, request.POST)
    if form.is_valid():
        with told_in(form, lambda: make(defined, initial={"version": seen.version}), is_new=not defined_id):
            messages.success(request, save(form))
            return redirect(_PAGE)
    return _form_page(request, form, defined, defined_id)


def _form_page(request: TenantRequest, form: Any, defined: Definitions, defined_id: str) -> HttpResponse:
    page = {
        "form": form,
        "words": _words(isinstance(form, FieldForm)),
        "stored": defined.by_id.get(defined_id) or defined.kinds_by_id.get(defined_id),
    }
    return render(request, "custom_fields/form.html", page, status=status_of(form))


def _words(is_field: bool) -> dict[str, Any]:
    if is_field:
        return {"is_field": True, "new": _("New field"), "edit": _("Edit the field"), "add": _("Add the field")}
    return {"is_field": False, "new": _("New kind"), "edit": _("Edit the kind"), "add": _("Add the kind")}
