"""Build a ModelAdmin whose pages are planned reads and whose saves are one transaction with their audit rows.

Beside saving an object, its actions are buttons; what has consequences asks first, and for a reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.checks import ModelAdminChecks
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.utils import unquote
from django.core.checks import CheckMessage, Error
from django.core.exceptions import PermissionDenied
from django.db.models import BooleanField
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from portal import plain_text
from portal.dynamo.store import Transaction
from portal.errors import Invalid, PortalError
from portal.nosql.admin.changelist import CURSOR_VAR, DynamoChangeList
from portal.nosql.admin.site import AuditedChange, content_type
from portal.nosql.admin.stale_forms import SeenForm
from portal.nosql.planner.facade import Facade
from portal.nosql.planner.patterns import CustomListing, Get, Lookup, Query
from portal.schema.access_patterns import Cost

_UNAVAILABLE: Final = {
    "autocomplete_fields": "it searches for parts of words",
    "date_hierarchy": "it counts and groups by date",
    "filter_horizontal": "there are no relations between items",
    "filter_vertical": "there are no relations between items",
    "inlines": "an item is saved by a rule of its own",
    "list_editable": "many rows would be saved without one transaction",
    "list_select_related": "there are no joins",
    "raw_id_fields": "there are no relations between items",
    "show_full_result_count": "nothing is counted",
}


class DynamoAdminChecks(ModelAdminChecks):
    def check(self, admin_obj: Any, **kwargs: Any) -> list[CheckMessage]:
        if not issubclass(admin_obj.model, Facade) or not any(isinstance(p, Get) for p in admin_obj.model.patterns):
            return [_error(admin_obj, "The model must be a Facade whose patterns include a Get.", "E001")]
        return [*super().check(admin_obj, **kwargs), *_problems(admin_obj)]


def _problems(admin: Any) -> Iterator[CheckMessage]:
    patterns = admin.model.patterns
    lists = [p for p in patterns if isinstance(p, Query | CustomListing)]
    for option, why in _UNAVAILABLE.items():
        if getattr(admin, option):
            yield _error(admin, f"{option} cannot work on DynamoDB: {why}.", "E002")
    if admin.show_facets is not ShowFacets.NEVER:
        yield _error(admin, "show_facets cannot work on DynamoDB: nothing is counted.", "E002")
    if not (admin.actions_on_top or admin.actions_on_bottom):
        yield _error(admin, "Without actions Django puts a style into the page, which a strict CSP stops.", "E003")
    for field in admin.model._meta.get_fields():
        if field.is_relation:
            yield _error(admin, f"{field.name} is a relation; an item holds an id instead.", "E004")
    prefixed = {p.order for p in lists if p.prefix}
    pointed = {p.field for p in patterns if isinstance(p, Lookup)} | {admin.model._meta.pk.name, "pk"}
    pointed |= {name for p in patterns if isinstance(p, Get) for name in p.fields}
    for name in admin.search_fields:
        if not (name[:1] == "^" and name[1:] in prefixed) and not (name[:1] == "=" and name[1:] in pointed):
            hint = "Use “^field” for a pattern that has a prefix, “=field” for a Lookup or a part of the pk."
            yield _error(admin, f"No pattern searches by “{name}”.", "E005", hint)
    for name in admin.ordering or ():
        if name.lstrip("-") not in {p.order for p in lists}:
            yield _error(admin, f"No pattern sorts by “{name}”.", "E006")
    known = {n for p in lists for n in (*p.by, *(p.may if isinstance(p, CustomListing) else ()))} | set(
        admin.model.filters
    )
    for item in admin.list_filter:
        yield from _filter_problems(admin, item, known)


def _filter_problems(admin: Any, item: Any, known: set[str]) -> Iterator[CheckMessage]:
    if isinstance(item, type):
        return
    if not isinstance(item, str) or item not in known:
        yield _error(admin, f"No pattern filters by “{item}”, and the facade's `filters` do not name it.", "E007")
        return
    field = admin.model._meta.get_field(item)
    if not field.choices and not isinstance(field, BooleanField):
        yield _error(admin, f"“{item}” has no choices: listing its values would read all of them.", "E008")


def _error(admin: Any, text: str, number: str, hint: str | None = None) -> Error:
    return Error(text, hint=hint, obj=admin.__class__, id=f"nosql_admin.{number}")


REASON_LIMIT = 300  # characters; an audit row keeps up to 500 of a value


@dataclass(frozen=True)
class ObjectAction:
    """Describe a button of the change form: its name in the form, its label, and what it does.

    With `needs_reason` the button leads to a page that asks for a reason, and with `asks` to one that says what
    follows; only that page's button acts. With both, one page follows the other.
    """

    name: str
    label: str
    description: str
    needs_reason: bool = False
    asks: bool = False


_NO_REASON = "Say why: the audit trail keeps it."


class ReasonField(forms.CharField):
    """Take a reason that somebody can read: white space and invisible characters are none."""

    def __init__(self, **how: Any) -> None:
        super().__init__(max_length=REASON_LIMIT, error_messages={"required": _NO_REASON}, **how)

    def clean(self, value: Any) -> Any:
        reason = super().clean(value)
        if plain_text.has_visible_text(reason):
            return reason
        if self.required:
            raise forms.ValidationError(_NO_REASON)
        return ""


class ReasonForm(forms.Form):
    reason = ReasonField(
        widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}),
        help_text="It is kept in the audit trail with your name.",
    )


HISTORY_PAGE = 50

if TYPE_CHECKING:  # only the stubs know what it is generic in
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class DynamoAdmin(_ModelAdmin):
    """Let people who may enter the site look, and do what `may_add`, `may_change` and `may_delete` allow.

    `add`, `change` and `remove` write. As they are, they put, update or delete the one item of the object; an admin
    whose objects are more than that calls its rules there instead.
    """

    admin_site: Any  # a DynamoAdminSite
    checks_class = DynamoAdminChecks
    form = SeenForm
    change_list_template = "nosql_admin/change_list.html"
    change_form_template = "nosql_admin/change_form.html"
    delete_confirmation_template = "nosql_admin/delete_confirmation.html"
    object_history_template = "nosql_admin/object_history.html"
    # What each of its pages may cost; a page does not start without: see portal/schema/access_patterns.py.
    get_costs: ClassVar[Cost | None] = None
    post_costs: ClassVar[Cost | None] = None
    object_actions: ClassVar[tuple[ObjectAction, ...]] = ()
    object_action_template = "nosql_admin/object_action.html"
    list_per_page = 25
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    view_on_site = False
    may_add = may_change = may_delete = False
    # A field in the facade's `searched` with an InputFilter: where a prefix search finds nothing, rows are searched.
    search_rows_by = ""

    # --- writing ---

    def add(self, request: HttpRequest, obj: Any, form: Any) -> None:
        transaction, item = Transaction(), obj.to_item()
        transaction.put(item, condition=_key(item).does_not_exist())
        self.admin_site.commit(request, transaction, AuditedChange("added", obj, after=_values(obj, form.changed_data)))

    def change(self, request: HttpRequest, obj: Any, form: Any) -> None:
        """Write the changed fields, if they still are what they were when this request read them."""
        names = [name for name in form.changed_data if name != "seen"]
        before = {name: form.initial[name] for name in names}
        item, condition = obj.to_item(), None
        for name in names:
            stored = getattr(type(item), name)
            unchanged = stored == before[name]
            if before[name] in ("", None, obj._meta.get_field(name).get_default()):
                unchanged |= stored.does_not_exist()  # which is how a facade shows what is not stored
            condition = unchanged if condition is None else condition & unchanged
        if condition is None:
            return
        transaction = Transaction()
        actions = [getattr(type(item), name).set(getattr(obj, name)) for name in names]
        transaction.update(item, actions, condition=_key(item).exists() & condition)
        self.admin_site.commit(request, transaction, AuditedChange("changed", obj, before, _values(obj, names)))

    def remove(self, request: HttpRequest, obj: Any) -> None:
        transaction, item = Transaction(), obj.to_item()
        transaction.delete(item, condition=_key(item).exists())
        names = [field.name for field in obj._meta.concrete_fields if not field.primary_key]
        self.admin_site.commit(request, transaction, AuditedChange("removed", obj, before=_values(obj, names)))

    def consequences(self, obj: Any) -> Iterable[str]:
        """Return what else goes with the object, as sentences on the page that asks for confirmation."""
        return ()

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        (self.change if change else self.add)(request, obj, form)

    def delete_model(self, request: Any, obj: Any) -> None:
        self.remove(request, obj)

    def log_addition(self, *args: Any, **kwargs: Any) -> Any:
        """Do nothing: the audit row was written with the change."""

    def log_change(self, *args: Any, **kwargs: Any) -> Any:
        """Do nothing, for the same reason."""

    def log_deletions(self, *args: Any, **kwargs: Any) -> Any:
        """Do nothing, for the same reason."""

    # --- actions beside saving, the buttons of the change form ---

    def offered_actions(self, request: HttpRequest, obj: Any) -> list[ObjectAction]:
        """Return the actions that make sense for this object and this operator."""
        return list(self.object_actions)

    def follows(self, request: HttpRequest, obj: Any, action: str) -> Iterable[str]:
        """Say in sentences what follows from an action that asks first, or for a reason."""
        return ()

    def perform(self, request: HttpRequest, obj: Any, action: str, *, reason: str) -> str:
        """Do what the action of this name says and return a message about it. Raises PortalError."""
        raise NotImplementedError

    def performed_url(self, request: HttpRequest) -> str:
        """Return where to go afterwards: the same page, unless the object is gone."""
        return request.path

    def action_of(self, request: HttpRequest) -> ObjectAction | None:
        """Return the action whose button was pressed, None for any other request."""
        return next((action for action in self.object_actions if action.name in request.POST), None)

    def act(self, request: Any, object_id: str, action: ObjectAction) -> Any:
        """Perform an action, or ask for its reason first."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        typed = {"reason": request.POST.get("why", "")}  # into the form with the button: it is not typed twice
        form = ReasonForm(request.POST if "reason" in request.POST else None, initial=typed)
        if action.needs_reason and not form.is_valid():
            return self._ask(request, obj, action, form)
        if action.asks and "confirmed" not in request.POST:
            return self._ask(request, obj, action, form if action.needs_reason else None, is_last=True)
        reason = form.cleaned_data["reason"] if action.needs_reason else ""
        try:
            messages.success(request, self.perform(request, obj, action.name, reason=reason))
        except PortalError as error:
            if error.status >= 500:
                raise
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())
        return HttpResponseRedirect(self.performed_url(request))

    def _ask(
        self, request: Any, obj: Any, action: ObjectAction, form: ReasonForm | None, *, is_last: bool = False
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": f"{action.label}: {obj}",
            "content": None,  # of one page one reason is asked
            "action": action,
            "form": form,
            "is_last": is_last,
            "follows": list(self.follows(request, obj, action.name)),
            "object": obj,
            "opts": self.opts,
            "module_name": capfirst(self.opts.verbose_name_plural),
        }
        status = 422 if form and form.errors else 200
        return TemplateResponse(request, self.object_action_template, context, status=status)

    # --- who may what ---

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        return bool(self.admin_site.has_permission(request))

    has_module_permission = has_view_permission

    def has_add_permission(self, request: Any) -> bool:
        return self.may_add and self.has_view_permission(request)

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return self.may_change and self.has_view_permission(request)

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return self.may_delete and self.has_view_permission(request)

    # --- the list ---

    def get_changelist(self, request: Any, **kwargs: Any) -> type[DynamoChangeList]:
        return DynamoChangeList

    def prepare(self, objects: list[Any], columns: Collection[Any]) -> None:
        """Add to objects that were just read what these columns show of others, by one read for all of them."""

    def get_sortable_by(self, request: Any) -> Any:
        """Return the columns that the list of this address can be sorted by."""
        chosen = {name.partition("__")[0] for name, value in request.GET.items() if value}
        lists = [p for p in self.model.patterns if isinstance(p, Query | CustomListing) and set(p.by) <= chosen]
        longest = max((len(p.by) for p in lists), default=0)
        return {p.order for p in lists if len(p.by) == longest} & set(self.get_list_display(request))

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Search by prefix ("^field"), or by the first exact value that finds something ("=field")."""
        term, matches = search_term.strip(), queryset
        for name in self.search_fields if term else ():
            if name.startswith("^"):
                return queryset.filter(**{f"{name[1:]}__startswith": term}), False
            matches = queryset.filter(**{name[1:]: term})
            if name != self.search_fields[-1] and matches:
                break
        return matches, False

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        if request.POST.get("select_across", "0") not in ("", "0"):
            raise Invalid("An action takes the rows that are chosen on this page, not all there are.")
        title = {"title": capfirst(self.opts.verbose_name_plural)}
        response: Any = super().changelist_view(request, title | (extra_context or {}))
        cl = (getattr(response, "context_data", None) or {}).get("cl")
        if cl is not None and cl.bad_request:
            response.status_code = 400
        elif cl is not None and cl.rows_search_url and not (cl.result_list or cl.cursor or cl.refusal):
            return HttpResponseRedirect(cl.rows_search_url)
        return response

    # --- one object ---

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        obj = super().get_object(request, object_id, from_field)
        if obj is not None:
            self.admin_site.hide(request, [obj])
        return obj

    def _get_obj_does_not_exist_redirect(self, request: Any, opts: Any, object_id: str) -> Any:
        raise Http404(f"There is no such {opts.verbose_name}.")

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.refusal = getattr(request, "nosql_refusal", None)
        return form

    def render_change_form(self, request: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        content_type(self.model)
        if (original := context.get("original")) is not None:
            shown = self.get_fields(request, original)
            self.prepare([original], shown)
            self.admin_site.hide(request, [original])  # what `prepare` has added
            if set(shown) <= set(self.get_readonly_fields(request, original)):  # there is nothing to save
                context |= {"show_save": False, "show_save_and_continue": False, "show_close": True}
                context["title"] = capfirst(self.opts.verbose_name)
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(
        self, request: Any, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """Turn a write that is refused into an error of its form, which then stands upon what is stored now."""
        action = self.action_of(request)
        if object_id is not None and action is not None:
            return self.act(request, object_id, action)
        status = 422
        response: Any
        try:
            response = super().changeform_view(request, object_id, form_url, extra_context)
        except PortalError as error:
            if request.method != "POST" or error.status >= 500:
                raise
            request.nosql_refusal, status = error, error.status
            response = super().changeform_view(request, object_id, form_url, extra_context)
        context = getattr(response, "context_data", None) or {}
        adminform = context.get("adminform")
        if request.method == "POST" and adminform is not None:
            response.status_code = 409 if adminform.form.is_conflict else status
        elif adminform is not None and adminform.form.instance.pk and self.may_change:
            context["object_actions"] = self.offered_actions(request, adminform.form.instance)
        return response

    def get_deleted_objects(self, objs: Any, request: Any) -> Any:
        """List the object and its consequences. Django would follow relations through SQL."""
        sentences = [sentence for obj in objs for sentence in (f"{capfirst(self.opts.verbose_name)}: {obj}",)]
        sentences += [sentence for obj in objs for sentence in self.consequences(obj)]
        return sentences, {}, set(), []

    def delete_view(self, request: Any, object_id: str, extra_context: Any = None) -> Any:
        try:
            return super().delete_view(request, object_id, extra_context)
        except PortalError as error:
            if request.method != "POST" or error.status >= 500:
                raise
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())

    def history_view(self, request: Any, object_id: str, extra_context: Any = None) -> Any:
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        planned = self.admin_site.history(request, obj)
        page = planned.page(HISTORY_PAGE, request.GET.get(CURSOR_VAR, "")) if planned is not None else None
        self.admin_site.hide(request, page.objects if page is not None else ())
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": f"History of {obj}",
            "page": page,
            "cursor_var": CURSOR_VAR,
            "module_name": capfirst(self.opts.verbose_name_plural),
            "object": obj,
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, self.object_history_template, context)


def _key(item: Any) -> Any:
    return getattr(type(item), type(item).table.hash)


def _values(obj: Any, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(obj, name) for name in names if hasattr(obj, name)}
