"""Show which tenants are closed and which are being deleted, order a purge, and hand certificates out.

A web process has no right to delete a tenant: `tickets/following/lifecycle_work.py` says who carries an order out.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from portal.nosql.admin.options import ReasonForm
from portal.web.access import on_get, on_post
from tenants.lifecycle import closing_mails, import_notes
from tenants.lifecycle.certificates import last_issued, numbered_certificate
from tenants.membership import members
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.admin.tenant_page import TenantPage
from tickets.purging import purge_requests
from tickets.verification import recount

SHOWN: Final = 100  # closed tenants, and certificates


class PurgeForm(ReasonForm):
    """Ask why a tenant is to be purged, and for its slug, typed by hand."""

    slug = forms.CharField(
        label="Slug",
        help_text="Type the short name of the tenant, to be sure that it is this one.",
        error_messages={"required": "Type the slug of the tenant."},
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.fields["reason"].help_text = "It stands in the certificate."


@OperatorSite.page("deletions/", name="deletions", title="Deletions")
@on_get(
    get="certificate, counter, purge, slug",
    query="arriving tenant, certificate, closing tenant, member, purge",
    trips=4,
    reads=15,
)
@on_post(
    get="counter, purge, slug",
    query="arriving tenant, certificate, closing tenant, member, purge",
    write="audit row, purge, tenant",
    trips=8,
    reads=8,
    writes=15,
)
def deletions(request: HttpRequest) -> HttpResponse:
    """Show closed tenants, purges, the last certificates and imports under way: four Queries at the same time.

    With `?tenant=<slug>` what that tenant has, and the form that orders its purge. With `?certificate=<number>` the
    certificate itself, as a file: one GetItem.
    """
    if number := request.GET.get("certificate", ""):
        return _file(number)
    return _PAGE.answer(request)


def _of_all() -> dict[str, Any]:
    reads: list[Any] = [
        lambda: tenant_directory.closing_tenants(SHOWN),
        lambda: purge_requests.PURGES.all_last(),
        lambda: last_issued(SHOWN),
        import_notes.all_under_way,
    ]
    closed, purges, certificates, arriving = fan_out(reads)
    orders = {item.tenant_id: item for item in purges}
    return {
        "closed": [_row(item, orders.pop(item.tenant_id, None)) for item in closed],
        "purges": [_purge(item) for item in orders.values()],  # of whose directory nothing is left
        "certificates": [_certificate(item) for item in certificates],
        "arriving": arriving,
    }


def _file(number: str) -> HttpResponse:
    found = numbered_certificate(number)
    response = HttpResponse(found.content, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="certificate-{found.name}.json"'
    return response


def _of_tenant(tenant: TenantItem) -> dict[str, Any]:
    """Return what of the tenant can be counted cheaply, and whether its purge can be ordered."""
    repository = context.for_system(tenant).repository
    reads: list[Any] = [lambda: members.members_of(repository), lambda: recount.last_number(repository)]
    people, tickets = fan_out(reads)
    obstacle = ""
    try:
        tenant_directory.refuse_arriving(tenant)
        purge_requests.refuse_early(tenant)
    except Conflict as error:
        obstacle = error.message
    ordered = purge_requests.PURGES.last(tenant.tenant_id)
    return {
        "people": len(people),
        "tickets": tickets,
        "obstacle": obstacle,
        "purge": _purge(ordered) if ordered else None,
    }


def _certificate(item: Any) -> dict[str, Any]:
    told = json.loads(item.content)
    asked = told["asked_by"]
    return {
        "name": item.name,
        "number": told["number"],
        "title": item.title,
        "slug": told["tenant"]["slug"],  # that it had; somebody else may have it by now
        "issued": clock.parse(item.created_at),
        "by": asked["email"] or f"the command {asked['origin']}",
        "reason": told["reason"],
        "deleted": sum(holding["deleted"] for holding in told["holdings"]),
        "tenant_id": item.tenant_id,
    }


def _row(item: Any, purge: Any) -> dict[str, Any]:
    until = clock.parse(item.closes_at) if item.closes_at else None
    state = "its grace is over" if until and until <= clock.now() else "can be undone"
    return {
        "slug": item.name,
        "title": item.title,
        "until": until,
        **({"state": state} if purge is None else _purge(purge)),
    }


def _purge(item: Any) -> dict[str, Any]:
    """Return what is shown of a purge: how it stands, what it is at or where it stopped, and what is in its way."""
    begun, at_work = item.state != purge_requests.ORDERED, bool(item.holder)
    state = "is being deleted" if at_work else "its deletion waits for somebody who goes on with it"
    return {
        "slug": item.slug,
        "title": item.title,
        "begun": begun,
        "by": item.by_email or item.by_origin,
        "reason": item.reason,
        "asked": clock.parse(item.asked_at),
        "begins": purge_requests.begins_at(item),
        "state": state if begun else "its purge is ordered",
        "step": item.phase,
        "deleted": sum(count.deleted for count in purge_requests.counts_of(item).values()),
        "waits": begun and not at_work,
        "trouble": item.trouble,
    }


def _order(request: HttpRequest, tenant: TenantItem, values: dict[str, Any]) -> str:
    if values["slug"].strip() != tenant.slug:
        raise Invalid(f"This is not the slug. Type {tenant.slug} to purge {tenant.name}.", field="slug")
    write = partial(closing_mails.of_deletion, request=request)
    purge_requests.order(tenant.tenant_id, by=actor(request), reason=values["reason"], write=write)
    return f"The purge of {tenant.name} is ordered. It begins in {purge_requests.TAKEN_BACK_MINUTES} minutes."


def _withdraw(request: HttpRequest, tenant: TenantItem) -> str:
    purge_requests.withdraw(tenant.tenant_id, by=actor(request))
    return f"The purge of {tenant.name} is not ordered any more."


_PAGE = TenantPage("deletions", PurgeForm, "reason", _of_tenant, _of_all, _order, {"withdraw": _withdraw})
