"""Sign what an open page of a member asks with: for minutes it stands for the person, in their desk, on one ticket.

With it nobody has to be identified, which costs more than all that such a page asks meanwhile. It opens presence and
the moment of the latest change, and no text; the cookie of the same person has to come with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from django.core import signing
from django.utils.translation import gettext

from portal.dynamo.placement import Location, Placement
from portal.errors import NotFound
from portal.schema import keys
from tenants.tenancy.context import Role, TenantContext

SECONDS: Final = 420  # that somebody who is removed or signed out still hears who looks at a ticket
_SALT: Final = "tickets.live.page"


@dataclass(frozen=True)
class OpenPage:
    """A page of the person at work in `desk`: of the ticket `number`, or a list for 0. `shown` is the stamp of the
    latest change that it shows."""

    desk: TenantContext
    number: int
    shown: str

    @classmethod
    def read(cls, token: str, *, max_age: int | None = None) -> Self:
        """Return the page that a token was signed for. Raises NotFound for anything else, and for one that is too old.

        Its desk is known by what the token says: as it was when the token was signed, at most `max_age` seconds ago.
        """
        try:
            tenant_id, user_id, name, place, rate, number, shown = signing.loads(token, salt=_SALT, max_age=max_age)
            where = Location(placement=Placement.parse(place))
        except (signing.BadSignature, ValueError):
            raise NotFound(gettext("This page is too old. Reload it.")) from None
        desk = TenantContext(
            tenant_id=keys.tenant(tenant_id),
            name="",
            slug="",
            role=Role.AGENT,
            user_id=user_id,
            user_name=name,
            units_per_second=float(rate),
            where=where,
        )
        return cls(desk, number, shown)


def token(tenant: TenantContext, number: int = 0, shown: str = "") -> str:
    """Return what an open page asks with, "" where somebody acts in another's place or may not change the ticket, or a
    desk closes."""
    is_refused = tenant.acted_by or tenant.closes_at or (number and not tenant.is_agent)
    if is_refused or not keys.USER_ID.match(tenant.user_id):
        return ""
    told = [
        *(tenant.tenant_id, tenant.user_id, tenant.user_name),
        *(str(tenant.where.placement), tenant.units_per_second, number, shown),
    ]
    return signing.dumps(told, salt=_SALT)


def desk_of(arguments: Mapping[str, Any]) -> TenantContext:
    """Return the desk of the token in an address. Raises NotFound."""
    return OpenPage.read(arguments["token"], max_age=SECONDS).desk
