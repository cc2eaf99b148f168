"""Show names where items hold ids: the name first, with the id beside it in small."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from portal.dynamo.client import fan_out
from portal.schema import keys
from tenants.operators.account_facades import Account
from tenants.operators.facades import Tenant


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
