"""Find the person whom somebody names on a form or in a call, and add one who is not known yet."""

from __future__ import annotations

from django.utils.translation import gettext as _

from portal.errors import Invalid
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.requesters import requester_addresses, requester_changes, requesters, stored
from tickets.requesters.requester_changes import AddressTaken, Details
from tickets.requesters.requesters import Requester


def named(tenant: TenantContext, text: str, *, by: Actor, request_id: str) -> Requester:
    """Return the person whom this text names: an id, an address, `Name <address>`, or the whole name of one person.

    An address that nobody has makes a new person, with a row of the audit trail. Raises Invalid, at `requester`.
    """
    if found := _of(tenant, text.strip()):
        return found
    name, address = requester_addresses.typed(text.strip())
    try:
        return requester_changes.create(
            tenant, Details(name=name, addresses=(address,)), by=by, request_id=f"{request_id} {address}"
        )
    except AddressTaken:  # somebody else has just added the person
        return _known(requesters.by_address(tenant, address))
    except Invalid as error:
        raise Invalid(error.message, field="requester") from error


def known(tenant: TenantContext, text: str) -> Requester:
    """Do the same for somebody who is known already. Raises Invalid, at `requester`."""
    return _known(_of(tenant, text.strip()))


def _of(tenant: TenantContext, text: str) -> Requester | None:
    """Return the person whom a text names, None for an address that nobody has. Raises Invalid."""
    if stored.is_requester(text):
        return _known(requesters.find(tenant, text))
    if "@" not in text:
        return _by_name(tenant, text)
    return requesters.by_address(tenant, requester_addresses.typed(text)[1])


def _known(person: Requester | None) -> Requester:
    if person is None:
        raise Invalid(_("There is no such requester."), field="requester")
    return person


def _by_name(tenant: TenantContext, text: str) -> Requester:
    wanted = stored.folded(text)
    found = [one for one in requesters.complete(tenant, text) if stored.folded(one.name) == wanted]
    if not found:
        raise Invalid(
            _("Nobody is known by the name “%(name)s”. Enter an address, such as Ada Example <ada@example.org>.")
            % {"name": text[:60]},
            field="requester",
        )
    if len(found) > 1:
        raise Invalid(
            _("Several people are called “%(name)s”. Enter an address, such as Ada Example <ada@example.org>.")
            % {"name": text[:60]},
            field="requester",
        )
    return _known(requesters.find(tenant, found[0].id))
