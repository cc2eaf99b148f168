"""Prepare saved views for their pages and for the starred ones beside the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from portal.web import desk_prefix, locales
from tenants.tenancy.context import TenantContext
from tickets.desk.queue_presenters import QueueAddress, chips
from tickets.saved_views import saved_views
from tickets.saved_views.saved_views import View, Views
from tickets.saved_views.view_counts import ViewCount

_NONE: Mapping[str, ViewCount] = {}


def in_words(tenant: TenantContext, address: QueueAddress) -> str:
    """Say what a list shows, and in which order."""
    named = {"": "", "me": _("mine"), "none": _("unassigned")}
    who = named[address.who] if address.who in named else _("of one member")
    words = [
        _("%(status)s tickets") % {"status": address.label},
        who,
        *(str(chip["label"]) for chip in chips(tenant, address)),
    ]
    return ", ".join([*filter(None, words), locales.in_sentence(address.sorting.label)])


def shown(tenant: TenantContext, view: View, counts: Mapping[str, ViewCount] = _NONE) -> dict[str, Any]:
    """Return a view for a page. Words of its query that this version does not know are left out."""
    address = QueueAddress.of_what_is_understood(view.params)
    count = counts.get(view.id)
    return {
        "id": view.id,
        "name": view.name,
        "url": address.url(),
        "words": in_words(tenant, address),
        "count": str(count) if count else "",
        "is_least": bool(count and count.is_least),
        "may_change": saved_views.may_change(tenant, view),
    }


def starred(
    tenant: TenantContext, views: Views, url: str = "", counts: Mapping[str, ViewCount] = _NONE
) -> dict[str, Any]:
    """Return the views beside the queue, the one with this address marked as the current one."""
    rows = [shown(tenant, view, counts) for view in views.beside]
    return {
        "starred_views": [row | {"is_current": bool(url) and row["url"] == url} for row in rows],
        "counts_url": desk_prefix.address("tickets:view_counts"),
        "has_groups": bool(views.groups),
    }


def all_views(tenant: TenantContext, views: Views, counts: Mapping[str, ViewCount]) -> dict[str, Any]:
    """Return all views in their two groups."""
    groups = [(_("Views of the desk"), views.desk), (_("Your views"), views.own)]
    return {
        "groups": [
            {
                "label": label,
                "views": [
                    shown(tenant, view, counts)
                    | {"is_starred": view.id in views.stars, "is_first": not at, "is_last": at == len(some) - 1}
                    for at, view in enumerate(some)
                ],
            }
            for label, some in groups
        ]
    }
