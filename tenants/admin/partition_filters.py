"""The filters that name a partition: whose memberships, whose trail."""

from __future__ import annotations

from portal.nosql.admin import InputFilter
from portal.schema import keys
from tenants.identity import accounts
from tenants.tenancy import tenant_directory


class TenantInput(InputFilter):
    """An id costs nothing to read; a slug costs a look at whose it is."""

    title, parameter_name = "tenant", "tenant_id"
    help_text = "slug or id"

    def clean(self, value: str) -> str | None:
        return value if keys.TENANT_ID.match(value) else tenant_directory.id_of(value)


class TrailInput(TenantInput):
    """The platform's own trail, of events that belong to no tenant, is one more."""

    help_text = "slug or id; “platform” for what belongs to no tenant"

    def clean(self, value: str) -> str | None:
        return keys.PLATFORM if value == "platform" else super().clean(value)


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
