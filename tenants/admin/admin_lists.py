"""Share what the operators' lists need: names beside ids, filters by tenant or person, and items that were given up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from portal.dynamo.client import fan_out
from portal.errors import Invalid, PortalError, Unavailable
from portal.nosql.admin import DynamoAdmin, InputFilter, Notice
from portal.nosql.planner.facade import Facade
from portal.schema import keys
from tenants.audit_trail.recording import AuditAction, words_of
from tenants.operators.facades import Account, Tenant
from tenants.operators.operator_site import actor
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory


def with_id(name: str, object_id: str) -> str:
    """Return a name with its id in small; the id alone where nothing has this name any more."""
    if not name:
        return object_id
    return format_html('{} <small class="admin-id">{}</small>', name, object_id)


class NamedColumns:
    """Add the columns `tenant` and `person` to an admin of objects that have `tenant_id` or `user_id`.

    Names that the rows do not hold are read for the whole page, by one BatchGetItem for tenants and one for persons.
    """

    def prepare(self, objects: list[Any], columns: Collection[Any]) -> None:
        tenants = {obj.tenant_id for obj in objects if _lacks(obj, "tenant_name", "tenant_id")}
        persons = {obj.user_id for obj in objects if _lacks(obj, "user_name", "user_id")}
        queries = [
            (Tenant, tenants if "tenant" in columns else ()),
            (Account, persons if {"person", "account"} & {*columns} else ()),
        ]
        reads: list[Any] = [partial(list, model.objects.filter(pk__in=ids)) for model, ids in queries if ids]
        names = {obj.pk: _name(obj) for objects_read in (fan_out(reads) if reads else []) for obj in objects_read}
        for obj in objects:
            for name, key in (("tenant_name", "tenant_id"), ("user_name", "user_id")):
                if not getattr(obj, name, ""):
                    setattr(obj, name, names.get(getattr(obj, key, ""), ""))

    @admin.display(description="tenant", empty_value="none")
    def tenant(self, obj: Any) -> Any:
        if not obj.tenant_id:
            return None
        if obj.tenant_id == keys.PLATFORM:
            return "the platform"
        url = reverse("admin:tenants_tenant_change", args=[obj.tenant_id])
        return format_html('<a href="{}">{}</a>', url, with_id(obj.tenant_name, obj.tenant_id))

    @admin.display(description="person")
    def person(self, obj: Any) -> Any:
        """Show the person without a link: in lists the whole cell links to the object."""
        return with_id(obj.user_name, obj.user_id)

    @admin.display(description="account")
    def account(self, obj: Any) -> Any:
        url = reverse("admin:tenants_account_change", args=[obj.user_id])
        return format_html('<a href="{}">{}</a>', url, with_id(obj.user_name, obj.user_id))


def _lacks(obj: Any, name: str, key: str) -> bool:
    object_id = getattr(obj, key, "")
    return not getattr(obj, name, "") and bool(keys.USER_ID.match(object_id or ""))


def _name(obj: Any) -> str:
    return f"{obj.name}, {obj.email}" if isinstance(obj, Account) else str(obj.name)


class TenantInput(InputFilter):
    """Name a tenant. An id costs nothing to look up, a slug one read, and a name a Query more."""

    title, parameter_name = "tenant", "tenant_id"
    help_text = "slug, name or id"

    def clean(self, value: str) -> str | None:
        """Return a tenant's id. Raises Invalid where a part of a name fits several tenants."""
        if keys.TENANT_ID.match(value):
            return value
        tenant_id = tenant_directory.id_of(value.casefold())
        if tenant_id is not None:
            return tenant_id
        named = [tenant.pk for tenant in Tenant.objects.filter(name__icontains=value)[:2]]
        if len(named) > 1:
            raise Invalid(f"Several tenants have “{value[:60]}” in their names. Type the slug of one.")
        return named[0] if named else None


class NameInput(InputFilter):
    """Search the tenants by a part of their names, some hundred rows at a time."""

    title, parameter_name = "name", "name"
    lookup = "icontains"
    help_text = "a part of the name"


