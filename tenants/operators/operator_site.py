"""Serve the operators' site: each change has its audit row in the same transaction, and histories come from the trail.

Not in the package `tenants.admin`, whose import registers with the site and so needs it to exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.utils.functional import SimpleLazyObject

from portal.dynamo.store import Transaction
from portal.errors import Conflict, TransactionRefused
from portal.nosql.admin import AuditedChange, DynamoAdminSite
from portal.version_number import VERSION
from portal.web import access
from portal.web.access import operator
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.operators import content_access
from tenants.operators.facades import AuditRow
from tenants.sign_in import impersonation_session
from tenants.sign_in.impersonation_session import Impersonation

_VERBS = {
    "added": AuditAction.RECORD_ADDED,
    "changed": AuditAction.RECORD_CHANGED,
    "removed": AuditAction.RECORD_REMOVED,
}


class OperatorSite(DynamoAdminSite):
    site_title = "Pooldesk operators"
    site_header = "Pooldesk operators"
    index_title = "The platform"

    @staticmethod
    def context_of(request: Any) -> dict[str, Any]:
        """Return the context that a page of its own needs beside its content."""
        request.current_app = admin.site.name
        return admin.site.each_context(request)

    def each_context(self, request: Any) -> dict[str, Any]:
        """Add the visit that goes on in this browser beside the admin: one read, where its cookie says so."""
        # What is hidden is known once the page is rendered.
        access = SimpleLazyObject(lambda: content_access.panel(request))
        return super().each_context(request) | {"visit": _visit(request), "content": access, "version": VERSION}

    def hide(self, request: Any, objects: Any) -> None:
        content_access.hide(request, objects)

    def declare(self, view: Any) -> Any:
        # The pages of a model have one declaration.
        model = getattr(view, "model_admin", None)
        for method in ("GET", "POST"):
            what = getattr(model, f"{method.lower()}_costs", None)
            if what is not None:
                access.declare_cost(what, on=method, module=type(model).__module__)(view)
        return operator(view)

    @access.costs(
        get="placed stream, queue depths, watermark",
        query="arriving tenant, closing tenant, dead deliveries by time, dead letter, due rows by time, excess cost, "
        "hold of deliveries, isolation proof, move, placed tenant, purge, resharding, suspended tenant",
        write="audit row",
        trips=4,
        reads=30,
        writes=10,
    )
    def index(self, request: Any, extra_context: Any = None) -> Any:
        """Show the front page: what its watchers report, all of them at once."""
        return super().index(request, extra_context)

    @access.costs()
    def app_index(self, request: Any, app_label: str, extra_context: Any = None) -> Any:
        return super().app_index(request, app_label, extra_context)

    @access.costs()
    def i18n_javascript(self, request: Any, extra_context: Any = None) -> Any:
        return super().i18n_javascript(request, extra_context)

    def has_permission(self, request: Any) -> bool:
        user = request.user
        return bool(user.is_authenticated and user.is_active and user.is_operator)

    def commit(self, request: Any, transaction: Transaction, change: AuditedChange) -> None:
        tenant_id, kind, entity_id = entity_of(change.obj)
        action = _VERBS[change.verb]
        entry = AuditEntry(
            tenant_id, action, actor(request), kind, entity_id, str(change.obj), dict(change.before), dict(change.after)
        )
        try:
            recording.commit(transaction, [entry])
        except TransactionRefused as error:
            raise Conflict("Somebody else was faster. This is how it is now.") from error

    def history(self, request: Any, obj: Any) -> Any:

        tenant_id, kind, entity_id = entity_of(obj)
        return AuditRow.objects.filter(tenant_id=tenant_id, entity_type=kind, entity_id=entity_id)


def _visit(request: Any) -> Impersonation | None:
    ids = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
    visit = impersonation_session.read(ids) if ids else None
    return visit if visit and visit.is_good_for(request.user, request.session.session_key) else None


def actor(request: Any) -> Actor:
    """Return the operator who acts here, for the audit trail."""
    return Actor(str(request.user.pk), request.user.email, "admin")


def entity_of(obj: Any) -> tuple[str, str, str]:
    """Return the tenant that an object belongs to (or PLATFORM), its kind and its id, as the audit trail has them."""
    entity: Callable[[], tuple[str, str, str]] | None = getattr(obj, "entity", None)
    if entity is not None:
        return entity()
    return getattr(obj, "tenant_id", "") or recording.PLATFORM, str(obj._meta.model_name), str(obj.pk)
