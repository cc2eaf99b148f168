"""Type in the tenant, person or trail that a list is of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from portal.errors import Invalid
from portal.nosql.admin import InputFilter
from portal.schema import keys
from tenants.audit_trail import browsing
from tenants.operators.facades import Tenant
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory


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
        return value if value in browsing.WORDS else None

    def choices(self, changelist: Any) -> Iterator[Any]:
        if not changelist.get_filters_params().get(TrailInput.parameter_name):
            return
        kinds = groupby(sorted(browsing.WORDS), key=lambda action: action.partition(".")[0])
        groups = [(kind.replace("_", " "), [(a, browsing.WORDS[a]) for a in actions]) for kind, actions in kinds]
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