class TrailInput(TenantInput):
    """Name a tenant's trail, or the platform's own, of events that belong to no tenant."""

    help_text = "slug, name or id; “platform” for what belongs to no tenant"

    def clean(self, value: str) -> str | None:
        return keys.PLATFORM if value == "platform" else super().clean(value)


class ActionInput(InputFilter):
    """Choose what was done, in words and by what it was done to, once a trail is chosen: no list is of it alone."""

    title, parameter_name = "action", "action"

    def clean(self, value: str) -> str | None:
        return value if value in list(AuditAction) else None

    def choices(self, changelist: Any) -> Iterator[Any]:
        if not changelist.get_filters_params().get(TrailInput.parameter_name):
            return
        kinds = groupby(sorted(AuditAction), key=lambda action: action.partition(".")[0])
        groups = [(kind.replace("_", " "), [(a.value, words_of(a)) for a in actions]) for kind, actions in kinds]
        yield from ({**choice, "groups": groups} for choice in super().choices(changelist))


class UserInput(InputFilter):
    title, parameter_name = "user", "user_id"
    help_text = "e-mail or id"

    def clean(self, value: str) -> str | None:
        return value if keys.USER_ID.match(value) else accounts.id_of(value)


class ActorInput(UserInput):
    title, parameter_name = "actor", "actor_id"
    help_text = "e-mail or id, “system” or “anonymous”"

    def clean(self, value: str) -> str | None:
        return value if value in ("system", "anonymous") else super().clean(value)


NOTICED: Final = 10  # dead items that the front page counts


class DeadItemAdmin(NamedColumns, DynamoAdmin):
    """An admin of items that wait for an operator. A subclass explains its object actions, "_replay" and "_drop"."""

    may_change = True
    list_filter = (TenantInput,)
    actions = ("replay", "drop")
    replayed: ClassVar[str]  # the sentence after a replay

    def replay_one(self, obj: Any, *, by: Any) -> None:
        """Have it done after all. Raises PortalError."""
        raise NotImplementedError

    def drop_one(self, obj: Any, *, by: Any) -> None:
        """Remove it. Raises PortalError."""
        raise NotImplementedError

    @admin.action(description="Replay: have them done after all")
    def replay(self, request: Any, queryset: Any) -> None:
        self._each(request, queryset, self.replay_one, "replayed")

    @admin.action(description="Drop: they are not done")
    def drop(self, request: Any, queryset: Any) -> TemplateResponse | None:
        if "confirmed" in request.POST:
            self._each(request, queryset, self.drop_one, "dropped")
            return None
        chosen = list(queryset)
        many = self.opts.verbose_name if len(chosen) == 1 else self.opts.verbose_name_plural
        context = {
            **self.admin_site.each_context(request),
            "title": f"Drop {len(chosen)} {many}?",
            "chosen": chosen,
            "opts": self.opts,
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "nosql_admin/drop_question.html", context)

    def _each(self, request: Any, queryset: Any, act: Callable[..., None], done: str) -> None:
        number = 0
        for obj in queryset:
            try:
                act(obj, by=actor(request))
                number += 1
            except Unavailable:
                raise
            except PortalError as error:
                messages.error(request, f"{obj}: {error.message}")
        messages.success(request, f"{number} {done}.")

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        if action == "_replay":
            self.replay_one(obj, by=actor(request))
            return self.replayed
        self.drop_one(obj, by=actor(request))
        return "It is dropped."

    def performed_url(self, request: Any) -> str:
        return _list_url(self.model)


def notice(facade: type[Facade], order: int, *, one: str, many: str) -> list[Notice]:
    """Report on the front page that there are such items, counted up to a few. `one` and `many` follow the number."""
    number = len(facade.objects.all()[: NOTICED + 1])
    if not number:
        return []
    counted = f"More than {NOTICED}" if number > NOTICED else str(number)
    return [Notice(order, f"{counted} {one if number == 1 else many}", _list_url(facade), "error")]


def first_few(items: Sequence[Any], notice: Callable[[Any], Notice], *, most: int, more: Notice) -> list[Notice]:
    """Report on the front page each of the first items, and that there are more."""
    return [*map(notice, items[:most]), *([more] if len(items) > most else [])]


def _list_url(facade: Any) -> str:
    return reverse(f"admin:{facade._meta.app_label}_{facade._meta.model_name}_changelist")
